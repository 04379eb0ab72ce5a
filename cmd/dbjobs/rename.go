package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) jobRename() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "rename OLD NEW", Short: "Give a job another name", Args: positional("OLD", "NEW"),
		Long: `Gives a job another name. Its owner, its history, its runs and its plan stay. Jobs that run after it, or name it as a
hook (on), follow. What this cannot change is what is outside the database: a hook in the settings of a host, a script, and
the file that the job comes from. The next apply of that file would make the old job again.

A jitter, and a time that a rule leaves to a hash (H), are computed from the name, so they may move.`,
		Example: `  dbjobs job rename rollup sums --reason "it has been sums for long"`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		r, err := s.RenameJob(ctx, args[0], args[1], store.AlterOptions{DryRun: dryRun, Author: c.author(s)})
		if err != nil {
			return taken(err, "job", args[1])
		}
		return c.renamed("job", args[0], r.Job.FullName(), r.Job.Manifest, report.NewAltered(dryRun, r.Changes))
	})
	return c.alters(cmd, &dryRun)
}

func (c *cli) scheduleRename() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "rename OLD NEW", Short: "Give a schedule another name", Args: positional("OLD", "NEW"),
		Long: `Gives a schedule another name. The jobs that use it, and its pauses, follow. The file that it comes from does not: its
next apply would make the old schedule again.

A time that a rule leaves to a hash (H) is computed from the name, so it may move with the next change of the rule.`,
		Example: `  dbjobs schedule rename nightly after-midnight`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		r, err := s.RenameSchedule(ctx, args[0], args[1], store.AlterOptions{DryRun: dryRun, Author: c.author(s)})
		if err != nil {
			return taken(err, "schedule", args[1])
		}
		return c.renamed("schedule", args[0], args[1], r.Before.Manifest, report.NewAltered(dryRun, r.Changes))
	})
	return c.alters(cmd, &dryRun)
}

// taken says that a name is another's already.
func taken(err error, kind, name string) error {
	if errors.Is(err, store.ErrExists) {
		return &usageError{problem: "there is a " + kind + " " + name + " already", hint: "choose another name"}
	}
	return err
}

// renamed prints what became of something that has another name now.
func (c *cli) renamed(kind, old, name, owner string, a report.Altered) error {
	return c.print(a, func() error {
		if !a.DryRun {
			c.say("renamed %s %s to %s", kind, old, name)
		}
		if owner != "" {
			c.say("%s %s is from the manifest %s, and the next apply makes %s again beside it, unless that has the new name", kind, name, shown(owner), old)
		}
		return a.Print(c.stdout)
	})
}
