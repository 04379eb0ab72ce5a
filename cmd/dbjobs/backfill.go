package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

func (c *cli) jobBackfill() *cobra.Command {
	var from, to string
	var r tick.Range
	cmd := &cobra.Command{
		Use: "backfill NAME --from INSTANT", Short: "Ask for runs of past nominal times that no run covers", Args: positional("NAME"),
		Long: `Asks for a run of each nominal time from --from to --to (both included) that lies in no run's interval yet: the oldest
first, behind what the job has open, each with its own data interval, which begins at the nominal time before it. Times
before the job was created count, too; without --to, all that has been decided. A failed run keeps its interval: see
dbjobs run retry. With --again, every nominal time of the range is taken, whatever covers it.`,
		Example: `  dbjobs job backfill rollup --from 2026-01-01T00:00:00Z --to 2026-01-31T23:59:59Z --limit 10`,
	}
	cmd.Flags().StringVar(&from, "from", "", "first instant, such as 2026-01-01T00:00:00Z")
	cmd.Flags().StringVar(&to, "to", "", "last instant (what has been decided)")
	cmd.Flags().IntVar(&r.Limit, "limit", 1000, "at most so many, the oldest")
	cmd.Flags().BoolVar(&r.Again, "again", false, "also those that lie in the interval of a run")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) (err error) {
		if r.From, err = instantFlag("from", from); err != nil {
			return err
		}
		if r.To, err = instantFlag("to", to); err != nil {
			return err
		}
		switch {
		case r.From.IsZero():
			return badInput("job backfill needs --from, the first instant, such as 2026-01-01T00:00:00Z")
		case r.Limit < 1:
			return badInput("--limit: found %d, want at least 1", r.Limit)
		}
		r.Author = c.author(s)
		made, more, err := tick.Backfill(ctx, s, args[0], r)
		if err != nil {
			return err
		}
		b := report.Backfilled{Job: args[0], Runs: report.List(made), More: more}
		return c.print(b, func() error {
			c.say("%s", b)
			return report.Runs(c.stdout, made)
		})
	})
	return c.prints(c.authored(cmd))
}

func (c *cli) jobReplan() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replan [NAME]", Short: "Take back what was decided while the database's clock was ahead", Args: positional("NAME?"),
		Long: `Plans a job, or without NAME all of them, anew from now, where it was decided beyond the database's clock: which was ahead,
and has been put right. The gaps of such a job end now, and its nominal times from now on are to come; what ran stays
on record. Jobs that were not decided beyond now are left as they are.`,
		Example: `  dbjobs job replan --reason "the clock was a year ahead"`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		name := ""
		if len(args) > 0 {
			if name = args[0]; name == "" { // a shell's variable that is empty does not mean all of them
				return badInput("job replan: NAME is empty; leave it out to plan all jobs anew")
			}
		}
		n, err := s.Replan(ctx, name, c.author(s))
		switch {
		case n > 0:
			c.say("jobs planned anew from now by the next dbjobs tick: %d", n)
		case err == nil:
			c.say("no job was decided beyond the database's clock")
		}
		return err
	})
	return c.authored(cmd)
}
