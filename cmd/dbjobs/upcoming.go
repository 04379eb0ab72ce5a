package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

func (c *cli) upcoming() *cobra.Command {
	var from, to string
	var names []string
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use: "upcoming", Short: "List what the jobs will run next", Args: positional(),
		Long: `Lists the next time of each job, the next ones first, and how many more times follow until the end: in the next 24
hours, or between --from and --to. --all lists each time. A job that is paused until a time is listed from
that time on, and a job with repeat_after that is due already is listed at once. Runs that exist already, such as one
that was requested for a later time, are in "run list".`,
		Example: `  dbjobs upcoming --to "tomorrow 08:00"
  dbjobs upcoming --job rollup --all
  dbjobs upcoming --from tomorrow --to 7d --limit 1000 --json`,
	}
	cmd.Flags().StringVar(&from, "from", "", "first time, such as tomorrow or 2026-12-01T08:00:00Z (now)")
	cmd.Flags().StringVar(&to, "to", "", "end, not included, such as 2h from now, tomorrow 08:00 (24h after --from)")
	cmd.Flags().StringArrayVar(&names, "job", nil, "only this `job`; may be given several times")
	cmd.Flags().BoolVar(&all, "all", false, "list each time of a job, not only its next one")
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most `N` jobs, or times with --all")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		first, end, err := aheadOf(now, from, to)
		if err != nil {
			return err
		}
		jobs, err := chosenJobs(ctx, s, names)
		if err != nil {
			return err
		}
		if open := openRuns(jobs); open > 0 && len(names) > 0 {
			c.say("left out, because on record already: %s; see dbjobs run list --state waiting,queued,running", report.Plural(open, "run"))
		}
		if all {
			u, err := tick.Upcoming(ctx, s, jobs, first, end, limit)
			if err != nil {
				return err
			}
			return c.printUpcoming(u, "times", report.Upcoming)
		}
		u, err := tick.NextOfEach(ctx, s, jobs, first, end, limit, report.When)
		if err != nil {
			return err
		}
		return c.printUpcoming(u, "jobs", report.NextOfEach)
	})
	return c.prints(cmd)
}

// openRuns counts the runs of jobs that exist and have not ended.
func openRuns(jobs []store.JobStatus) (n int) {
	for i := range jobs {
		n += jobs[i].RunsOpen
	}
	return n
}

// aheadOf reads an interval in the future.
func aheadOf(now time.Time, from, to string) (first, end time.Time, err error) {
	if first, err = instantFrom("from", from, ahead, now); err != nil {
		return first, end, err
	}
	if end, err = instantFrom("to", to, ahead, now); err != nil {
		return first, end, err
	}
	if first.Before(now) { // earlier times are in run list
		first = now
	}
	if end.IsZero() {
		end = first.Add(24 * time.Hour)
	}
	if !end.After(first) {
		return first, end, badInput("--to: %s is not after %s", report.Instant(end), report.Instant(first))
	}
	return first, end, nil
}

// printUpcoming prints what comes next, and says what the table leaves out.
func (c *cli) printUpcoming(u tick.UpcomingRuns, rows string, table func(io.Writer, tick.UpcomingRuns) error) error {
	return c.print(u, func() error {
		if u.More {
			c.say("there are more %s until %s; raise --limit", rows, report.Instant(u.To))
		}
		for i := range u.Holidays {
			c.say("job %s: %s", u.Holidays[i].Job, u.Holidays[i].Text())
		}
		if len(u.Idle) > 0 {
			c.say("left out, because disabled, parked or paused: %s; see dbjobs job list", report.Plural(len(u.Idle), "job"))
		}
		for _, k := range u.Skipped {
			c.say("job %s does not run at %s", k.Job, report.Skipped(k.Skip))
		}
		if len(u.Runs) == 0 {
			c.say("no times found before %s", report.Instant(u.To))
			return nil
		}
		return table(c.stdout, u)
	})
}
