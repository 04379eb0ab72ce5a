package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// lately is how far errors and missed look back, where nobody says it.
const lately = "24h"

func (c *cli) failures() *cobra.Command {
	var f store.FailureFilter
	var since, until string
	cmd := &cobra.Command{
		Use: "errors", Short: "List what failed: each attempt, with the number of its error", Args: positional(),
		Long: `Lists the attempts that failed within the last 24 hours, or since --since, the newest first, also those of runs that
succeeded when they were tried again. NUMBER is the SQLSTATE, the number of an error of MySQL or SQLite, the status of an answer
by HTTP, or an exit code; LINE is that of the statement, where the database says it. A run that was made before --since and
has succeeded is left out, unless --job names its job.`,
		Example: `  dbjobs errors
  dbjobs errors --job rollup --since yesterday --json`,
	}
	cmd.Flags().StringVar(&f.Job, "job", "", "only attempts of this job; if it was removed, of the last job with that name")
	cmd.Flags().StringVar(&since, "since", lately, "only attempts that ended since then: 2h, yesterday, 2026-12-01T08:00:00Z")
	cmd.Flags().StringVar(&until, "until", "", "only attempts that ended before")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "show at most `N` attempts")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) (err error) {
		if f.Limit < 1 {
			return badInput("--limit: found %d, want at least 1", f.Limit)
		}
		if f.Since, err = instantFlag("since", since, ago); err != nil {
			return err
		}
		if f.Until, err = instantFlag("until", until, ago); err != nil {
			return err
		}
		list, err := s.Failures(ctx, f)
		if err != nil {
			return err
		}
		return c.print(report.List(list), func() error {
			if len(list) == f.Limit {
				c.say("there may be more; raise --limit")
			}
			return report.Failures(c.stdout, list)
		})
	})
	return c.prints(cmd)
}

func (c *cli) missed() *cobra.Command {
	var job, since string
	var limit int
	cmd := &cobra.Command{
		Use: "missed", Short: "List the times at which jobs did not run, and why", Args: positional(),
		Long: `Lists the nominal times of all jobs that were decided not to run within the last 24 hours, or since --since, the newest
first: after when, through when, how many they are, and why. The reason is missed (no tick came in time), overlap (the last
run had not ended), paused, disabled, edited (it was due when its rule changed), over-limit (missed_limit), or
skipped (job skip-next).`,
		Example: `  dbjobs missed --since 2026-12-01
  dbjobs missed --job rollup --json`,
	}
	cmd.Flags().StringVar(&job, "job", "", "only times of this job")
	cmd.Flags().StringVar(&since, "since", lately, "only times since then: 2h, yesterday, 2026-12-01T08:00:00Z")
	cmd.Flags().IntVar(&limit, "limit", 50, "look at most at `N` stretches of time")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		from, err := instantFlag("since", since, ago)
		if err != nil {
			return err
		}
		list, err := tick.Missed(ctx, s, job, from, limit)
		if err != nil {
			return err
		}
		return c.print(list, func() error { return report.Missed(c.stdout, list) })
	})
	return c.prints(cmd)
}
