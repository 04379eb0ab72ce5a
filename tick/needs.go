package tick

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// decisions are what this pass has decided so far, and what follows from that.
type decisions struct {
	// The pass takes runs that were made up to the instant through, and runs that follow from these.
	// So runs that other passes make in the meantime never keep the pass going. At through, the pass
	// had decided all that needed a decision at its beginning; from then on, decided is true.
	through time.Time
	decided bool
	looked  bool // this pass has come to Check and Older

	decider  *decide.Pass // what the decisions share
	batch    int          // jobs decided in one transaction
	crowds   store.Crowds
	deciding stopwatch
	waits    int // how often the pass may still wait for a lock

	// Of the last round of decisions.
	moved int // runs that were made, released or settled
	woken int // runs of other jobs whose turn in their group has come; part of moved
	met   int // ends that were written for jobs that run after several; these jobs need a decision
	idle  int // rounds without a run, one after the other

	passed  map[store.Need][]store.PassedOver // jobs that the last look at each need has skipped
	failed  map[store.Need]error
	without map[int64]bool // jobs whose decisions were refused
	unkept  []store.Parked // jobs whose decisions or runs were refused, and for which the database has refused this record, too

	joined []string          // runs that were made for the ends of several runs, and that nobody has taken here yet
	kept   []store.Retention // the history to keep of the jobs whose runs were settled, see keep
	// keptMost is the length at which kept is reduced, but mostKept at least.
	keptMost int
	// settlements, by run id, let the ends of runs that this pass has made also settle these runs. foreseen is how many more
	// settlements the pass may still keep: it bounds the memory of a pass.
	settlements map[string]*store.Settlement
	foreseen    atomic.Int64
}

// needed returns the needs that the probe found, and the needs that this host adds.
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
		list = append(list, store.Check, store.Older)
	}
	return list
}

// decide pages through the needs, in their order. A job whose turn in its group has come is decided
// before the jobs that became due; otherwise one of these would take its place.
func (p *pass) decide(ctx context.Context, needs []store.Need) error {
	p.moved, p.settled = 0, 0
	p.deciding.start(p.t.Now())
	defer func() { p.deciding.stop(p.t.Now()) }()
	for i := 0; i < len(needs); i++ {
		n := needs[i]
		before := p.report.Decided
		err := p.decideAll(ctx, n)
		// Also if it comes to nothing: that holds up one pass in an hour, and not each one. One that was cut goes on in the next pass.
		p.looked = p.looked || n == store.Check && (err == nil || p.report.Decided == before)
		switch {
		case err == nil:
		case !p.t.Store.Refused(ctx, err):
			return err
		case p.failed[n] == nil: // a row makes the list of this need unreadable; the other needs are still handled
			p.failed[n] = fmt.Errorf("%s: %w", n, err)
			p.errs = append(p.errs, p.failed[n])
		}
		if last := i == len(needs)-1; last && p.met > 0 { // there are new ends for jobs that run after several
			p.met, needs = 0, append(slices.Clone(needs), store.AfterEnded)
		}
	}
	return nil
}

// decideAll pages through the jobs of one need. Jobs that another session has locked are tried once
// more at the end.
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
			if seen.Faults, err = p.faults(ctx, seen); err != nil {
				return err
			}
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

// faults returns, by schedule id, why schedules cannot be used. It covers the schedules that are about to be marked as seen,
// including schedules that no job uses.
func (p *pass) faults(ctx context.Context, seen *store.Unmarked) (map[int64]string, error) {
	list, err := p.t.Store.UnmarkedSchedules(ctx, seen)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	calendars, err := p.t.Store.KnownCalendars(ctx, store.Definitions{Schedules: list})
	if err != nil {
		return nil, err
	}
	why := map[int64]string{}
	for _, c := range list {
		switch calendar := calendars[c.Calendar]; {
		case c.Fault != "":
			why[c.ID] = "its row cannot be read: " + c.Fault
		case c.Calendar != "" && calendar == nil: // the state of the schedule says so
		default:
			if _, err := decide.First(store.Job{}, c, calendar, p.probe.Now); err != nil {
				why[c.ID] = err.Error()
			}
		}
	}
	return why, nil
}

// decideNeed pages through one need, and counts the jobs that another session has locked. On an engine
// without locks, a page that lost a conflict with another session counts as locked, unless this is the
// last try. While the database writes one batch, the next batch is read and decided; the report keeps
// the order of the batches.
func (p *pass) decideNeed(ctx context.Context, n store.Need, seen *store.Unmarked, last bool) (passed int, err error) {
	p.passed[n] = nil
	for _, page := range p.pages(n, seen) {
		left, err := p.decideOf(ctx, n, page, last)
		if passed += left; err != nil {
			return passed, err
		}
	}
	return passed, nil
}

// pages returns the first pages of a need: of some needs one for each owner, so that only jobs are read that this host can run.
func (p *pass) pages(n store.Need, seen *store.Unmarked) (list []*store.Page) {
	owners := []string{""} // the login
	if n == store.Due || n == store.Startup {
		owners = append(owners, p.t.Store.Served()...)
	}
	for _, owner := range owners {
		page := store.NewPage(n, p.probe.Now, seen)
		page.Owner, page.StartupID, page.Zones, page.Without, page.Crowds = owner, p.t.StartupID, rules.TZDataVersion(), p.without, &p.crowds
		page.Back = p.probe.Back(lease)
		list = append(list, page)
	}
	return list
}

// decideOf does the work of decideNeed for the jobs of one owner, beginning at their first page.
func (p *pass) decideOf(ctx context.Context, n store.Need, page *store.Page, last bool) (passed int, err error) {
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
		if b.err != nil && !last && p.t.Store.Transient(b.err) && !p.fileLocked(b.err) { // another try would wait as long for a file
			p.log.Warn("decisions lost a conflict with another session and are tried again", "need", n.String(), "error", b.err)
			b.Passed, b.err = nil, nil
			passed += b.jobs - b.Decided
		}
		err = cmp.Or(err, b.err)
		passed += p.note(n, &b.Batch)
	}
	return passed, err
}

// note adds the outcome of a page, and returns how many of its jobs are to be tried again.
func (p *pass) note(n store.Need, b *store.Batch) (passed int) {
	p.waits -= b.Waits
	if !p.decided && b.Now.After(p.through) {
		p.through = b.Now
	}
	p.log.Debug("decided", "need", n.String(), "jobs", b.Decided, "made", b.Made, "moved", b.Moved, "locked elsewhere", len(b.Passed), "refused", len(b.Refused))
	for _, job := range b.Refused {
		p.without[job] = true
	}
	p.unkept = append(p.unkept, b.Stuck...)
	p.passed[n] = append(p.passed[n], b.Passed...)
	for _, l := range b.Passed {
		if !l.Waited { // a second wait would take just as long
			passed++
		}
	}
	for i := range b.Meetings {
		if r := &b.Meetings[i]; r.Queue == OwnQueue && len(p.joined) < mostJoined {
			p.joined = append(p.joined, r.ID)
		}
	}
	p.moved += b.Made + b.Moved
	p.woken += b.Woken
	p.met += b.Ends
	p.report.add(*b)
	p.progress()
	p.keep(b.Retention...)
	maps.Copy(p.settlements, b.Settlements)
	return passed
}

// batch is the outcome of a page of jobs.
type batch struct {
	store.Batch
	jobs int
	err  error
}

// decidePage decides a page in its own goroutine, while other pages are written.
func (p *pass) decidePage(ctx context.Context, page store.Page) chan batch {
	done := make(chan batch, 1)
	go func() {
		b, err := p.t.Store.Decide(ctx, &page, store.Decider{Job: p.decideJob, Groups: decide.Groups})
		done <- batch{b, page.Jobs(), err}
	}()
	return done
}

// decideJob calls decide.Job and recovers from a panic: a panic parks the job, and never stops the pass.
func (p *pass) decideJob(now time.Time, c *store.Snapshot) (d store.Decision) {
	defer func() {
		if r := recover(); r != nil {
			plan := c.Plan
			plan.NextRun, plan.Parked = time.Time{}, fmt.Sprintf("the decision panicked: %v; please report this", r)
			p.log.Error("deciding panicked", "job", c.Plan.JobID, "panic", r, "stack", string(debug.Stack()))
			d = store.Decision{Plan: plan, UnderWay: c.UnderWay()}
		}
	}()
	d = decide.Job(now, c, p.decider)
	if len(d.Made) == 1 && d.Made[0].Queue == OwnQueue && p.foreseen.Add(-1) >= 0 {
		d.Settlement = decide.Settlement(now, c, &d, p.decider)
	}
	return d
}
