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
		Long: `Shows the change log of a job, the newest change first: changes by commands and by apply, with the values before and
after, pauses, and what people did to its runs. It also works for a job that was removed. The next tick notices an edit
by plain SQL, but such edits are not in the log.`,
		Example: `  dbjobs job history rollup`,
	}, (*store.Store).JobHistory)
}

func (c *cli) scheduleHistory() *cobra.Command {
	return c.histories(&cobra.Command{
		Use: "history NAME", Short: "Show who changed a schedule, when and why", Args: positional("NAME"),
		Long:    `Shows the change log of a shared schedule, the newest change first. It also works for a schedule that was removed.`,
		Example: `  dbjobs schedule history nightly --json`,
	}, (*store.Store).ScheduleHistory)
}

// histories completes a command that prints a change log.
func (c *cli) histories(cmd *cobra.Command, read func(*store.Store, context.Context, string, int) ([]store.Change, error)) *cobra.Command {
	var limit int
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most `N` changes")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		list, err := read(s, ctx, args[0], oneMore(limit))
		if err != nil {
			return err
		}
		list = shorten(c, list, limit, "changes")
		return c.print(report.List(list), func() error { return report.History(c.stdout, list) })
	})
	return c.prints(cmd)
}
