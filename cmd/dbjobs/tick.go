package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/metrics"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// instanceVariable names the database that a tick is meant for. It is not a flag, because it belongs to the
// host: a copied command line must not carry it along. An alarm carries it to a later tick of the same host.
const instanceVariable = "DBJOBS_INSTANCE"

// usualClockSkew is the default of --max-clock-skew.
const usualClockSkew = store.Duration(10 * time.Minute)

// tickFlags are the settings of a pass. Each can be set by a variable.
type tickFlags struct {
	name           string
	startupID      string
	limit          int
	concurrency    int
	budget         store.Duration
	length         store.Duration
	queues         []string // of work
	grace          store.Duration
	maxClockSkew   store.Duration
	late           store.Duration // of tick
	dryRun         bool
	monitored      bool // the host's heartbeat is for its passes
	waits          bool // a pass that an alarm has started early waits for what is due
	failOnJobError bool
	wake           string         // the kind of alarm; empty: none
	lead           store.Duration // of alarms
	alarm          tick.Alarm     // of this kind; nil: none
	quiet          bool
	verbose        bool
	metrics        string
}

func (c *cli) tick() *cobra.Command {
	f := tickFlags{monitored: true, waits: true}
	cmd := &cobra.Command{
		Use:   "tick",
		Short: "Run one pass: decide what became due, execute it, exit",
		Long: `Runs one pass: decides about every nominal time that is due, records the decisions, executes runs, and exits. Any number
of ticks may run at the same time.

A pass with nothing to do prints nothing, but every pass warns about jobs that are parked (the definition cannot be
used) or failing (a run has failed or was lost, and none has succeeded since). It does not warn about jobs that are
disabled or removed, or that somebody has paused. A line for cron needs --quiet: then a pass prints only problems, such
as failed runs. Jobs, and queued runs whose timeout never fits --budget, are then named only by the pass that parks a
job or finds such a run, and by the first pass of each hour. Instead of them, a pass that had no time to look for parked
and failing jobs says that they are not known; --fail-on-job-error does not count them then. --json always prints the report. It names the first 500
runs that failed and the first 500 others, and counts the rest as more_runs. A failed run is recorded. It does not make the pass fail, unless --fail-on-job-error is given.

With --for 55s the process sleeps until something is due and then runs another pass, until that time is over. So one
trigger per minute is enough for schedules that are finer than a minute. A run that is still executing then continues,
unless --budget ends it. With more than a minute, as in --for 1h, the process lasts for that time, and runs a pass each
minute at least, as with a trigger of each minute.

With --database given several times, or several databases in the settings of the host, each gets a pass, all at the
same time. What fails for one stops none of the others.`,
		Example: `  * * * * * dbjobs tick --quiet
  * * * * * dbjobs tick --quiet --for 55s`,
		Args: positional(),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.startupID, "startup-id", "", "identity of this start, such as the machine's boot id: jobs with on_startup run once for each identity")
	flags.Var(durationFlag{&f.length}, "for", "run a pass whenever something is due, until this time is over, such as 55s; 0s runs a single pass")
	f.late = store.Duration(15 * time.Minute)
	flags.Var(durationFlag{&f.late}, "late", "how long after its nominal time a run is late, for hooks, and how long this trigger may be silent before the next tick reports it (five minutes at least); 0s turns both off")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only print what a pass would do now")
	fromVariables(cmd, "startup-id", "for", "late")
	f.register(cmd, c.env)
	cmd.RunE = c.pass(&f, func(ctx context.Context, t *tick.Tick) (tick.Report, error) {
		switch {
		case f.length > 0 && f.dryRun && flags.Changed("for"):
			return tick.Report{}, badInput("--for and --dry-run exclude each other")
		case f.length > 0 && !f.dryRun: // a variable is for the passes of this host
			return t.RunFor(ctx, time.Duration(f.length))
		}
		return t.Run(ctx)
	}, f.unlessQuiet(report.Tick))
	return c.prints(cmd)
}

func (c *cli) work() *cobra.Command {
	var f tickFlags
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Execute the runs of queues that ticks leave to workers, then exit",
		Long: `Executes the queued runs that were made before it began, until none of these is left. It takes them from the queues
given with --queue, or from all queues but "tick", in turn, beginning with any of them; within a queue, runs with a higher
priority come first, then older runs. A worker decides nothing: the next tick handles what comes after a run, such as a
retry or the next occurrence.

Any number of workers may run at the same time. A worker that finds nothing prints nothing.`,
		Example: `  * * * * * dbjobs work --queue reports --concurrency 2 --budget 50s`,
		Args:    positional(),
	}
	cmd.Flags().StringSliceVar(&f.queues, "queue", nil, "take runs from this queue; may be given several times (all queues but tick)")
	fromVariables(cmd, "queue")
	f.register(cmd, c.env)
	cmd.RunE = c.pass(&f, func(ctx context.Context, t *tick.Tick) (tick.Report, error) { return t.Work(ctx) }, f.unlessQuiet(report.Work))
	return c.prints(cmd)
}

// nameOfTicks returns the name for the ticks that the alarms of a pass start; empty: their default. A tick hands its own on. That
// of a worker is not for ticks.
func (c *cli) nameOfTicks(cmd *cobra.Command, f *tickFlags) string {
	switch {
	case cmd.Name() != "tick":
		return c.usualName()
	case f.name == cmd.Flag("name").DefValue:
		return ""
	}
	return f.name
}

// whole returns the longest time that a pass may take, or 0 if there is no limit.
func (f *tickFlags) whole() store.Duration { return cmp.Or(f.budget, f.length) }

// within limits a context to the time that the whole pass may take.
func (f *tickFlags) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if most := f.whole(); most > 0 {
		return context.WithTimeout(ctx, time.Duration(most))
	}
	return ctx, func() {}
}

// left returns what remains of a length of time. Without a limit it returns no limit.
func left(of store.Duration, spent time.Duration) time.Duration {
	if of == 0 {
		return 0
	}
	return max(time.Duration(of)-spent, time.Millisecond)
}

// register adds the flags that a tick and a worker have in common.
func (f *tickFlags) register(cmd *cobra.Command, env settings.Lookup) {
	f.maxClockSkew, f.grace = usualClockSkew, store.Duration(10*time.Second)
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", cmd.Name(), "name of the trigger in logs and metrics; a tick also records under it when it ran; of the variable, a worker has it with -work")
	flags.IntVar(&f.limit, "limit", 0, "start at most `N` runs; 0 means no limit")
	flags.IntVar(&f.concurrency, "concurrency", 0, "execute up to `N` runs at the same time, each in a session of its own; 0 means 4 at first; if more runs wait, a quarter of the connections that the server has left, from 2 to 8")
	flags.Var(durationFlag{&f.budget}, "budget", "time for the whole pass, such as 50s; 0s means no limit, but one minute for each answer of the database")
	flags.Var(durationFlag{&f.grace}, "grace", "time that executing runs get to end when the process receives SIGINT, SIGTERM or SIGHUP; a second SIGINT or SIGTERM ends it at once")
	flags.Var(durationFlag{&f.maxClockSkew}, "max-clock-skew", "refuse to run if the clocks of database and host differ by more; 0s turns this off")
	flags.BoolVar(&f.failOnJobError, "fail-on-job-error", false, "exit with code 3 if a run failed; tick: also while a job is failing or parked")
	flags.StringVar(&f.metrics, "metrics", defaultMetrics(env), "where metrics go: none, emf (CloudWatch embedded metric format), or FILE.prom for node_exporter's textfile collector, where ${name} in the path is the name of the trigger")
	flags.StringVar(&f.wake, "wake", "", "set an alarm of this `KIND` for what is due next, so that no trigger has to come each minute: aws-scheduler, gcp-tasks:QUEUE, systemd, at, or exec:PROGRAM")
	flags.Var(durationFlag{&f.lead}, "wake-lead", "set alarms this much earlier, such as 30s for a database that has to wake; the pass then waits for what is due")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only problems: cron mails everything that is printed")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the pass does")
	fromVariables(cmd, "name", "limit", "concurrency", "budget", "grace", "max-clock-skew", "fail-on-job-error", "metrics", "wake", "wake-lead")
}

// unlessQuiet returns print. With --quiet, print gets only what went wrong, and is not called if
// nothing did. A dry run was asked for its answer, and has no other one.
func (f *tickFlags) unlessQuiet(print func(io.Writer, tick.Report) error) func(io.Writer, tick.Report) error {
	return func(w io.Writer, r tick.Report) error {
		if f.quiet && !r.DryRun {
			if r = report.Wrong(r); r.Failed+r.Lost == 0 {
				return nil
			}
		}
		return print(w, r)
	}
}

type (
	passFunc  = func(context.Context, *tick.Tick) (tick.Report, error) // runs a pass
	printFunc = func(io.Writer, tick.Report) error                     // prints its report for people
)

// pass makes the body of a command from a function that runs a pass.
func (c *cli) pass(f *tickFlags, run passFunc, human printFunc) func(*cobra.Command, []string) error {
	return c.do(func(cmd *cobra.Command, _ []string) error {
		if f.limit < 0 || f.concurrency < 0 {
			return badInput("--limit and --concurrency must be 0 or more")
		}
		c.nameWorker(cmd, f)
		if err := store.CheckTrigger(f.name, f.startupID, f.queues); err != nil {
			return err
		}
		if err := checkMetrics(f.metrics); err != nil {
			return err
		}
		if f.dryRun { // it is no pass, and its figures would hide that none comes
			f.metrics = noMetrics
		}
		if err := c.readAlarm(f, c.nameOfTicks(cmd, f)); err != nil {
			return c.unbegun(cmd.Context(), f, err)
		}
		list, err := c.several()
		switch {
		case err != nil:
			return c.unbegun(cmd.Context(), f, err)
		case list != nil:
			return c.serveEach(cmd, f, list, run, human)
		}
		m, err := c.onePass(cmd, f, run, human)
		c.writeMetrics(f.metrics, m)
		return err
	})
}

// onePass runs a pass on one database, and reports how it ended. It returns the figures of the pass in every
// case.
func (c *cli) onePass(cmd *cobra.Command, f *tickFlags, run passFunc, human printFunc) (metrics.Pass, error) {
	r, err := c.tellPass(cmd, f, run, human)
	return c.ended(cmd.Context(), f, r, err), err
}

// unbegun reports a pass that has failed before it opened a database.
func (c *cli) unbegun(ctx context.Context, f *tickFlags, err error) error {
	c.writeMetrics(f.metrics, c.ended(ctx, f, tick.Report{}, err))
	return err
}

// ended returns the figures of a pass, and writes its log line.
func (c *cli) ended(ctx context.Context, f *tickFlags, r tick.Report, err error) metrics.Pass {
	m := metrics.Pass{Name: f.name, Ended: time.Now(), Took: time.Since(c.began), Failed: err != nil && !errors.Is(err, errJobFailed), Report: r}
	if c.chosen != nil {
		m.Database = c.chosen.name
	}
	c.logPass(ctx, &m, f.metrics == embeddedMetrics, err)
	return m
}

// tellPass runs a pass, signals the heartbeat of the host, and prints what the pass did.
func (c *cli) tellPass(cmd *cobra.Command, f *tickFlags, run passFunc, human printFunc) (tick.Report, error) {
	ctx, began := cmd.Context(), time.Now()
	beat, err := c.beginHeartbeat(ctx, f)
	if err != nil {
		return tick.Report{}, err
	}
	r, err := c.openAndRun(cmd, f, began, run)
	if untold := c.endHeartbeat(ctx, beat, f.patience(time.Since(began)), report.Summary(r), err); untold != nil {
		r.AddUntold(tick.Untold{Error: c.scrub(untold.Error())})
	}
	// What the pass did is printed even if it failed afterwards. If the log format is for programs, a log line
	// replaces the table.
	if (err == nil || r.Decided+r.Started > 0) && (c.asJSON || c.logFormat == logs.Text || f.dryRun) {
		told := c.print(r, func() error { return human(c.stdout, r) })
		err = errors.Join(err, told)
	}
	c.tellReport(&r, f)
	if err == nil && f.failOnJobError {
		err = jobError(&r)
	}
	return r, err
}

// openAndRun runs a pass, and closes what it opened.
func (c *cli) openAndRun(cmd *cobra.Command, f *tickFlags, began time.Time, run passFunc) (tick.Report, error) {
	ctx := cmd.Context()
	opening, cancel := f.within(ctx)
	defer cancel()
	s, err := c.openWithin(opening, cmd, probe)
	if err != nil {
		return unreached(ctx, f, time.Since(began), err)
	}
	defer c.close(s)
	return c.runPass(ctx, s, f, time.Since(began), run)
}

// unreached ends a pass whose database could not be opened.
func unreached(ctx context.Context, f *tickFlags, spent time.Duration, failure error) (tick.Report, error) {
	t := tick.Tick{Alarm: f.alarm, DryRun: f.dryRun, Budget: left(f.budget, spent), Now: time.Now}
	return t.Unreached(ctx, failure)
}

// tellReport logs a warning for each thing that needs attention.
func (c *cli) tellReport(r *tick.Report, f *tickFlags) {
	if !f.quiet || r.Remind {
		c.tellStates(r)
		c.tellTooLong(r, f)
	}
	if !r.SilentSince.IsZero() {
		c.tell(slog.LevelWarn, "the trigger %q was silent for %s, since %s: it did not come, or did not reach the database; look at what starts it", r.Name,
			r.SilentUntil.Sub(r.SilentSince).Round(time.Second), report.Instant(r.SilentSince))
	}
	for _, u := range r.Unheard {
		whose := "job " + u.Job
		if u.Job == "" {
			whose = fmt.Sprintf("the trigger %q", r.Name)
		}
		c.tell(slog.LevelWarn, "%s: %s: its hook %s was not run: %s", whose, u.Event, u.Hook, u.Error)
	}
	if more := r.UnheardEvents - len(r.Unheard); more > 0 {
		c.tell(slog.LevelWarn, "hooks of %s were not run", report.Plural(more, "more event"))
	}
	for _, u := range r.Untold {
		c.tellUntold(u)
	}
	if more := r.UntoldSignals - len(r.Untold); more > 0 {
		c.tell(slog.LevelWarn, "and %s not delivered", report.Plural(more, "more heartbeat signal"))
	}
	for _, l := range r.Locked {
		c.tell(slog.LevelWarn, "job %s is left for a later pass: another session holds a lock on %s", l.Job, l.What)
	}
	if r.LockedJobs > 0 {
		c.tell(slog.LevelWarn, "%s left because of locks; %s", report.Plural(r.LockedJobs, "job"), r.LockHolders)
	}
	if r.Unrecorded != "" {
		c.tell(slog.LevelWarn, "the pass could not be recorded: %s", r.Unrecorded)
	}
	if r.Warning != "" {
		c.tell(slog.LevelWarn, "%s", r.Warning)
	}
	if r.Ahead > 0 {
		c.tell(slog.LevelWarn, "%s will not run before %s, because the database's clock was wrong when that was planned; run `dbjobs job replan` to plan from now",
			report.Plural(r.Ahead, "job"), report.Instant(r.AheadUntil))
	}
	if r.AheadUnknown != "" {
		c.tell(slog.LevelWarn, "%s", r.AheadUnknown)
	}
}

func (c *cli) runPass(ctx context.Context, s *store.Store, f *tickFlags, spent time.Duration, run passFunc) (tick.Report, error) {
	set, err := c.host()
	if err != nil {
		return tick.Report{}, err
	}
	executors, err := executor.Open(s, c.permissions(set, s))
	if err != nil {
		return tick.Report{}, err
	}
	defer executors.Close()
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	instance, _ := c.env(instanceVariable)
	progress, end := c.passProgress()
	defer end()
	return run(ctx, &tick.Tick{
		Store:     s,
		Executors: executors,
		Name:      f.name, Holder: holder(c.env), Version: build().Version, Instance: instance, Queues: f.queues, Owners: set.OwnerNames(),
		StartupID: f.startupID, Limit: f.limit, Concurrency: f.concurrency, Budget: left(f.budget, spent), Grace: time.Duration(f.grace), MaxClockSkew: time.Duration(f.maxClockSkew), Late: time.Duration(f.late), On: set.On, DryRun: f.dryRun,
		Gauges: f.metrics != noMetrics || c.logFormat != logs.Text, Log: c.logger(c.logFormat, level), Now: time.Now,
		Alarm: f.alarm, Lead: time.Duration(f.lead), Progress: progress,
	})
}

// holder names this process so that its log can be found: by the platform's name for it, or else by the host.
// Instances of a function can have the same name and process id, so it adds a random part.
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
