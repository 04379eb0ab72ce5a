package tick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// OwnQueue is the queue whose runs a tick takes itself.
const OwnQueue = "tick"

const (
	heartbeat  = 30 * time.Second        // between two signs of life
	lease      = 3 * heartbeat           // what a delivery or a heartbeat gives
	look       = 1500 * time.Millisecond // between two looks for what is to be cancelled
	decideSize = 1000                    // jobs a batch, unless Batch says otherwise

	mostForeseen = 20_000 // runs that a pass makes and may settle with their ends: some megabytes
	mostJoined   = 400    // runs that follow several others and that a take names; what exceeds it waits for the next pass
	mostKept     = 20_000 // what runs say about the history to keep, until only the last run of each job counts: a megabyte
)

// Recovers is the instant after which a pass takes the process of a run for dead, if its lease ends then.
func Recovers(lease time.Time) time.Time { return lease.Add(heartbeat) }

// Tick is a pass to be run. Store, Executors, Name, Holder and Now are required.
type Tick struct {
	Store     *store.Store
	Executors executor.Registry

	Name     string // of the trigger: the record of the pass has this name
	Holder   string // host and process: unique for each start of a process
	Version  string // of the program, for the record
	Instance string // name of the database that is meant; a database with another name is refused

	Owners       []string      // the owners, beside its own login, as which this host can log in; used where the installation has owners
	Queues       []string      // the queues that Work takes from; none: all except the tick's own
	StartupID    string        // identifies the start of the machine or of the function; jobs with on_startup run once for each start
	Limit        int           // the most runs to start; 0: no limit; below 0: start none, decide only
	Concurrency  int           // runs side by side; 0: 4, then a quarter of the connections that the server has left, from 2 to 8
	Batch        int           // jobs decided in one transaction; 0: 1,000
	Budget       time.Duration // for the whole pass; 0: none
	Grace        time.Duration // for the runs that execute when the context is cancelled; it lies within the budget
	MaxClockSkew time.Duration // between the host's clock and the database's; 0: any
	Late         time.Duration // a run is late this long after its nominal time, a pass this long after the pass before; 0: nothing is late
	On           store.Hooks   // hooks of this host: for events for which a job has no hook, and for a silence of the trigger
	DryRun       bool          // only report what is due
	Gauges       bool          // also report what needs one more statement: the jobs that are paused

	// Alarm, if not nil, is set after the last pass, for the instant at which something is due next. It is set earlier by
	// Lead, because a database may need time to wake, or the platform may be late. A pass that starts early waits until
	// the work is due. With a Budget, a Lead is at most LongestLead.
	Alarm Alarm
	Lead  time.Duration

	// Progress, if not nil, is called with how far the pass is: how many jobs are decided, how many runs have started, and
	// how many of these runs have ended.
	Progress func(decided, started, ended int)

	Log   *slog.Logger
	Now   func() time.Time // the host's clock: for budgets and the skew, never for what is due
	whole time.Duration    // in a later pass of RunFor: the budget of all passes; Budget is what is left of it
	tried time.Time        // in a later pass of RunFor: when the pass before has ended, even if it met no database
	skew  time.Duration    // in a later pass of RunFor: by how much the host's clock was ahead of the database's, by the newest answer
	// untold is Report.untold of the pass before: until a pass is on record, the next one finds the same silence.
	untold time.Duration
	early  bool // in a later pass of RunFor: an earlier one has stopped a program for the end of the budget
	// monitor sends the heartbeats of runs to their services; nil outside of monitored.
	monitor *monitor
	// Sleep is how RunFor waits; nil: a real sleep. It returns early if the context ends.
	Sleep func(context.Context, time.Duration)
}

// Run runs the pass. The report says what was done, even if there is an error too. Failed jobs are no error.
//
// With an Alarm, Run continues as long as the next work is due so soon that an alarm would come too late for it: see RunFor.
func (t *Tick) Run(ctx context.Context) (Report, error) {
	if t.Alarm != nil && !t.DryRun {
		return t.RunFor(ctx, 0)
	}
	return t.monitored(ctx, func(t *Tick) (Report, error) { return t.run(ctx) })
}

func (t *Tick) run(ctx context.Context) (Report, error) {
	p, err := t.begin(ctx)
	defer p.unwatch()
	if err == nil {
		err = p.raiseSilence(ctx)
	}
	if err != nil || p.report.CutShort != "" || !p.hasWork() {
		return p.end(ctx, err)
	}
	work, stop := p.budget(ctx)
	defer stop()
	within := func(part func(context.Context) error) error { return p.cutShort(ctx, work, part(work)) }
	return p.end(ctx, errors.Join(
		within(p.decideAndExecute),
		p.finishAll(ctx),    // runs that execute end; runs that still wait for a place are given back
		within(p.prune),     // old history is deleted
		within(p.leftOver))) // the report names what did not fit into the budget
}

// hasWork reports whether there is something to do here. The probe finds what the database knows. There
// is also work after each start of this host, and when the regular check of all plans is due.
func (p *pass) hasWork() bool {
	if p.t.DryRun || p.probe == nil || p.probe.Frozen {
		return false
	}
	return p.probe.Anything() || p.probe.CheckDue() || p.t.StartupID != ""
}

// decideAndExecute decides for the jobs that need a decision, and executes the queued runs, until
// neither is left. After the first round, jobs need a decision only because of their runs.
func (p *pass) decideAndExecute(work context.Context) error {
	p.queues = []string{OwnQueue}
	p.through = p.probe.Now
	if p.probe.Calendar {
		left, err := p.t.Store.SeeCalendars(work, p.waits)
		if err != nil {
			return err
		}
		if p.waits -= len(left); len(left) > 0 {
			p.log.Warn("another session has locked schedules of edited calendars: a later pass tells them", "calendars", left)
		}
		p.probe.Need[store.ScheduleChanged] = true
	}
	for needs := p.needed(); ; needs = []store.Need{store.RunWakes} {
		if err := p.decide(work, needs); err != nil {
			return err
		}
		p.decided = true
		if err := p.takeAll(work); err != nil {
			return err
		}
		if p.quiet() {
			break
		}
		if err := p.await(work); err != nil {
			return err
		}
		if p.more() { // runs to execute beside the next decisions
			if err := p.take(work); err != nil {
				return err
			}
		}
	}
	if over(work) {
		return nil
	}
	return p.tellLocked(work)
}

// usedUp says in the report that the budget has ended the pass.
const usedUp = "the budget was used up; the next pass goes on"

// cutShort turns an error into a remark in the report if the end of the budget caused the error, or another writer of an SQLite file:
// the next pass does the rest. The context work ends with the budget.
func (p *pass) cutShort(ctx, work context.Context, err error) error {
	stop := stopped(work)
	if p.probe != nil && p.fileLocked(err) && errors.Is(err, store.ErrReadOnly) && (stop != nil || p.t.Store.Transient(err)) && ctx.Err() == nil {
		p.report.CutShort = writes // if it stays locked, the record of the pass finds that
		return nil
	}
	// If the end of the budget has closed a connection, the error says only that the connection is broken.
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnreachable)
	if !ended || stop == nil || ctx.Err() != nil {
		return err
	}
	p.report.CutShort = cmp.Or(p.report.CutShort, usedUp)
	return nil
}

// pass is a pass under way. The goroutine of Tick.run is the only one that writes to it. The goroutines that decide pages, execute
// runs, record their ends and send heartbeats read what begin has set. What they write, as in places, has a lock of its own or is atomic.
type pass struct {
	t        *Tick
	log      *slog.Logger
	probe    *store.Probe
	holder   store.Holder
	report   Report
	errs     []error
	troubled bool          // the newest probe has found jobs that are parked or failing
	unraised bool          // the host has a hook for the silence of the trigger, which is not raised yet: no record of this pass may end it
	recorded bool          // the pass is on record
	came     time.Duration // Tick.apart when the pass began
	deadlines
	decisions
	workers
}

// end closes the report and records the pass.
func (p *pass) end(ctx context.Context, err error) (Report, error) {
	if err = p.close(ctx, err); !p.recorded {
		p.report.untold = p.came
		if p.probe != nil {
			p.report.untold = p.probe.Gap(p.came)
		}
	}
	return p.report, err
}

// close records the pass, and reads what the report says beside its work. A pass that finds nothing to do makes only two round
// trips in total. A pass for another instance is no pass of a trigger of this database: its record would hide that the one
// of the same name comes no more.
func (p *pass) close(ctx context.Context, err error) error {
	asked := errors.Is(ctx.Err(), context.Canceled)
	ctx, cancel := p.afterWork(ctx)
	defer cancel()
	if errors.Is(err, store.ErrNoAnswer) {
		err = fmt.Errorf("%w; %s", err, p.t.Store.LockHolders(ctx))
	}
	if p.probe == nil || !p.report.meant {
		return err
	}
	if p.t.DryRun {
		if err == nil {
			_, err = p.trouble(ctx)
			err = p.unseen(ctx, err)
		}
		return err
	}
	if err == nil {
		err = p.countAhead(ctx)
	}
	facts := store.TickFacts{Name: p.t.Name, Holder: p.t.Holder, Version: p.t.Version, Decided: p.report.Decided, Started: p.report.Started, Failed: p.report.Failed,
		Took: p.t.Now().Sub(p.began), Came: p.came, Alarm: p.t.Alarm != nil, Checked: p.looked}
	switch {
	case err != nil && asked: // not what its statements say of that
		facts.Error = "interrupted: the process was asked to end"
	case err != nil:
		facts.Error = err.Error()
	}
	var recorded error
	switch {
	case !p.unraised:
		recorded = p.record(ctx, facts)
	case p.report.CutShort == writes:
		recorded = p.behindWriter(ctx)
	}
	if err == nil {
		err = recorded
	}
	if err == nil {
		err = p.unseen(ctx, p.lastLook(ctx))
		p.report.Unseen = err == nil && !p.report.States
	}
	return err
}

// countAhead counts the jobs that sleep because the clock was ahead. It has only half of the time that is left, so that the pass is on
// record even if no answer comes. Then the report says so: as long as nobody plans these jobs anew, no other pass may get an answer either.
func (p *pass) countAhead(ctx context.Context) error {
	most := p.grace() / 2
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	jobs, until, err := p.t.Store.Ahead(within, p.probe)
	if err != nil && errors.Is(stopped(within), context.DeadlineExceeded) { // an engine may answer with its own word for that
		p.report.AheadUnknown = fmt.Sprintf("the clock of the database was ahead, and how many jobs sleep because of that could not be counted in %s; "+
			"run `dbjobs job replan` to plan them from now", most.Round(time.Millisecond))
		return nil
	}
	if p.report.Ahead, p.report.AheadUntil = jobs, until; err != nil || jobs > 0 {
		return err
	}
	// Nothing sleeps any more. If another session has locked the record of that clock, nobody has to do anything: a later pass deletes it.
	err = p.t.Store.ForgetAhead(within, p.probe)
	if err != nil && (p.t.Store.Locked(err) || p.fileLocked(err) || errors.Is(stopped(within), context.DeadlineExceeded)) {
		p.log.Info("the record of a clock that was ahead is not deleted yet", "error", err)
		return nil
	}
	return err
}

// lastLook reads what the report says about the jobs and about the next pass.
func (p *pass) lastLook(ctx context.Context) error {
	p.report.Remind = p.report.Remind || len(p.report.Parked) > 0 || p.probe.FirstOfHour()
	worked := p.report.Decided+p.report.Started+len(p.report.Parked) > 0 // a run in back-off also wakes its job
	if worked || p.t.Alarm != nil && p.hasWork() {
		probe, err := p.t.Store.Probe(ctx, p.t.Name, OwnQueue)
		if err != nil {
			return err
		}
		p.found(probe)
	}
	return p.states(ctx)
}

// unseen turns an error into a remark in the report if the budget is used up, or, without one, the time that a pass has after its
// work. It is for statements that only the report needs: what the pass has done is on record, and what it has found at its
// beginning still holds.
func (p *pass) unseen(ctx context.Context, err error) error {
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnreachable)
	if !ended || stopped(ctx) == nil {
		return err
	}
	why := "the budget was used up before the last look at what is due next"
	if p.t.Budget <= 0 {
		why = "the last look at what is due next, and at the states of the jobs, took too long"
	}
	p.report.CutShort = cmp.Or(p.report.CutShort, why)
	return nil
}

// record writes the row of the pass. If another session has locked that row, or no answer comes, the report says so, and
// this is no error: the pass has done its work. If another process has locked the file, not even the report says it. It is an
// error after lockedLong, if the trigger came regularly before, and else, as with alarms, after some days: otherwise nobody would
// know that the database takes no writes, until something is due.
func (p *pass) record(ctx context.Context, facts store.TickFacts) error {
	most := 2 * time.Second
	if p.t.Store.Engine().OneWriter {
		most = 5 * time.Second // a pass beside this one, or a step, may write just now
	}
	within, cancel := context.WithTimeout(ctx, min(most, p.grace()/2))
	defer cancel()
	err := p.t.Store.RecordTick(within, p.probe, facts)
	var why string
	switch {
	case err == nil:
		p.recorded = true
		return nil
	case p.fileLocked(err):
		return p.behindWriter(ctx)
	case p.t.Store.Engine().OneWriter:
		return err
	case p.t.Store.Locked(err):
		why = "another session holds a lock on the record of ticks; " + p.t.Store.LockHolders(ctx)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		why = "the database did not answer in time, or another session holds a lock on the record of ticks; " + p.t.Store.LockHolders(ctx)
	default:
		return err
	}
	if err := p.unrecorded(lockedLong, why); err != nil {
		return err
	}
	p.report.Unrecorded = why
	return nil
}

// unrecorded returns an error if no pass of the trigger is on record for longer than allowed, although passes have probably come. Then
// nobody knows whether the trigger was silent.
func (p *pass) unrecorded(allowed time.Duration, why string) error {
	since := p.probe.UnrecordedSince(allowed)
	if since.IsZero() {
		return nil
	}
	p.report.SilentSince, p.report.SilentUntil = time.Time{}, time.Time{}
	return fmt.Errorf("no pass of the trigger %q is on record since %s, and this one could not be recorded: %s",
		p.t.Name, since.UTC().Format(time.RFC3339), why)
}
