package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) runs() *cobra.Command {
	g := &cobra.Command{Use: "run", Short: "List, show and cancel runs"}
	g.AddCommand(c.runList(), c.runShow(), c.runCancel())
	return group(g)
}

func (c *cli) runList() *cobra.Command {
	var f store.RunFilter
	states := []string{store.Waiting, store.Queued, store.Running, store.Succeeded, store.Failed, store.Cancelled, store.Lost}
	cmd := &cobra.Command{Use: "list", Short: "List runs, the newest first", Args: positional()}
	cmd.Flags().StringVar(&f.Job, "job", "", "only runs of this job")
	cmd.Flags().StringVar(&f.State, "state", "", "only runs in this state: "+strings.Join(states, ", "))
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "at most so many")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if f.State != "" && !slices.Contains(states, f.State) {
			return badInput("--state: found %q, want one of %s", f.State, strings.Join(states, ", "))
		}
		if f.Limit < 1 {
			return badInput("--limit: found %d, want at least 1", f.Limit)
		}
		runs, err := s.Runs(ctx, f)
		if err != nil {
			return err
		}
		return c.print(report.List(runs), func() error { return report.Runs(c.stdout, runs) })
	})
	return c.prints(cmd)
}

func (c *cli) runShow() *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "show ID", Short: "Show a run and each try of its steps", Args: positional("ID"),
		Long: `Shows a run. ID is its id, or the beginning of it as far as no other run begins so.`,
		RunE: c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
			r, err := s.Run(ctx, args[0])
			if err != nil {
				return err
			}
			return c.print(r, func() error { return report.Run(c.stdout, r) })
		}),
	})
}
