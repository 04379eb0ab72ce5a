package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// The intervals and limits that status uses.
const (
	silentLately = 7 * 24 * time.Hour
	comingWithin = time.Hour
	shownOfKind  = 5      // how many of each kind are shown, unless --limit says otherwise
	waitingKinds = 20     // how many reasons to wait are shown
	mostKinds    = 10_000 // how many are read, with the queues in which runs execute
	mostPauses   = 10_000 // how many pauses are read to find a freeze, or to count them
)

func (c *cli) status() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "status", Short: "Show on one screen how things stand, and what to do", Args: positional(),
		Long: `Shows the last pass of each trigger and the silences of triggers, the runs that execute or wait, the jobs that are
overdue (by more than 2 minutes), failing, parked or paused, and what runs within the next hour. At the end it says what
to do. Disabled jobs are left out.

It changes nothing, and takes no longer with many jobs. The exit code is 0 even if something is wrong: for monitors
there is "dbjobs check".`,
		Example: `  dbjobs status
  dbjobs status --limit 20 --json`,
	}
	cmd.Flags().IntVar(&limit, "limit", shownOfKind, "show at most `N` of each kind")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if limit < 1 || limit > report.MostOfKind {
			return badInput("--limit: found %d, want 1 to %d", limit, report.MostOfKind)
		}
		v, err := readStatus(ctx, s, limit)
		if err != nil {
			return err
		}
		return c.print(v, func() error { return v.Print(c.stdout) })
	})
	return c.prints(cmd)
}

// readStatus reads from the database all that status shows.
func readStatus(ctx context.Context, s *store.Store, limit int) (v report.Status, err error) {
	standing, err := s.Standing(ctx, store.OverdueAfter, comingWithin, limit)
	if err != nil {
		return v, err
	}
	if err := tick.NextOutsidePauses(ctx, s, standing.Coming); err != nil {
		return v, err
	}
	standing.Coming = slices.DeleteFunc(standing.Coming, func(j store.JobStatus) bool {
		return j.NextRun.IsZero() || j.NextRun.After(standing.Now.Add(comingWithin))
	})
	slices.SortStableFunc(standing.Coming, func(x, y store.JobStatus) int { return x.NextRun.Compare(y.NextRun) })
	v.Stand(standing)
	pauses, err := s.Pauses(ctx, false, mostPauses)
	if err != nil {
		return v, err
	}
	v.Hold(pauses, limit)
	itself, job, err := s.PausedItself(ctx)
	if err != nil {
		return v, err
	}
	v.Itself(itself, job)
	triggers, err := s.Triggers(ctx)
	if err != nil {
		return v, err
	}
	if v.Ahead, v.AheadUntil, err = s.AheadOf(ctx, v.Now, triggers); err != nil {
		return v, err
	}
	if v.PassesHidden, err = s.PassesHidden(ctx); err != nil {
		return v, err
	}
	slices.SortStableFunc(triggers, func(x, y store.Trigger) int { return y.LastAt.Compare(x.LastAt) })
	v.Come(triggers, limit)
	silences, err := s.Silences(ctx, triggers, v.Now, v.Now.Add(-silentLately))
	if err != nil {
		return v, err
	}
	v.Silent(silences, limit)
	open, err := s.OpenRuns(ctx, mostKinds)
	if err != nil {
		return v, err
	}
	v.Wait(open, waitingKinds)
	running, err := s.LongestRuns(ctx, limit)
	if err != nil {
		return v, err
	}
	v.Running.First = report.List(running)
	figures, err := s.Figures(ctx, report.StuckAfter)
	if err != nil {
		return v, err
	}
	v.Stick(figures)
	calendars, err := s.Calendars(ctx)
	if err != nil {
		return v, err
	}
	v.AddCalendars(calendars)
	v.Judge()
	return v, nil
}
