package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// instanceVariable names the database that a tick is meant for. It is no flag: it belongs to the host, so that a copied
// command line does not carry it along.
const instanceVariable = "DBJOBS_INSTANCE"

// tickFlags are the settings of a pass, each with a variable.
type tickFlags struct {
	name           string
	startupID      string
	limit          int
	concurrency    int
	budget         store.Duration
	maxClockSkew   store.Duration
	dryRun         bool
	failOnJobError bool
	verbose        bool
}

func (c *cli) tick() *cobra.Command {
	f := tickFlags{maxClockSkew: store.Duration(10 * time.Minute)}
	cmd := &cobra.Command{
		Use:   "tick",
		Short: "Run one pass: decide what became due, execute what may run, exit",
		Long: `Runs one pass. Every overdue occurrence is decided on and recorded, runs are executed, and the process exits.
Any number of ticks may run at once. A pass with nothing to do prints nothing, so that cron has nothing to mail;
--json always prints the report. A job that fails is recorded and is no failure of the pass, unless
--fail-on-job-error says so.`,
		Example: `  * * * * * DBJOBS_DATABASE_URL=postgres://jobs@db/app dbjobs tick`,
		Args:    positional(),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "tick", "name of the trigger: its silences are recorded under it")
	flags.StringVar(&f.startupID, "startup-id", "", "identity of a start, such as the machine's boot id: jobs with on_startup run once for each")
	flags.IntVar(&f.limit, "limit", 0, "start at most so many runs; 0 is no limit")
	flags.IntVar(&f.concurrency, "concurrency", 4, "runs side by side")
	flags.Var(durationFlag{&f.budget}, "budget", "time for the whole pass, such as 50s; 0s is no limit")
	flags.Var(durationFlag{&f.maxClockSkew}, "max-clock-skew", "refuse to run if the database's clock differs by more; 0s is off")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only tell what is due")
	flags.BoolVar(&f.failOnJobError, "fail-on-job-error", false, "exit with 3 if a job failed")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the pass does")
	for flag, name := range map[string]string{
		"name": "DBJOBS_NAME", "startup-id": "DBJOBS_STARTUP_ID", "limit": "DBJOBS_LIMIT", "concurrency": "DBJOBS_CONCURRENCY", "budget": "DBJOBS_BUDGET",
		"max-clock-skew": "DBJOBS_MAX_CLOCK_SKEW", "fail-on-job-error": "DBJOBS_FAIL_ON_JOB_ERROR",
	} {
		variable(cmd, flag, name)
	}
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		if f.limit < 0 || f.concurrency < 1 {
			return badInput("--limit wants 0 or more, --concurrency 1 or more")
		}
		s, err := c.open(cmd, probe)
		if err != nil {
			return err
		}
		defer s.Close()
		return c.runTick(cmd.Context(), s, f)
	})
	return c.prints(cmd)
}

func (c *cli) runTick(ctx context.Context, s *store.Store, f tickFlags) error {
	x, err := executor.NewSQL(s)
	if err != nil {
		return err
	}
	defer x.Close()
	instance, _ := c.env(instanceVariable)
	t := tick.Tick{
		Store:     s,
		Executors: executor.Registry{"sql": x},
		Name:      f.name, Holder: holder(), Version: build().Version, Instance: instance,
		StartupID: f.startupID, Limit: f.limit, Concurrency: f.concurrency, Budget: time.Duration(f.budget), MaxClockSkew: time.Duration(f.maxClockSkew), DryRun: f.dryRun,
		Log: c.logger(f.verbose), Now: time.Now,
	}
	r, err := t.Run(ctx)
	// What was done is told also when the pass failed after it.
	if err == nil || r.Decided+r.Started > 0 {
		told := c.print(r, func() error { return report.Tick(c.stdout, r) })
		err = errors.Join(err, told)
	}
	for _, p := range r.Parked {
		c.say("job %s is parked until it is mended: %s", p.Job, p.Error)
	}
	if err == nil && f.failOnJobError && r.Failed > 0 {
		return fmt.Errorf("%w: %d of %d runs", errJobFailed, r.Failed, r.Started)
	}
	return err
}

// holder names this start of the process: two that share a host and, one after the other, a process id differ in time.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%d", host, os.Getpid(), time.Now().UnixMilli())
}

// logger writes to standard error, without what the database's URL keeps secret.
func (c *cli) logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(scrubber{c}, &slog.HandlerOptions{Level: level}))
}

// scrubber is standard error for log lines.
type scrubber struct{ c *cli }

func (s scrubber) Write(b []byte) (int, error) {
	if _, err := fmt.Fprint(s.c.stderr, s.c.db.Scrub(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
