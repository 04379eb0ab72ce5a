package tick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// OwnQueue is the queue whose runs a tick takes itself.
const OwnQueue = "tick"

const (
	heartbeat  = 30 * time.Second        // between two signs of life
	lease      = 3 * heartbeat           // what a delivery or a heartbeat gives
	look       = 1500 * time.Millisecond // between two looks for what is to be cancelled
	decideSize = 1000                    // jobs a batch, unless Batch says otherwise
)

// Tick is a pass to be run. Store, Executors, Name, Holder and Now are required.
type Tick struct {
	Store     *store.Store
	Executors executor.Registry

	Name     string // of the trigger: its stretches of ticks are recorded under it
	Holder   string // host and process: unique for each start of a process
	Version  string // of the program, for the record
	Instance string // of the database that is meant; another one is refused

	Queues       []string      // of Work: those to take from; none: all but the tick's own
	StartupID    string        // of the machine's or function's start; jobs with on_startup run once for each
	Limit        int           // runs to start at most; 0: no limit, below 0: none, decide only
	Concurrency  int           // runs side by side; 0: 4
	Batch        int           // jobs decided in one transaction; 0: 1,000
	Budget       time.Duration // for the whole pass; 0: none
	Grace        time.Duration // for what runs when the context is cancelled; within the budget
	MaxClockSkew time.Duration // between the host's clock and the database's; 0: any
	DryRun       bool          // only tell what is due
	Gauges       bool          // report also what takes a statement more: the jobs that are paused

	Log   *slog.Logger
	Now   func() time.Time // the host's clock: for budgets and the skew, never for what is due
	whole time.Duration    // of a later pass of RunFor: of which Budget is what is left
	// Sleep is how RunFor waits; nil: for real. It ends early where the context does.
	Sleep func(context.Context, time.Duration)
}

// Run runs the pass. The report tells what was done, also beside an error. Failed jobs are no error.
func (t *Tick) Run(ctx context.Context) (Report, error) {
	p, err := t.begin(ctx)
	if err != nil || t.DryRun || p.probe == nil || p.probe.Frozen || !p.probe.Anything() && !p.probe.CheckDue() && t.StartupID == "" {
		return p.end(ctx, err)
	}
	p.queues = []string{OwnQueue}
	work, stop := p.budget(ctx)
	defer stop()
	p.through = p.probe.Now
	for needs := p.needed(); err == nil; needs = []store.Need{store.RunWakes} {
		if err = p.decide(work, needs); err != nil {
			break
		}
		p.decided = true
		if err = p.takeAll(work); err != nil || p.quiet() {
			break
		}
		err = p.await(work)
	}
	if err == nil && !over(work) {
		err = p.tellLocked(work)
	}
	return p.end(ctx, errors.Join(p.cutShort(ctx, work, err), p.finishAll(ctx),
		p.cutShort(ctx, work, p.prune(work)), p.cutShort(ctx, work, p.leftOver(work))))
}

// cutShort takes the end of the budget, which is that of work, for what it is: no error, the rest is for the next pass.
func (p *pass) cutShort(ctx, work context.Context, err error) error {
	// A connection has deadlines, too; and one that the end of the budget closed says only that it is broken.
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnreachable)
	if !ended || work.Err() == nil || ctx.Err() != nil {
		return err
	}
	p.report.CutShort = "the budget was used up; the next pass goes on"
	if errors.Is(err, store.ErrReadOnly) {
		p.report.CutShort = "the budget was used up waiting for another process, which holds the lock of the database file; the next pass goes on"
	}
	return nil
}

// pass is a pass under way.
type pass struct {
	t     *Tick
	log   *slog.Logger
	probe *store.Probe
	kept  []store.Retention
	// The pass takes what was made up to through, which is when it had decided what needed that at its beginning (decided is
	// true from then on), and what follows on that: runs that others make beside it never keep it going.
	through  time.Time
	decided  bool
	idle     int          // rounds without a run, one after the other
	moved    int          // runs that the last decisions made, let go or settled
	woken    int          // and of them those of other jobs whose turn in their group it is
	decider  *decide.Pass // what its decisions share
	deciding stopwatch
	waits    int                               // for locks, that are left
	passed   map[store.Need][]store.PassedOver // by the last look at each need
	report   Report
	holder   store.Holder
	batch    int
	failed   map[store.Need]error
	without  map[int64]bool // jobs whose decisions were refused in this pass
	unkept   []store.Parked // of them, and of jobs whose runs were, those of which the database keeps no record that they are
	began    time.Time
	ends     time.Time // of the budget, by the host's clock
	workers
}

// begin asks the database what there is to do, and refuses one that is not the one that is meant.
func (t *Tick) begin(ctx context.Context) (*pass, error) {
	now := t.Now()
	p := &pass{t: t, log: t.Log, began: now, ends: now.Add(t.Budget), holder: store.Holder{Name: t.Holder, Lease: lease}}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.batch = t.Batch; p.batch <= 0 {
		p.batch = decideSize
	}
	p.passed, p.waits = map[store.Need][]store.PassedOver{}, maxWaits
	p.report = Report{Name: t.Name, Database: t.Store.Where(), DryRun: t.DryRun}
	p.holder.Refused = &store.Refusals{}
	p.without, p.failed = map[int64]bool{}, map[store.Need]error{}
	p.init(t.Concurrency)
	if err := store.CheckTrigger(t.Name, t.StartupID); err != nil {
		return p, err
	}
	within, cancel := p.budget(ctx)
	defer cancel()
	probe, err := t.Store.Probe(within, t.Name, OwnQueue)
	if err != nil {
		if t.whole > 0 { // an earlier pass of this trigger has done its part
			err = p.cutShort(ctx, within, err)
		} else if errors.Is(err, store.ErrNoAnswer) {
			err = fmt.Errorf("%w: %w", store.ErrUnreachable, err)
		} else if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("%w: no answer within the budget: %w", store.ErrUnreachable, err)
		}
		return p, err
	}
	p.holder.Login = probe.Login
	p.probe = probe
	p.decider = &decide.Pass{Login: probe.Login, StartupID: t.StartupID, Began: probe.Now, Heartbeat: heartbeat}
	p.report.StartedAt, p.report.Frozen, p.report.Warning = probe.Now, probe.Frozen, probe.Warning
	p.log.Debug("connected", "database", p.report.Database, "clock", probe.Now, "frozen", probe.Frozen, "something to do", probe.Anything())
	p.found(probe)
	if !probe.NextWake.After(probe.Now) {
		p.report.OldestDue = probe.NextWake
	}
	if probe.Schema.Instance != t.Instance {
		return p, fmt.Errorf("this database is the instance %q, but the tick is for %q; nothing was done; correct DBJOBS_INSTANCE, or, if this is the right database, its name: `dbjobs migrate --instance NAME` or --no-instance",
			probe.Schema.Instance, t.Instance)
	}
	if skew := probe.Now.Sub(p.began).Abs(); t.MaxClockSkew > 0 && skew > t.MaxClockSkew {
		return p, fmt.Errorf("the database's clock (%s) and this host's (%s) differ by %s; nothing was done; correct the clock that is wrong, or set --max-clock-skew",
			probe.Now.Format(time.RFC3339), p.began.UTC().Format(time.RFC3339), skew.Round(time.Second))
	}
	if t.DryRun {
		return p, p.dryRun(ctx)
	}
	return p, nil
}

// needed are the needs that the probe found.
func (p *pass) needed() []store.Need {
	var list []store.Need
	for _, n := range store.Needs() {
		if p.probe.Need[n] {
			list = append(list, n)
		}
	}
	if p.t.StartupID != "" {
		list = append(list, store.Startup)
	}
	if p.probe.CheckDue() {
		list = append(list, store.Check)
	}
	return list
}

// decide pages through the needs. What somebody else had locked is tried once more, at the end of its need. Whose turn in a
// group has come is decided for before what became due, which would take the place.
func (p *pass) decide(ctx context.Context, needs []store.Need) error {
	p.moved = 0
	p.deciding.start(p.t.Now())
	defer func() { p.deciding.stop(p.t.Now()) }()
	for _, n := range needs {
		err := p.decideAll(ctx, n)
		switch {
		case err == nil:
		case !p.t.Store.Refused(ctx, err):
			return err
		case p.failed[n] == nil: // a row keeps the list of this need from being read: the other needs are handled
			p.failed[n] = fmt.Errorf("%s: %w", n, err)
			p.errs = append(p.errs, p.failed[n])
		}
	}
	return nil
}

// decideAll pages through all that is of one need.
func (p *pass) decideAll(ctx context.Context, n store.Need) error {
	for more := true; more; {
		seen, err := p.t.Store.Unmarked(ctx, n)
		if err != nil {
			return err
		}
		passed := 1
		p.woken = 0
		for try := 0; try < 2 && passed > 0; try++ {
			if passed, err = p.decideNeed(ctx, n, seen, try > 0); err != nil {
				return err
			}
		}
		if more = false; passed == 0 {
			marked, err := p.t.Store.Mark(ctx, seen)
			if err != nil {
				return err
			}
			more = seen.More() && marked > 0
		}
		more = more || n == store.RunWakes && p.woken > 0
	}
	return nil
}

// decideNeed pages through one need, and counts the jobs that somebody else had locked. Where there are no locks, a
// page that was lost against another session counts as that, unless this is the last try. While the database writes one
// batch, the next is read and decided; they go into the report in their order.
func (p *pass) decideNeed(ctx context.Context, n store.Need, seen *store.Unmarked, last bool) (passed int, err error) {
	page := store.NewPage(n, p.probe.Now, seen)
	page.StartupID, page.Without = p.t.StartupID, p.without
	p.passed[n] = nil
	var under []chan batch
	for more := true; more || len(under) > 0; {
		if more = more && err == nil; more && len(under) < p.t.Store.Writers() {
			if err = p.giveWay(ctx); err != nil {
				continue
			}
			if more, err = p.t.Store.Next(ctx, page, p.batch); more && err == nil && page.Jobs() > 0 {
				page.Waits = p.waits
				under = append(under, p.decidePage(ctx, *page))
			}
			continue
		}
		if len(under) == 0 {
			break
		}
		b := <-under[0]
		under = under[1:]
		if b.err != nil && !last && p.t.Store.Transient(b.err) {
			p.log.Warn("decisions lost a conflict with another session and are tried again", "need", n.String(), "error", b.err)
			b.Passed, b.err = nil, nil
			passed += b.jobs - b.Decided
		}
		err = cmp.Or(err, b.err)
		p.waits -= b.Waits
		if !p.decided && b.Now.After(p.through) {
			p.through = b.Now
		}
		p.log.Debug("decided", "need", n.String(), "jobs", b.Decided, "made", len(b.Made), "moved", b.Moved, "locked elsewhere", len(b.Passed), "refused", len(b.Refused))
		for _, job := range b.Refused {
			p.without[job] = true
		}
		p.unkept = append(p.unkept, b.Stuck...)
		p.passed[n] = append(p.passed[n], b.Passed...)
		for _, l := range b.Passed {
			if !l.Waited { // to wait again would be as long
				passed++
			}
		}
		p.moved += len(b.Made) + b.Moved
		p.woken += b.Woken
		p.report.add(b.Batch)
		p.kept = append(p.kept, b.Retention...)
	}
	return passed, err
}

// batch is what became of a page of jobs.
type batch struct {
	store.Batch
	jobs int
	err  error
}

// decidePage decides a page beside what else goes on.
func (p *pass) decidePage(ctx context.Context, page store.Page) chan batch {
	done := make(chan batch, 1)
	go func() {
		b, err := p.t.Store.Decide(ctx, &page, store.Decider{Job: p.decideJob, Groups: decide.Groups})
		done <- batch{b, page.Jobs(), err}
	}()
	return done
}

// decideJob is decide.Job, with a net below: whatever is wrong with one job parks that job, and never stops the pass.
func (p *pass) decideJob(now time.Time, c *store.Snapshot) (d store.Decision) {
	defer func() {
		if r := recover(); r != nil {
			plan := c.Plan
			plan.NextRun, plan.Parked = time.Time{}, fmt.Sprintf("the decision panicked: %v; please report this", r)
			p.log.Error("deciding panicked", "job", c.Plan.JobID, "panic", r, "stack", string(debug.Stack()))
			d = store.Decision{Plan: plan}
		}
	}()
	return decide.Job(now, c, p.decider)
}

// dryRun lists the jobs that need a decision, and changes nothing.
func (p *pass) dryRun(ctx context.Context) error {
	names := map[int64]string{}
	jobs, err := p.t.Store.Jobs(ctx, store.JobFilter{})
	if err != nil {
		return err
	}
	for i := range jobs {
		names[jobs[i].ID] = jobs[i].FullName()
	}
	for _, n := range p.needed() {
		seen, err := p.t.Store.Unmarked(ctx, n)
		if err != nil {
			return err
		}
		page := store.NewPage(n, p.probe.Now, seen)
		for {
			more, err := p.t.Store.Next(ctx, page, p.batch)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			page.Each(func(job int64, due time.Time) {
				c := Coming{Job: names[job], Need: n.String(), Due: due}
				if c.Job == "" {
					var unknown error
					c.Job, unknown = p.t.Store.JobName(ctx, job)
					c.Need, err = "job removed", cmp.Or(err, unknown)
				}
				p.report.Due = append(p.report.Due, c)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// end closes the report and records the pass. A pass that found nothing to do is two round trips in all.
func (p *pass) end(ctx context.Context, err error) (Report, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.grace())
	defer cancel()
	if errors.Is(err, store.ErrNoAnswer) {
		err = fmt.Errorf("%w; %s", err, p.t.Store.LockHolders(ctx))
	}
	if p.probe == nil || p.t.DryRun {
		return p.report, err
	}
	if err == nil {
		p.report.Ahead, p.report.AheadUntil, err = p.t.Store.Ahead(ctx, p.probe)
	}
	facts := store.TickFacts{Name: p.t.Name, Holder: p.t.Holder, Version: p.t.Version, Decided: p.report.Decided, Started: p.report.Started, Failed: p.report.Failed}
	if err != nil {
		facts.Error = err.Error()
	}
	if recorded := p.record(ctx, facts); err == nil {
		err = recorded
	}
	if err == nil && p.report.Decided+p.report.Started > 0 { // a run that backs off wakes its job too
		probe, again := p.t.Store.Probe(ctx, p.t.Name, OwnQueue)
		if again != nil {
			return p.report, again
		}
		p.found(probe)
	}
	if err == nil {
		err = p.states(ctx)
	}
	return p.report, err
}

// record leaves a line of the pass in the ledger. Where somebody has that line locked, all is done all the same: it is only
// said.
func (p *pass) record(ctx context.Context, facts store.TickFacts) error {
	const most = 2 * time.Second
	within, cancel := context.WithTimeout(ctx, min(most, p.grace()/2))
	defer cancel()
	err := p.t.Store.RecordTick(within, p.probe, facts)
	if err != nil && !p.t.Store.Engine().OneWriter && (p.t.Store.Locked(err) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil) {
		p.report.Unrecorded = "another session holds a lock on the record of ticks"
		return nil
	}
	return err
}
