package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) jobStep() *cobra.Command {
	g := &cobra.Command{Use: "step", Short: "Add, change and drop steps of a job"}
	g.AddCommand(c.stepAdd(), c.stepAlter(), c.stepDrop())
	return group(g)
}

func (c *cli) stepAdd() *cobra.Command {
	var dryRun bool
	var before string
	cmd := &cobra.Command{
		Use: "add JOB --name STEP --sql STATEMENT|--http URL|--exec PROGRAM|--shell TEXT|--mail-to ADDRESS", Short: "Add a step to a job", Args: positional("JOB"),
		Long: `Adds a step at the end, or before another one. A run that is under way goes on with the step that then has its place.`,
		Example: `  dbjobs job step add rollup --name notify --http https://example.org/hook
  dbjobs job step add rollup --name check --sql "SELECT 1 FROM totals WHERE n < 0" --fail-if rows --before tell`,
	}
	given := definitionFlags(cmd, manifest.StepFlags())
	cmd.Flags().StringVar(&before, "before", "", "the step before which it stands (at the end)")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		e := manifest.Edit{Command: "job step add", Given: given(), Now: time.Now()}
		return c.alterJob(ctx, s, args[0], dryRun, func(j store.Job) (*manifest.Manifest, error) { return e.AddStep(j, before) })
	})
	return c.alters(cmd, &dryRun)
}

func (c *cli) stepAlter() *cobra.Command {
	var dryRun bool
	e := manifest.Edit{Command: "job step alter"}
	cmd := &cobra.Command{
		Use: "alter JOB STEP", Short: "Change a step of a job", Args: positional("JOB", "STEP"),
		Long: `Changes what the flags name, and nothing else of the step. --name gives the step another name; what refers to it, such
as on-failure of another step, has to be changed first. --reset FLAG gives a flag its default again.`,
		Example: `  dbjobs job step alter rollup load --timeout 10m --attempts 5
  dbjobs job step alter rollup load --reset timeout`,
	}
	given := definitionFlags(cmd, manifest.StepFlags())
	resets(cmd, &e.Reset)
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if e.Given = given(); len(e.Given)+len(e.Reset) == 0 {
			return badInput("job step alter needs a flag that says what to change; see dbjobs job step alter --help")
		}
		e.Now = time.Now()
		return c.alterJob(ctx, s, args[0], dryRun, func(j store.Job) (*manifest.Manifest, error) { return e.AlterStep(j, args[1]) })
	})
	return c.alters(cmd, &dryRun)
}

func (c *cli) stepDrop() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "drop JOB STEP", Short: "Take a step away from a job", Args: positional("JOB", "STEP"),
		Long: `Takes a step away. The last one stays: a job without a step does nothing. A run that is under way goes on with the step
that then has its place.`,
		Example: `  dbjobs job step drop rollup tell`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		e := manifest.Edit{Command: "job step drop", Now: time.Now()}
		return c.alterJob(ctx, s, args[0], dryRun, func(j store.Job) (*manifest.Manifest, error) { return e.DropStep(j, args[1]) })
	})
	return c.alters(cmd, &dryRun)
}

func (c *cli) jobSchedule() *cobra.Command {
	g := &cobra.Command{Use: "schedule", Short: "Add schedules to a job, and take them away"}
	g.AddCommand(c.jobScheduleAdd(), c.jobScheduleDrop())
	return group(g)
}

func (c *cli) jobScheduleAdd() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "add JOB RULE-OR-NAME", Short: "Let a job run at the times of one more schedule, or of a rule of its own", Args: positional("JOB", "RULE-OR-NAME"),
		Long: `Adds a schedule by its name, or a rule that the job has for itself. A job has one rule of its own, and any number of
schedules.`,
		Example: `  dbjobs job schedule add rollup nightly
  dbjobs job schedule add rollup "0 12 * * *" --zone Europe/Berlin`,
	}
	flags := make([]manifest.Flag, 0, len(manifest.RuleFlags))
	for _, fl := range manifest.RuleFlags {
		if fl.Name != "rule" && fl.Name != "description" {
			flags = append(flags, fl)
		}
	}
	given := definitionFlags(cmd, flags)
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		known, err := s.KnownSchedules(ctx, args[1:])
		if err != nil {
			return err
		}
		var names []string
		for name := range known {
			names = append(names, name)
		}
		e := manifest.Edit{Command: "job schedule add", Given: given(), Now: time.Now()}
		return c.alterJob(ctx, s, args[0], dryRun, func(j store.Job) (*manifest.Manifest, error) { return e.AddSchedule(j, args[1], names) })
	})
	return c.alters(cmd, &dryRun)
}

func (c *cli) jobScheduleDrop() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "drop JOB RULE-OR-NAME", Short: "Take a schedule away from a job, or the rule of its own", Args: positional("JOB", "RULE-OR-NAME"),
		Long: `Takes a schedule away by its name, or the rule of the job's own by its text. The schedule itself stays. What was due by
then and is not decided yet is a recorded gap.`,
		Example: `  dbjobs job schedule drop rollup nightly`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		e := manifest.Edit{Command: "job schedule drop", Now: time.Now()}
		return c.alterJob(ctx, s, args[0], dryRun, func(j store.Job) (*manifest.Manifest, error) { return e.DropSchedule(j, args[1]) })
	})
	return c.alters(cmd, &dryRun)
}
