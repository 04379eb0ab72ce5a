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
	c.add(g, []subcommand{{"add", (*cli).stepAdd}, {"alter", (*cli).stepAlter}, {"drop", (*cli).stepDrop}})
	return group(g)
}

func (c *cli) stepAdd() *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use: "add JOB --name STEP --sql STATEMENT|--http URL|--exec PROGRAM|--shell TEXT|--mail-to ADDRESS", Short: "Add a step to a job", Args: positional("JOB"),
		Long: `Adds a step at the end, or before another step. Runs that are under way count steps by position: such a run continues
with the step that has its position then.`,
		Example: `  dbjobs job step add rollup --name notify --http https://example.org/hook
  dbjobs job step add rollup --name check --sql "SELECT 1 FROM totals WHERE n < 0" --fail-if rows --before tell`,
	}
	given := definitionFlags(cmd, manifest.StepFlags())
	cmd.Flags().StringVar(&before, "before", "", "add it before this step (at the end)")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		e := manifest.Edit{Command: "job step add", Given: given(), Now: time.Now()}
		return c.alterJob(ctx, s, args[0], func(j store.Job) (*manifest.Manifest, error) { return e.AddStep(j, before) })
	})
	return c.alters(cmd)
}

func (c *cli) stepAlter() *cobra.Command {
	e := manifest.Edit{Command: "job step alter"}
	cmd := &cobra.Command{
		Use: "alter JOB STEP", Short: "Change a step of a job", Args: positional("JOB", "STEP"),
		Long: `Changes the fields that the flags name, and nothing else of the step. --name gives the step another name; references to
it, such as on-failure of another step, have to be changed first. --reset FLAG gives a field its default again.`,
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
		return c.alterJob(ctx, s, args[0], func(j store.Job) (*manifest.Manifest, error) { return e.AlterStep(j, args[1]) })
	})
	return c.alters(cmd)
}

func (c *cli) stepDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drop JOB STEP", Short: "Remove a step from a job", Args: positional("JOB", "STEP"),
		Long: `Removes a step from a job. The only step of a job cannot be removed. Runs that are under way count steps by position: such
a run continues with the step that has its position then.`,
		Example: `  dbjobs job step drop rollup tell`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		e := manifest.Edit{Command: "job step drop", Now: time.Now()}
		return c.alterJob(ctx, s, args[0], func(j store.Job) (*manifest.Manifest, error) { return e.DropStep(j, args[1]) })
	})
	return c.alters(cmd)
}

func (c *cli) jobSchedule() *cobra.Command {
	g := &cobra.Command{Use: "schedule", Short: "Add schedules to a job, and remove them from it"}
	c.add(g, []subcommand{{"add", (*cli).jobScheduleAdd}, {"drop", (*cli).jobScheduleDrop}})
	return group(g)
}

func (c *cli) jobScheduleAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add JOB RULE-OR-NAME", Short: "Add a schedule, or a rule of its own, to a job", Args: positional("JOB", "RULE-OR-NAME"),
		Long: `Adds a schedule by its name, or a rule of the job's own. A job has at most one rule of its own, and any number of
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
		return c.alterJob(ctx, s, args[0], func(j store.Job) (*manifest.Manifest, error) { return e.AddSchedule(j, args[1], names) })
	})
	return c.alters(cmd)
}

func (c *cli) jobScheduleDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drop JOB RULE-OR-NAME", Short: "Remove a schedule, or its own rule, from a job", Args: positional("JOB", "RULE-OR-NAME"),
		Long: `Removes a schedule from a job by its name, or the job's own rule by its text. The schedule itself stays. Times that are
due and not decided yet become a recorded gap.`,
		Example: `  dbjobs job schedule drop rollup nightly`,
	}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		e := manifest.Edit{Command: "job schedule drop", Now: time.Now()}
		return c.alterJob(ctx, s, args[0], func(j store.Job) (*manifest.Manifest, error) { return e.DropSchedule(j, args[1]) })
	})
	return c.alters(cmd)
}
