package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
)

func (c *cli) schedule() *cobra.Command {
	g := &cobra.Command{Use: "schedule", Short: "Create, change, list, show, pause, resume and remove schedules that jobs share"}
	c.add(g, []subcommand{
		{"create", (*cli).scheduleCreate}, {"alter", (*cli).scheduleAlter}, {"rename", (*cli).scheduleRename}, {"list", (*cli).scheduleList},
		{"show", (*cli).scheduleShow}, {"pause", (*cli).schedulePause}, {"resume", (*cli).scheduleResume}, {"remove", (*cli).scheduleRemove},
		{"history", (*cli).scheduleHistory},
	})
	return group(g)
}

func (c *cli) scheduleCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME --rule RULE", Short: "Create a schedule", Args: positional("NAME"),
		Example: `  dbjobs schedule create nightly --rule "30 2 * * *" --zone Europe/Berlin`,
	}
	given := definitionFlags(cmd, manifest.RuleFlags)
	cmd.RunE = c.do(func(cmd *cobra.Command, args []string) error {
		m, err := manifest.ScheduleFromFlags(args[0], given(), time.Now())
		if err != nil {
			return err
		}
		if err := c.resolve(cmd, m); err != nil {
			return err
		}
		s, err := c.open(cmd, begin)
		if err != nil {
			return err
		}
		defer c.close(s)
		w, err := readWorld(cmd.Context(), s, m) // not later: then the change would be done
		if err != nil {
			return err
		}
		changes, err := s.Apply(cmd.Context(), m.Definitions, store.ApplyOptions{CreateOnly: true, Author: c.author(s), First: decide.First})
		if err != nil {
			return already(m.Place(err), "schedule", args[0])
		}
		c.ring(cmd.Context(), s)
		c.say("created schedule %s", args[0])
		warnings := c.warnings(m, changes, w)
		if c.warn(warnings); !c.asJSON {
			return nil
		}
		v, err := s.Schedule(cmd.Context(), args[0])
		if err != nil {
			return unseen(err)
		}
		return report.JSON(c.stdout, report.CreatedSchedule{Schedule: v, Warnings: warnings})
	})
	return c.prints(c.authored(cmd))
}

func (c *cli) scheduleList() *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "list", Short: "List the schedules that jobs share", Args: positional(),
		Example: `  dbjobs schedule list`,
		RunE: c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
			list, err := s.ScheduleStatuses(ctx, "")
			if err != nil {
				return err
			}
			if err := tick.NextOfSchedules(ctx, s, list); err != nil {
				return err
			}
			return c.print(report.List(list), func() error { return report.Schedules(c.stdout, list) })
		}),
	})
}

func (c *cli) scheduleShow() *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "show NAME", Short: "Show a schedule", Args: positional("NAME"),
		Example: `  dbjobs schedule show nightly`,
		RunE: c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
			list, err := s.ScheduleStatuses(ctx, args[0])
			if err != nil {
				return err
			}
			if err := tick.NextOfSchedules(ctx, s, list); err != nil {
				return err
			}
			d := report.ScheduleDetail{ScheduleStatus: list[0]}
			if d.Holidays, err = tick.Holidays(ctx, s, &list[0].Schedule, 5); err != nil {
				return err
			}
			return c.print(d, func() error { return report.Schedule(c.stdout, d) })
		}),
	})
}
