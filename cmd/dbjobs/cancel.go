package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) runCancel() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a run, also one that is running elsewhere", Args: positional("ID"),
		Long: `Asks for the end of a run. What has not begun is cancelled by the next tick. The holder of what is
running looks for that every 1.5 seconds, and stops its statement in the database. The job goes on with its next
occurrence.`,
		Example: `  dbjobs run cancel 0199f3a2 --reason "it reads the old table"`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		r, err := s.CancelRun(ctx, args[0], c.author(s))
		if err != nil {
			return err
		}
		return c.print(r, func() error {
			what := "the next dbjobs tick cancels it"
			if r.State == store.Running {
				what = "its holder stops it within seconds"
			}
			c.say("run %s is to be cancelled: %s", r.ID, what)
			return nil
		})
	})
	return c.prints(c.authored(cmd))
}

func (c *cli) jobAbort() *cobra.Command {
	var runOnly bool
	cmd := &cobra.Command{
		Use: "abort NAME", Short: "Cancel a job's runs, and disable the job", Args: positional("NAME"),
		Long: `Cancels all runs of a job that have not ended, as run cancel does, and disables the job, until dbjobs job enable.
With --run-only the job goes on with its next occurrence. An apply of the manifest that the job comes from enables it,
too, unless it says disabled: true.`,
		Example: `  dbjobs job abort rollup --reason "it fills the disk"`,
	}
	cmd.Flags().BoolVar(&runOnly, "run-only", false, "leave the job enabled")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		runs, err := s.AbortJob(ctx, args[0], runOnly, c.author(s))
		if err != nil {
			return err
		}
		a := report.Aborted{Job: args[0], Disabled: !runOnly, Runs: report.List(runs)}
		return c.print(a, func() error {
			c.say("%s", a)
			if runOnly {
				return nil
			}
			return c.untilApply(ctx, s, args[0])
		})
	})
	return c.prints(c.authored(cmd))
}

// untilApply says what else ends a job's being disabled.
func (c *cli) untilApply(ctx context.Context, s *store.Store, name string) error {
	j, err := s.Job(ctx, name)
	if err == nil && j.Manifest != "" {
		c.say("job %s is from the manifest %q: so that an apply of it does not enable the job, write disabled: true into it", name, j.Manifest)
	}
	return err
}

func (c *cli) jobEnable() *cobra.Command {
	return c.enables(&cobra.Command{
		Use: "enable NAME", Short: "Enable a job that is disabled", Args: positional("NAME"),
		Long: `Enables a job. What fell due while it was disabled stays a gap; the job begins with its next nominal time.`,
	}, true)
}

func (c *cli) jobDisable() *cobra.Command {
	return c.enables(&cobra.Command{
		Use: "disable NAME", Short: "Disable a job: nothing is decided for it", Args: positional("NAME"),
		Long: `Disables a job. Runs that were made go on, and so do requests; what falls due is a recorded gap. An
apply of the manifest that the job comes from enables it, unless it says disabled: true; job pause is not undone so.`,
	}, false)
}

func (c *cli) enables(cmd *cobra.Command, enabled bool) *cobra.Command {
	cmd.Example = "  dbjobs job " + cmd.Name() + " rollup"
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error {
		if err := s.EnableJob(ctx, args[0], enabled, c.author(s)); err != nil {
			return err
		}
		c.say("%sd job %s", cmd.Name(), args[0])
		if !enabled {
			if err := c.untilApply(ctx, s, args[0]); err != nil {
				return err
			}
		}
		return c.showJob(ctx, s, args[0])
	})
	return c.prints(c.authored(cmd))
}
