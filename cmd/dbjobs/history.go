package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) jobHistory() *cobra.Command {
	return c.histories(&cobra.Command{
		Use: "history NAME", Short: "Show who changed a job, when and why", Args: positional("NAME"),
		Long: `Shows the change log of a job, the newest first, also of one that was removed: what commands and apply changed, with
what it was before, pauses, and what was done to its runs by hand. Edits by plain SQL are noticed by the next tick, and
not logged.`,
		Example: `  dbjobs job history rollup`,
	}, (*store.Store).JobHistory)
}

func (c *cli) scheduleHistory() *cobra.Command {
	return c.histories(&cobra.Command{
		Use: "history NAME", Short: "Show who changed a schedule, when and why", Args: positional("NAME"),
		Long:    `Shows the change log of a schedule that jobs share, the newest first, also of one that was removed.`,
		Example: `  dbjobs schedule history nightly --json`,
	}, (*store.Store).ScheduleHistory)
}

// histories makes cmd one that prints a change log.
func (c *cli) histories(cmd *cobra.Command, read func(*store.Store, context.Context, string, int) ([]store.Change, error)) *cobra.Command {
	var limit int
	cmd.Flags().IntVar(&limit, "limit", 20, "at most so many")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		list, err := read(s, ctx, args[0], limit)
		if err != nil {
			return err
		}
		return c.print(report.List(list), func() error { return report.History(c.stdout, list) })
	})
	return c.prints(cmd)
}
