package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/lint"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) jobRename() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rename OLD NEW", Short: "Give a job another name", Args: positional("OLD", "NEW"),
		Long: `Gives a job another name. Its owner, history, runs and plan stay. Jobs that run after it, or name it as a hook (on), get
the new name too. Names outside the database do not change: in hooks of the host settings, in scripts, and in the file that
the job comes from. The next apply of that file would create the old job again. Neither do names of its arguments in the
steps of jobs that run after several ones, ${args.OLD.x}: the command warns of them.

Jitter is computed from the name, so runs may begin at other moments. Values for which a rule has ~ are, too: they move with
the next change of the rule, and at once if no tick has seen the job yet.`,
		Example: `  dbjobs job rename rollup sums --reason "it has been sums for long"`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		r, err := s.RenameJob(ctx, args[0], args[1], store.AlterOptions{DryRun: c.dryRun, Author: c.author(s)})
		if err != nil {
			return taken(err, "job", args[1])
		}
		a := report.NewAltered(c.dryRun, r.Changes)
		for i := range r.Followers {
			a.Warnings = append(a.Warnings, lint.Arguments(&r.Followers[i])...)
		}
		c.warn(a.Warnings)
		return c.renamed("job", args[0], args[1], r.Job.Manifest, a)
	})
	return c.alters(cmd)
}

func (c *cli) scheduleRename() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rename OLD NEW", Short: "Give a schedule another name", Args: positional("OLD", "NEW"),
		Long: `Gives a schedule another name. Its jobs and pauses stay. The file that it comes from does not change: the next apply of
that file would create the old schedule again.

Values for which a rule has ~ are computed from the name. Jobs that have a plan keep theirs until the rule changes; jobs to
which the schedule is given later get the new ones.`,
		Example: `  dbjobs schedule rename nightly after-midnight`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		r, err := s.RenameSchedule(ctx, args[0], args[1], store.AlterOptions{DryRun: c.dryRun, Author: c.author(s)})
		if err != nil {
			return taken(err, "schedule", args[1])
		}
		return c.renamed("schedule", args[0], args[1], r.Before.Manifest, report.NewAltered(c.dryRun, r.Changes))
	})
	return c.alters(cmd)
}

// taken says that another definition already has the name.
func taken(err error, kind, name string) error {
	if errors.Is(err, store.ErrExists) {
		return &usageError{problem: "there is a " + kind + " " + name + " already", hint: "choose another name"}
	}
	return err
}

// renamed prints the result for a definition that now has another name.
func (c *cli) renamed(kind, old, name, owner string, a report.Altered) error {
	return c.print(a, func() error {
		if !a.DryRun {
			c.say("renamed %s %s to %s", kind, old, name)
		}
		if owner != "" {
			c.say("%s %s is from the manifest %s: if its file still has %[4]s, its next apply creates %[4]s again; rename it there too (renamed_from)", kind, name, shown(owner), old)
		}
		return a.Print(c.stdout)
	})
}
