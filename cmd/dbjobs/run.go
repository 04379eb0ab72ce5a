package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

func (c *cli) runs() *cobra.Command {
	g := &cobra.Command{Use: "run", Short: "List, show, cancel and retry runs"}
	c.add(g, []subcommand{{"list", (*cli).runList}, {"show", (*cli).runShow}, {"cancel", (*cli).runCancel}, {"retry", (*cli).runRetry}})
	return group(g)
}

func (c *cli) runList() *cobra.Command {
	var f store.RunFilter
	var since, until string
	cmd := &cobra.Command{Use: "list", Short: "List runs, the newest first", Args: positional(),
		Example: `  dbjobs run list --state failed --since yesterday
  dbjobs run list --state queued,running --schedule nightly
  dbjobs run list --job rollup --limit 5 --json`}
	cmd.Flags().StringVar(&f.Job, "job", "", "only runs of this job; if it was removed, of the last job with that name")
	cmd.Flags().StringSliceVar(&f.States, "state", nil, "only runs in one of these states, with commas between them: "+strings.Join(store.RunStates, ", "))
	cmd.Flags().StringVar(&f.Schedule, "schedule", "", "only runs of jobs that use this schedule")
	cmd.Flags().StringVar(&f.Step, "step", "", "only runs that tried the step of this name")
	cmd.Flags().StringVar(&since, "since", "", "only runs made since then: 24h ago, yesterday, 2026-12-01T08:00:00Z")
	cmd.Flags().StringVar(&until, "until", "", "only runs made before")
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "show at most `N` runs")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if err := among("state", f.States, store.RunStates); err != nil {
			return err
		}
		if f.Limit < 1 {
			return badInput("--limit: found %d, want at least 1", f.Limit)
		}
		var err error
		if f.Since, err = instantIn(ctx, s, "since", since, ago); err != nil {
			return err
		}
		if f.Until, err = instantIn(ctx, s, "until", until, ago); err != nil {
			return err
		}
		if err := inOrder(f.Since, f.Until); err != nil {
			return err
		}
		limit := f.Limit
		f.Limit = oneMore(limit)
		runs, err := s.Runs(ctx, f)
		if err != nil {
			return err
		}
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		runs = shorten(c, runs, limit, "runs")
		return c.print(report.List(runs), func() error { return report.Runs(c.stdout, runs, now) })
	})
	return c.prints(cmd)
}

// among refuses values of a flag that are not among the known values.
func among(flag string, found, known []string) error {
	for _, v := range found {
		if !slices.Contains(known, v) {
			return badInput("--%s: found %s, want one of %s", flag, shown(v), strings.Join(known, ", "))
		}
	}
	return nil
}

// runs returns the end of the sentence "the next tick ...", for a run, or for several like it: it says it, or them. Any tick queues
// them, but only one that has the login of their owner takes them: its own, or by the settings of its host.
func runs(ctx context.Context, s *store.Store, r *store.Run, it string) (string, error) {
	as := ""
	if r.Owner != "" {
		switch login, err := s.Login(ctx); {
		case err != nil:
			return "", err
		case login != r.Owner:
			as = " with the login of " + r.Owner
		}
	}
	switch {
	case r.Queue != tick.OwnQueue:
		return "queues " + it + ", and a worker of the queue " + r.Queue + as + " runs " + it, nil
	case as != "":
		return "queues " + it + ", and one" + as + " runs " + it, nil
	}
	return "runs " + it, nil
}

func (c *cli) runShow() *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "show RUN", Short: "Show a run and each attempt of its steps", Args: positional("RUN"),
		Long: `Shows a run. RUN is JOB#NUMBER as in "run list"; JOB, for the latest run of the job; or an id, or the first
characters of it. Of its attempts, it shows the newest 1,000.`,
		Example: `  dbjobs run show rollup#12
  dbjobs run show rollup`,
		RunE: c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
			r, err := s.Run(ctx, args[0])
			if err != nil {
				return err
			}
			return c.print(r, func() error { return report.Run(c.stdout, r) })
		}),
	})
}

func (c *cli) runRetry() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "retry RUN", Short: "Retry a run that failed, was cancelled or was lost", Args: positional("RUN"),
		Long: `Opens a run again: the same run, with its own interval and arguments. It continues at the step it was in,
wherever the job has that step now, or at --from-step. If the job has no step of that name any more, the retry is
refused without --from-step. So it is if the step has no name of its own, and the job's other steps have changed
since: its place may be that of another step. The next tick executes it, after the job's open runs,
and as soon as its group has room.`,
		Example: `  dbjobs run retry rollup#12 --from-step load --reason "the disk has room again"`,
	}
	cmd.Flags().StringVar(&from, "from-step", "", "name or number of the step to start with")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		r, err := s.RetryRun(ctx, args[0], from, c.author(s))
		if err != nil {
			return err
		}
		return c.print(r, func() error {
			step := fmt.Sprintf("from step %d, %q", r.Step, r.StepName)
			does, waits := "", ""
			j, err := s.Job(ctx, r.FullJob())
			if err == nil {
				does, waits, err = when(ctx, s, &j, &r.Run, 1, "it")
			}
			switch {
			case err != nil:
				c.unknown(fmt.Sprintf("run %s is open again, %s; when it executes", r.Label(), step), err)
			case waits != "":
				c.say("run %s is open again, %s: it %s", r.Label(), step, waits)
			default:
				c.say("run %s is open again: the next dbjobs tick %s %s", r.Label(), does, step)
			}
			return nil
		})
	})
	return c.prints(c.authored(cmd))
}
