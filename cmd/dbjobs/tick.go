package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
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
	metrics        string
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
	flags.StringVar(&f.metrics, "metrics", defaultMetrics(c.env), "none, emf for CloudWatch's embedded metric format, or FILE.prom for node_exporter's textfile collector")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the pass does")
	for flag, name := range map[string]string{
		"name": "DBJOBS_NAME", "startup-id": "DBJOBS_STARTUP_ID", "limit": "DBJOBS_LIMIT", "concurrency": "DBJOBS_CONCURRENCY", "budget": "DBJOBS_BUDGET",
		"max-clock-skew": "DBJOBS_MAX_CLOCK_SKEW", "fail-on-job-error": "DBJOBS_FAIL_ON_JOB_ERROR", "metrics": "DBJOBS_METRICS",
	} {
		variable(flags, flag, name)
	}
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		if f.limit < 0 || f.concurrency < 1 {
			return badInput("--limit wants 0 or more, --concurrency 1 or more")
		}
		if err := checkMetrics(f.metrics); err != nil {
			return err
		}
		return c.observe(f.name, f.metrics, func() (tick.Report, error) {
			s, err := c.open(cmd, probe)
			if err != nil {
				return tick.Report{}, err
			}
			defer c.close(s)
			return c.runTick(cmd.Context(), s, f)
		})
	})
	return c.prints(cmd)
}

func (c *cli) runTick(ctx context.Context, s *store.Store, f tickFlags) (tick.Report, error) {
	x, err := executor.NewSQL(s)
	if err != nil {
		return tick.Report{}, err
	}
	defer x.Close()
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	instance, _ := c.env(instanceVariable)
	t := tick.Tick{
		Store:     s,
		Executors: executor.Registry{"sql": x},
		Name:      f.name, Holder: holder(c.env), Version: build().Version, Instance: instance,
		StartupID: f.startupID, Limit: f.limit, Concurrency: f.concurrency, Budget: time.Duration(f.budget), MaxClockSkew: time.Duration(f.maxClockSkew), DryRun: f.dryRun,
		Gauges: f.metrics != noMetrics, Log: c.logger(c.logFormat, level), Now: time.Now,
	}
	r, err := t.Run(ctx)
	// What was done is told also when the pass failed after it. Where log lines are for programs, one of them tells it
	// instead of the table.
	if (err == nil || r.Decided+r.Started > 0) && (c.asJSON || c.logFormat == logs.Text || f.dryRun) {
		told := c.print(r, func() error { return report.Tick(c.stdout, r) })
		err = errors.Join(err, told)
	}
	for _, p := range r.Parked {
		c.tell(slog.LevelWarn, "job %s is parked until it is mended: %s", p.Job, p.Error)
	}
	if err == nil && f.failOnJobError && r.Failed > 0 {
		return r, fmt.Errorf("%w: %d of %d runs", errJobFailed, r.Failed, r.Started)
	}
	return r, err
}

// holder names this start of the process, and where its log is: what a platform calls it, else the host. A function's
// instances share names and process ids, so that only chance tells them apart.
func holder(env settings.Lookup) string {
	host, _ := env("AWS_LAMBDA_LOG_STREAM_NAME")
	if host == "" {
		host, _ = env("CLOUD_RUN_EXECUTION")
	}
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			host = "unknown"
		}
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}
