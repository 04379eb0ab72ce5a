package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// lookBack is how far missed, and errors of all jobs, look back without --since: from now, and errors from --until, if that is
// earlier. lately is the same as a text.
const (
	lookBack = 24 * time.Hour
	lately   = "24h"
)

func (c *cli) failures() *cobra.Command {
	var f store.FailureFilter
	var since, until string
	cmd := &cobra.Command{
		Use: "errors", Short: "List the attempts that failed, each with the number of its error", Args: positional(),
		Long: `Lists the attempts that failed within the last 24 hours, or within the 24 hours before --until, or since --since, the
newest first; with --job and without --since, all of the job that are on record. A run that succeeded later is among them. If it was made before
--since, it is listed only with --job. If no attempt on record says why a run failed, because a worker has ended it
by SQL, the run itself is listed, without a step.

NUMBER is the SQLSTATE, the error number of MySQL or SQLite, the status of an HTTP response, or an exit code. LINE is the
line of the statement, if the database reports it.`,
		Example: `  dbjobs errors
  dbjobs errors --job rollup
  dbjobs errors --job rollup --since yesterday --json`,
	}
	cmd.Flags().StringVar(&f.Job, "job", "", "only attempts of this job; if it was removed, of the last job with that name")
	cmd.Flags().StringVar(&since, "since", lately, "only attempts that ended since then: 2h, yesterday, 2026-12-01T08:00:00Z; the default counts back from --until, and with --job there is none")
	cmd.Flags().StringVar(&until, "until", "", "only attempts that ended before this time")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "show at most `N` attempts")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, _ []string) (err error) {
		if f.Limit < 1 {
			return badInput("--limit: found %d, want at least 1", f.Limit)
		}
		if f.Since, err = instantIn(ctx, s, "since", since, ago); err != nil {
			return err
		}
		if f.Until, err = instantIn(ctx, s, "until", until, ago); err != nil {
			return err
		}
		switch {
		case cmd.Flags().Changed("since"):
			err = inOrder(f.Since, f.Until)
		case f.Job != "": // a job may run once a month
			f.Since = time.Time{}
		case !f.Until.IsZero() && f.Until.Before(f.Since.Add(lookBack)):
			f.Since = f.Until.Add(-lookBack)
		}
		if err != nil {
			return err
		}
		limit := f.Limit
		f.Limit = oneMore(limit)
		list, err := s.Failures(ctx, f)
		if err != nil {
			return err
		}
		list = shorten(c, list, limit, "attempts")
		return c.print(report.List(list), func() error { return report.Failures(c.stdout, list) })
	})
	return c.prints(cmd)
}

func (c *cli) missed() *cobra.Command {
	var job, since string
	var limit int
	cmd := &cobra.Command{
		Use: "missed", Short: "List the times at which jobs did not run, and why", Args: positional(),
		Long: `Lists the gaps of all jobs within the last 24 hours, or since --since, the newest first. A gap is a stretch of nominal
times that did not run: from FIRST to LAST, as many as TIMES says. REASON is one of:

  missed      no tick came in time, and the job's policy does not make up for the time
  overlap     the run before had not ended yet
  paused      the job, its schedule, tag or owner was paused, or everything was frozen
  disabled    the job was disabled
  edited      the time was due, but not decided yet, when the schedule changed
  over-limit  the job has had all of its max_runs
  skipped     "dbjobs job skip-next" has skipped the time

The times of a job that is paused, parked or overdue are recorded later. A message says that there are such jobs.`,
		Example: `  dbjobs missed --since 2026-12-01
  dbjobs missed --job rollup --json`,
	}
	cmd.Flags().StringVar(&job, "job", "", "only times of this job; if it was removed, of the last job with that name")
	cmd.Flags().StringVar(&since, "since", lately, "only times since then: 2h, yesterday, 2026-12-01T08:00:00Z")
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most `N` gaps")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		from, err := instantIn(ctx, s, "since", since, ago)
		if err != nil {
			return err
		}
		list, err := tick.Missed(ctx, s, job, from, oneMore(limit))
		if err != nil {
			return err
		}
		if err := errors.Join(c.sayPaused(ctx, s), c.sayUndecided(ctx, s, job)); err != nil {
			return err
		}
		list = shorten(c, list, limit, "gaps")
		return c.print(list, func() error {
			if len(list) == 0 {
				c.say("no gap is on record since %s", report.Instant(from))
				return nil
			}
			return report.Missed(c.stdout, list)
		})
	})
	return c.prints(cmd)
}

// sayPaused says that pauses are in force: their times become gaps when the pauses end.
func (c *cli) sayPaused(ctx context.Context, s *store.Store) error {
	list, err := s.Pauses(ctx, false, mostPauses)
	n, least := len(list), ""
	if n == mostPauses {
		least = "at least "
	}
	if n > 0 {
		c.say("%s%s in force, see dbjobs pauses: the times of a pause are recorded when it ends", least, report.Plural(n, "pause"))
	}
	return err
}

// judged is how many overdue jobs are examined one by one, to leave out the paused ones.
const judged = 20

// sayUndecided says which jobs do not run without a gap on record: nothing is decided about the times of a job that is parked, or
// for which no pass has come.
func (c *cli) sayUndecided(ctx context.Context, s *store.Store, job string) error {
	var st store.Standing
	var err error
	if job == "" {
		st, err = s.Standing(ctx, store.OverdueAfter, 0, judged)
	} else {
		var v store.JobStatus
		switch v, err = s.Job(ctx, job); {
		case errors.Is(err, store.ErrNotFound) || v.Disabled: // it was removed, or nothing is to be decided
			return nil
		case v.Parked != "":
			st.Parked = store.Kind{Count: 1, First: []store.JobStatus{v}}
		case v.Overdue >= store.Duration(store.OverdueAfter):
			st.Overdue = store.Kind{Count: 1, First: []store.JobStatus{v}}
		}
	}
	if err != nil {
		return err
	}
	say := func(k store.Kind, is, where, until string) {
		if len(k.First) == 0 {
			return
		}
		which := "job " + k.First[0].FullName() + " is " + is
		if k.Count > 1 {
			which = fmt.Sprintf("%d jobs are %s, such as %s", k.Count, is, k.First[0].FullName())
		}
		c.say("%s, see %s: the times of such a job are recorded when %s", which, where, until)
	}
	parked := "dbjobs status"
	if st.Parked.Count == 1 && len(st.Parked.First) == 1 { // status does not list it if somebody has paused it
		parked = "dbjobs job show " + store.Argument(st.Parked.First[0].FullName())
	}
	say(st.Parked, "parked", parked, "it is repaired")
	say(st.Overdue, "overdue", "dbjobs status", "a pass decides for it")
	return nil
}
