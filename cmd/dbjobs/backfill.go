package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
)

func (c *cli) jobBackfill() *cobra.Command {
	var from, to string
	var r tick.Range
	var dryRun bool
	cmd := &cobra.Command{
		Use: "backfill NAME --from INSTANT", Short: "Request runs for past nominal times that no run covers", Args: positional("NAME"),
		Long: `Requests one run for each nominal time from --from to --to (both included) that is not in the interval of a run
yet. The runs wait behind the job's open runs, the oldest first. The data interval of each run begins at the nominal time
before it. Times before the job was created are included. Without --to, the range ends at the last time that has been
decided. It requests --limit runs at most, and says from when on it has left out others: repeat it with that
instant as --from.

A failed run keeps its interval, so backfill leaves it out: use dbjobs run retry. So does a cancelled run of a backfill; any
other run that was cancelled before its first try has no interval any more. With --again, every nominal time of the range
gets a run.

Runs that keep has deleted are not known: the answer says so, and from when on runs are kept, if the range has earlier times
that may have run.`,
		Example: `  dbjobs job backfill rollup --from 2026-01-01T00:00:00Z --to 2026-01-31T23:59:59Z --dry-run
  dbjobs job backfill rollup --from 2026-01-01T00:00:00Z --to 2026-01-31T23:59:59Z --limit 10`,
	}
	cmd.Flags().StringVar(&from, "from", "", "first instant, such as 2026-01-01T00:00:00Z")
	cmd.Flags().StringVar(&to, "to", "", "last instant (the last time that has been decided)")
	cmd.Flags().IntVar(&r.Limit, "limit", 1000, "request at most `N` runs, the oldest first")
	cmd.Flags().BoolVar(&r.Again, "again", false, "include nominal times that are in the interval of a run already")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print the nominal times; write nothing")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) (err error) {
		if r.From, err = instantIn(ctx, s, "from", from, ago); err != nil {
			return err
		}
		if r.To, err = instantIn(ctx, s, "to", to, ago); err != nil {
			return err
		}
		switch {
		case r.From.IsZero():
			return badInput("job backfill needs --from, the first instant, such as 2026-01-01T00:00:00Z")
		case r.Limit < 1:
			return badInput("--limit: found %d, want at least 1", r.Limit)
		}
		r.Author = c.author(s)
		b := report.Backfilled{Job: args[0], DryRun: dryRun}
		var chosen decide.Chosen
		if dryRun {
			chosen, err = tick.BackfillDryRun(ctx, s, args[0], r)
			b.Intervals = report.List(chosen.Intervals)
		} else {
			b.Runs, chosen, err = tick.Backfill(ctx, s, args[0], r)
		}
		if err != nil {
			return err
		}
		b.Runs, b.More, b.KeptSince = report.List(b.Runs), chosen.More, chosen.KeptSince
		return c.print(b, func() error {
			j, err := s.Job(ctx, args[0])
			if b.Held = holds(&j); err == nil && b.Held == nil && len(b.Runs) > 0 {
				b.Does, b.Waits, err = when(ctx, s, &j, &b.Runs[0], len(b.Runs), "them")
			}
			c.unknown("when the runs execute", err)
			c.say("%s", b)
			return b.Print(c.stdout)
		})
	})
	return c.prints(c.authored(cmd))
}

func (c *cli) jobReplan() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replan [NAME]", Short: "Undo decisions about the future, made while the database's clock was ahead", Args: positional("NAME?"),
		Long: `Use this after the database's clock was ahead and has been corrected. Without it, a job does not run before the time
up to which it was decided. replan plans one job, or without NAME all jobs, again from now: their gaps end now, and their
next nominal times are after now. Runs that were taken, tried or requested by that clock no longer wait for its time; those
requested for a later time do. A pause that began or ended by that clock begins or ends now: one of the job, or without NAME
any pause, and a freeze. If its end was given as a length, it lasts for that from now; an end of today or tomorrow moves by
whole days; an instant stays. replan prints each end. A job or a schedule that was created by that clock counts from now,
and so does a job that got its start by it. The runs that took place stay on record. Other jobs are not changed, except
that a schedule of the job that was created by that clock counts from now for all jobs that use it.`,
		Example: `  dbjobs job replan --reason "the clock was a year ahead"`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		n, err := s.Replan(ctx, name, decide.Start, c.author(s))
		if err != nil && n.Jobs+len(n.Pauses) == 0 {
			return err
		}
		printed := c.print(n, func() error {
			if len(n.Pauses) > 0 {
				c.say("corrected %s that began or ended beyond the database's clock", report.Plural(len(n.Pauses), "pause"))
			}
			for _, p := range n.Pauses {
				c.sayEnd(&p)
			}
			switch {
			case n.Jobs > 0:
				c.say("the next dbjobs tick plans %s again from now", report.Plural(n.Jobs, "job"))
			case len(n.Pauses) == 0:
				c.say("no job was decided beyond the database's clock")
			}
			return nil
		})
		return errors.Join(err, printed)
	})
	return c.prints(c.authored(cmd))
}

// sayEnd says when a pause ends that replan has let begin now, and how somebody ends it sooner.
func (c *cli) sayEnd(p *store.CorrectedPause) {
	on := store.Subject{Scope: p.Scope, Name: p.Subject}
	switch {
	case p.Until.IsZero() || !p.ResumedAt.IsZero():
	case p.WasUntil.IsZero():
		c.say("the pause of %s still ends at %s, as it was given; `dbjobs %s` ends it sooner", on, report.Instant(p.Until), endsPause(on))
	default:
		c.say("the pause of %s ends at %s, and not at %s", on, report.Instant(p.Until), report.Instant(p.WasUntil))
	}
}
