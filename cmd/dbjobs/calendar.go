package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/holiday"
	"github.com/dbjobs/dbjobs/cmd/internal/lint"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) calendar() *cobra.Command {
	g := &cobra.Command{Use: "calendar", Short: "Import, list, show and remove calendars: the holidays that schedules observe"}
	c.add(g, []subcommand{{"import", (*cli).calendarImport}, {"list", (*cli).calendarList}, {"show", (*cli).calendarShow}, {"remove", (*cli).calendarRemove}})
	return group(g)
}

func (c *cli) calendarImport() *cobra.Command {
	var cal store.Calendar
	var file string
	cmd := &cobra.Command{
		Use: "import NAME -f FILE", Short: "Create a calendar from a file of days, or replace its days", Args: positional("NAME"),
		Long: `Creates a calendar from a file, or replaces all its days by those of the file. The next tick plans the schedules that
use the calendar again. The file has one line for each day, or is an iCalendar file (.ics) of whole-day events. An event
of the same date each year becomes a day of each year. Another one that recurs becomes single days, from the last year to
the tenth to come.

  2026-12-25 Christmas Day
  2026-12-28..2026-12-31 closed
  01-01 New Year's Day          # of each year`,
		Example: `  dbjobs calendar import de -f holidays.ics --working-days MO-FR`,
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to read")
	cmd.Flags().StringVar(&cal.WorkingDays, "working-days", "", "working days of the week, such as MO-FR (as before; for a new calendar: all)")
	cmd.Flags().StringVar(&cal.Description, "description", "", "what it is for (as before)")
	mayBeEmpty(cmd, "working-days")
	mayBeEmpty(cmd, "description")
	cmd.RunE = c.do(func(cmd *cobra.Command, args []string) error {
		if file == "" {
			return badInput("import needs a file of days; give it with -f holidays.ics")
		}
		days, err := holiday.ReadFile(file, opener(cmd.Context()), time.Now())
		if err != nil {
			return &usageError{problem: err.Error()}
		}
		s, err := c.open(cmd, begin)
		if err != nil {
			return err
		}
		defer c.close(s)
		cal.Name, cal.Days = args[0], days
		p, err := beforeDays(cmd.Context(), s, &manifest.Manifest{Definitions: store.Definitions{Calendars: []store.Calendar{cal}}})
		if err != nil {
			return err
		}
		now, err := s.Now(cmd.Context()) // not later: then the change would be done
		if err != nil {
			return err
		}
		changes, err := s.AlterCalendar(cmd.Context(), cal.Name, store.AlterOptions{Author: c.author(s)}, func(old *store.Calendar) (store.Calendar, error) {
			if old != nil && !cmd.Flags().Changed("working-days") {
				cal.WorkingDays = old.WorkingDays
			}
			if old != nil && !cmd.Flags().Changed("description") {
				cal.Description = old.Description
			}
			if _, err := rules.ParseCalendar(cal.Name, cal.WorkingDays, cal.Text()); err != nil {
				return cal, badInput("%v", err)
			}
			return cal, nil
		})
		if err != nil {
			return err
		}
		c.ring(cmd.Context(), s)
		if len(changes) == 0 {
			c.say("calendar %s: no change", cal.Name)
		} else {
			c.say("%sd calendar %s: %s", changes[0].Action, cal.Name, report.Plural(len(cal.Days), "line"))
		}
		warnings := lint.Calendar(&cal, now)
		if p != nil {
			p.calendars[cal.Name] = &cal
			warnings = append(warnings, lint.Starved(p.starved(changes))...)
		}
		c.warn(warnings)
		if !c.asJSON {
			return nil
		}
		if cal, err = s.Calendar(cmd.Context(), cal.Name); err != nil {
			return unseen(err)
		}
		return report.JSON(c.stdout, cal)
	})
	return c.prints(c.authored(cmd))
}

func (c *cli) calendarList() *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "list", Short: "List the calendars", Args: positional(),
		Example: `  dbjobs calendar list`,
		RunE: c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
			list, err := s.Calendars(ctx)
			if err != nil {
				return err
			}
			now, err := s.Now(ctx)
			if err != nil {
				return err
			}
			return c.print(report.List(list), func() error { return report.Calendars(c.stdout, list, now) })
		}),
	})
}

func (c *cli) calendarShow() *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "show NAME", Short: "Show a calendar and its days", Args: positional("NAME"),
		Example: `  dbjobs calendar show de`,
		RunE: c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
			cal, err := s.Calendar(ctx, args[0])
			if err != nil {
				return err
			}
			now, err := s.Now(ctx)
			if err != nil {
				return err
			}
			return c.print(cal, func() error { return report.Calendar(c.stdout, cal, now) })
		}),
	})
}

func (c *cli) calendarRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a calendar that no schedule uses", Args: positional("NAME"),
		Example: `  dbjobs calendar remove de --reason "renamed"`}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if err := s.RemoveCalendar(ctx, args[0], c.author(s)); err != nil {
			return err
		}
		return c.print(report.Removed{Kind: "calendar", Name: args[0]}, func() error {
			c.say("removed calendar %s", args[0])
			return nil
		})
	})
	return c.prints(c.authored(cmd))
}
