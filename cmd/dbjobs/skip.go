package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

func (c *cli) jobSkipNext() *cobra.Command {
	var schedule string
	var undo bool
	count := 1
	cmd := &cobra.Command{
		Use: "skip-next NAME", Short: "Skip the next nominal time of a job", Args: positional("NAME"),
		Long: `Skips the next nominal time of a job, or with --count the next N. A second skip-next skips one more. When the time has
come, it is recorded as a gap with the reason skipped; job history has the author and the --reason. The data interval of
the next run begins where that of the skipped run would have begun.

With --schedule, only times of that schedule are skipped: a time that another schedule of the job has too still runs.
--undo takes back all skips whose time has not come yet.`,
		Example: `  dbjobs job skip-next rollup --reason "the source is down tonight"
  dbjobs job skip-next rollup --schedule nightly --count 3
  dbjobs job skip-next rollup --undo`,
	}
	cmd.Flags().StringVar(&schedule, "schedule", "", "only times of this schedule")
	cmd.Flags().IntVar(&count, "count", 1, "skip `N` times")
	cmd.Flags().BoolVar(&undo, "undo", false, "take back all skips whose time has not come yet")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error {
		if count < 1 || count > 100 {
			return badInput("--count: found %d, want 1 to 100", count)
		}
		if undo && cmd.Flags().Changed("count") {
			return badInput("--undo is for all skipped times; leave --count out")
		}
		var list []store.Skip
		var err error
		if undo {
			list, err = tick.UndoSkips(ctx, s, args[0], schedule, c.author(s))
		} else {
			list, err = tick.SkipNext(ctx, s, args[0], schedule, count, c.author(s))
		}
		if err != nil {
			return err
		}
		return c.print(report.List(list), func() error {
			for _, k := range list {
				if undo {
					c.say("job %s runs at %s again", args[0], report.Instant(k.At))
				} else {
					c.say("job %s does not run at %s", args[0], report.Instant(k.At))
				}
			}
			if len(list) == 0 {
				c.say("job %s has no skipped time that is still to come", args[0])
			}
			return nil
		})
	})
	return c.prints(c.authored(cmd))
}
