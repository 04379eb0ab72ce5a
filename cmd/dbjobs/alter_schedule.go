package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

func (c *cli) scheduleAlter() *cobra.Command {
	e := manifest.Edit{Command: "schedule alter"}
	cmd := &cobra.Command{
		Use: "alter NAME", Short: "Change a schedule in place, for all jobs that use it", Args: positional("NAME"),
		Long: `Changes what the flags name, and nothing else of the schedule. --reset FLAG gives a flag its default again. The change
shows field by field, with the next times before and after. The new rule counts from now on.

If the schedule comes from a manifest, the next apply of that file changes it back, unless the file is changed too.`,
		Example: `  dbjobs schedule alter nightly --rule "30 3 * * *" --dry-run
  dbjobs schedule alter nightly --zone Europe/Paris --reason "the office has moved"`,
	}
	given := definitionFlags(cmd, manifest.RuleFlags)
	resets(cmd, &e.Reset)
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if e.Given = given(); len(e.Given)+len(e.Reset) == 0 {
			return badInput("schedule alter needs a flag that says what to change; see dbjobs schedule alter --help")
		}
		e.Now = time.Now()
		var m *manifest.Manifest
		r, err := s.AlterSchedule(ctx, args[0], store.AlterOptions{DryRun: c.dryRun, First: decide.First, Author: c.author(s)}, func(sc store.Schedule) (store.Schedule, error) {
			var err error
			if m, err = e.Schedule(sc); err != nil {
				return sc, err
			}
			return m.Schedules[0], nil
		})
		if m != nil {
			err = m.Place(err)
		}
		if err != nil {
			return err
		}
		w, untimed := readWorld(ctx, s, &manifest.Manifest{Definitions: store.Definitions{Schedules: []store.Schedule{r.Before, r.After}}})
		c.unknown("what holidays do to the next times", untimed)
		a := report.NewAltered(c.dryRun, r.Changes)
		if len(r.Changes) > 0 && untimed == nil {
			a.Times = append(a.Times, report.Times{Schedule: args[0], Before: w.timesOf(r.Before), After: w.timesOf(r.After)})
		}
		a.Warnings = c.warnings(m, r.Changes, w)
		c.warn(a.Warnings)
		return c.print(a, func() error {
			c.sayAltered(fmt.Sprintf("schedule %s of %s", args[0], report.Plural(r.Before.Jobs, "job")), r.Before.Manifest, a)
			return a.Print(c.stdout)
		})
	})
	return c.alters(cmd)
}

// timesOf returns the next times of a schedule.
func (w world) timesOf(s store.Schedule) []time.Time {
	p := &preview{now: w.now}
	return report.List(p.next(store.JobStatus{Job: store.Job{CreatedAt: w.now}}, []store.Rule{{Linked: true, Schedule: s, Calendar: w.calendars[s.Calendar]}}, &store.Job{}))
}

func (c *cli) scheduleRemove() *cobra.Command {
	var detach, unused bool
	cmd := &cobra.Command{Use: "remove [NAME]", Short: "Remove a schedule that no job uses", Args: positional("NAME?"),
		Long: `Removes a schedule. If jobs use it, the command refuses; with --detach it removes the schedule from these jobs first.
Their times that are due and not decided yet become a recorded gap, and a job without another schedule then runs on
request only: it also loses its start and remove_when_done. --unused removes all schedules that no job uses.`,
		Example: `  dbjobs schedule remove nightly --reason "no job uses it any more"
  dbjobs schedule remove nightly --detach --dry-run
  dbjobs schedule remove --unused`}
	cmd.Flags().BoolVar(&detach, "detach", false, "remove it from the jobs that use it first")
	cmd.Flags().BoolVar(&unused, "unused", false, "remove all schedules that no job uses")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if unused == (len(args) > 0) || unused && detach {
			return badInput("schedule remove needs either NAME, with or without --detach, or --unused")
		}
		o := store.AlterOptions{DryRun: c.dryRun, Author: c.author(s)}
		var r report.RemovedSchedule
		var changes []store.Change
		var err error
		if unused {
			changes, err = s.RemoveUnused(ctx, o)
		} else {
			r.Removed = &report.Removed{Kind: "schedule", Name: args[0]}
			changes, err = s.RemoveSchedule(ctx, args[0], detach, o)
		}
		if err != nil {
			return err
		}
		r.Altered = report.NewAltered(c.dryRun, changes)
		return c.print(r, func() error {
			if !unused && !c.dryRun {
				c.say("removed schedule %s", args[0])
			}
			return r.Print(c.stdout)
		})
	})
	return c.alters(cmd)
}
