package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

func (c *cli) runCancel() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel RUN", Short: "Cancel a run, even one that another machine executes", Args: positional("RUN"),
		Long: `Cancels a run. If it has not started, the next tick cancels it. If it is running, the process that executes it
checks for this every 1.5 seconds and stops its statement in the database. If that process is dead, ticks
see that when the run's lease is over, after two minutes at most; then the next tick cancels the run. A worker in SQL
sees the request when it extends its lease, which is as long as it asked for. The job continues with its next
occurrence.

RUN may also be a job that has one open run. If it has several, the command lists them, and cancels none.`,
		Example: `  dbjobs run cancel rollup#12 --reason "it reads the old table"`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		r, err := s.CancelRun(ctx, args[0], c.author(s))
		if err != nil {
			return err
		}
		return c.print(r, func() error {
			what := "the next dbjobs tick cancels it"
			p, err := freezeOf(ctx, s)
			c.unknown("the run is to be cancelled; whether a freeze delays that", err)
			if p != nil {
				what = "a dbjobs tick cancels it after the freeze: " + report.Paused(*p)
			}
			if r.State == store.Running {
				what = "the process that executes it stops it within seconds"
				if r.Queue != tick.OwnQueue { // where such workers are
					what += ", or a worker in SQL when it extends its lease"
				}
				if !r.LeaseUntil.IsZero() {
					what += "; if that process is dead, the first dbjobs tick after " + report.Instant(tick.Recovers(r.LeaseUntil)) + " does"
				}
			}
			c.say("cancelling run %s: %s", r.Label(), what)
			return nil
		})
	})
	return c.prints(c.authored(cmd))
}

func (c *cli) jobAbort() *cobra.Command {
	var runOnly bool
	cmd := &cobra.Command{
		Use: "abort NAME", Short: "Cancel a job's runs, and disable the job", Args: positional("NAME"),
		Long: `Cancels all open runs of a job, as run cancel does, and disables the job until dbjobs job enable. With --run-only
the job stays enabled and continues with its next occurrence.

If the job comes from a manifest, the next apply of that manifest enables it again, unless it has disabled: true.`,
		Example: `  dbjobs job abort rollup --reason "it fills the disk"`,
	}
	cmd.Flags().BoolVar(&runOnly, "run-only", false, "leave the job enabled")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		runs, err := s.AbortJob(ctx, args[0], runOnly, c.author(s))
		if err != nil {
			return err
		}
		a := report.Aborted{Job: args[0], Disabled: !runOnly, Runs: report.List(runs)}
		err = c.print(a, func() error {
			c.say("%s", a)
			c.afterFreeze(ctx, s, runs)
			return nil
		})
		if !runOnly {
			c.untilApply(ctx, s, args[0])
		}
		return err
	})
	return c.prints(c.authored(cmd))
}

// freezeOf returns the freeze that holds everything now; nil: there is none. A job may have another pause that lasts longer,
// but only a freeze keeps ticks from cancelling runs.
func freezeOf(ctx context.Context, s *store.Store) (*store.Pause, error) {
	pauses, err := s.Pauses(ctx, false, mostPauses)
	for i := range pauses {
		if pauses[i].Scope == store.ScopeAll {
			return &pauses[i], err
		}
	}
	return nil, err
}

// afterFreeze says when the runs of a job are cancelled that have not begun, if that is not the next tick.
func (c *cli) afterFreeze(ctx context.Context, s *store.Store, runs []string) {
	if len(runs) == 0 {
		return
	}
	p, err := freezeOf(ctx, s)
	if p != nil {
		c.say("what has not begun is cancelled by a dbjobs tick after the freeze: %s", report.Paused(*p))
	}
	c.unknown("the runs are to be cancelled; whether a freeze delays that", err)
}

// untilApply warns that the next apply of the job's manifest will enable the job again.
func (c *cli) untilApply(ctx context.Context, s *store.Store, name string) {
	j, err := s.Job(ctx, name)
	if err == nil && j.Manifest != "" {
		c.say("job %s is from the manifest %q, and the next apply enables it again; to prevent that, add disabled: true there", name, j.Manifest)
	}
	c.unknown("the job is disabled; whether an apply enables it again", err)
}

// untilDisabled warns that the next apply of the job's manifest may disable the job again. It does not if a command, and no
// file, has disabled the job.
func (c *cli) untilDisabled(ctx context.Context, s *store.Store, name string) {
	j, err := s.Job(ctx, name)
	if err == nil && j.Manifest != "" {
		var list []store.Change
		list, err = s.JobHistory(ctx, name, 20)
		last := slices.IndexFunc(list, func(v store.Change) bool {
			return slices.Contains([]string{"disable", "abort", "create", "change"}, v.Action)
		})
		if err == nil && (last < 0 || list[last].Action == "create" || list[last].Action == "change") {
			c.say("job %s is from the manifest %q: if its file has disabled: true, its next apply disables it again; delete that there", name, j.Manifest)
		}
	}
	c.unknown("the job is enabled; whether an apply disables it again", err)
}

func (c *cli) jobEnable() *cobra.Command {
	return c.enables(&cobra.Command{
		Use: "enable NAME", Short: "Enable a job that is disabled", Args: positional("NAME"),
		Long: `Enables a job. It continues with its next nominal time. Times that came while it was disabled stay a recorded gap. If the
job comes from a manifest that has disabled: true, the next apply of that manifest disables it again.`,
	}, true)
}

func (c *cli) jobDisable() *cobra.Command {
	return c.enables(&cobra.Command{
		Use: "disable NAME", Short: "Disable a job: its schedule makes no more runs", Args: positional("NAME"),
		Long: `Disables a job. Existing runs continue, and requested runs still execute. Times that come while the job is disabled
become a recorded gap. If the job comes from a manifest, the next apply of that manifest enables it again, unless it has
disabled: true. A pause (dbjobs job pause) is not ended by an apply.`,
	}, false)
}

func (c *cli) enables(cmd *cobra.Command, enabled bool) *cobra.Command {
	cmd.Example = "  dbjobs job " + cmd.Name() + " rollup"
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error {
		if err := s.EnableJob(ctx, args[0], enabled, c.author(s)); err != nil {
			return err
		}
		c.say("%sd job %s", cmd.Name(), args[0])
		if enabled {
			c.untilDisabled(ctx, s, args[0])
		} else {
			c.untilApply(ctx, s, args[0])
		}
		return c.showJob(ctx, s, args[0])
	})
	return c.prints(c.authored(cmd))
}
