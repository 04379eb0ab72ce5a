package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// ownQueue is the queue of the runs that a pass executes itself.
const ownQueue = "tick"

// step moves the clock to the next event: the end of a run, or a pass. It reports whether that event comes
// before the end of the simulation.
func (l *ledger) step() bool {
	end := l.working.first((*run).stillWorks)
	pass := l.nextPass()
	switch {
	case !end.IsZero() && (pass.IsZero() || !end.After(pass)): // an end comes before the pass of the same instant
		if !end.Before(l.o.To) {
			return false
		}
		l.now = end
		l.finish(l.working.pop())
	case !pass.IsZero():
		if !pass.Before(l.o.To) {
			return false
		}
		l.now, l.last = pass, pass
		l.out.result.Passes++
		l.rounds(pass, true)
	default:
		return false
	}
	return true
}

func (x *run) stillWorks(at time.Time) bool { return x.State == store.Running && x.ends.Equal(at) }

// nextPass returns the time of the next pass that finds something to do. It is zero if nothing is left to do.
func (l *ledger) nextPass() time.Time {
	next := l.due.first(func(e *entry, at time.Time) bool { return !e.gone && e.plan.NextRun.Equal(at) })
	if t := l.wakes.first(func(x *run, at time.Time) bool { return x.wakesAt().Equal(at) }); !t.IsZero() && (next.IsZero() || t.Before(next)) {
		next = t
	}
	if len(l.changed)+len(l.met)+len(l.queued) > 0 {
		next = l.now
	}
	if next.IsZero() {
		return next
	}
	if next.Before(l.now) { // it began to wait earlier
		next = l.now
	}
	if after := l.last.Add(1); !l.last.IsZero() && next.Before(after) {
		next = after
	}
	for {
		t := l.onGrid(l.up(l.thawed(l.onGrid(next))))
		if t.Equal(next) {
			return t
		}
		next = t
	}
}

// onGrid returns the first time of the trigger that is not before t.
func (l *ledger) onGrid(t time.Time) time.Time {
	if g := t.Truncate(l.o.Every); g.Before(t) {
		return g.Add(l.o.Every)
	}
	return t
}

// up returns t, or the end of the outage in which it lies.
func (l *ledger) up(t time.Time) time.Time {
	for _, d := range l.o.Down {
		if !t.Before(d.From) && t.Before(d.To) {
			t = d.To
		}
	}
	return t
}

// thawed returns t, or the end of the pause of everything in which it lies: until then, passes do nothing.
func (l *ledger) thawed(t time.Time) time.Time {
	for i := range l.pauses {
		if p := &l.pauses[i]; p.Scope == store.ScopeAll && p.Holds(t) {
			t = p.Ends(forever)
		}
	}
	return t
}

// rounds repeats the decisions and takes of a pass at one instant, until nothing changes any more. The
// first rounds of a pass are for all needs. The rounds after the end of a run are for jobs that their runs
// wake.
func (l *ledger) rounds(began time.Time, first bool) {
	l.pass.Began = began
	for idle := 0; ; first = false {
		l.moved, l.metMoved = 0, 0
		if first {
			l.decideChanged()
		}
		l.decideWoken()
		if first {
			l.decideDue()
		}
		for more := first || l.metMoved > 0; more && len(l.met) > 0; {
			l.decideMet()
		}
		if idle++; l.take(began) > 0 {
			idle = 0
		}
		if idle > 0 && (l.moved == 0 || idle > 10) {
			return
		}
	}
}

func (l *ledger) decideChanged() {
	list := l.changed
	l.changed = nil
	for _, e := range list {
		e.queuedUp = false
	}
	slices.SortFunc(list, func(x, y *entry) int { return cmp.Compare(x.job.ID, y.job.ID) })
	l.decide(slices.DeleteFunc(list, func(e *entry) bool { return e.gone }), store.JobChanged)
}

// decideWoken decides for jobs that one of their runs wakes. A run whose turn in its group has come asks
// again at once.
func (l *ledger) decideWoken() {
	for again := true; again; again = l.woken > 0 {
		l.woken = 0
		var list []*entry
		var left []*run
		seen := map[*entry]bool{}
		for {
			t := l.wakes.first(func(x *run, at time.Time) bool { return x.wakesAt().Equal(at) })
			if t.IsZero() || t.After(l.now) {
				break
			}
			x := l.wakes.pop()
			if left = append(left, x); !seen[x.of] {
				seen[x.of] = true
				list = append(list, x.of)
			}
		}
		l.decide(list, store.RunWakes)
		for _, x := range left { // a run that still wakes its job is for the next round, as in an index
			if l.runs[x.ID] == x {
				l.wake(x)
			}
		}
	}
}

func (l *ledger) decideDue() {
	var list []*entry
	seen := map[*entry]bool{}
	for {
		t := l.due.first(func(e *entry, at time.Time) bool { return !e.gone && e.plan.NextRun.Equal(at) })
		if t.IsZero() || t.After(l.now) {
			break
		}
		if e := l.due.pop(); !seen[e] {
			seen[e] = true
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(x, y *entry) int {
		return cmp.Or(x.plan.NextRun.Compare(y.plan.NextRun), cmp.Compare(x.job.ID, y.job.ID))
	})
	l.decide(list, store.Due)
	for _, e := range list { // it stays due: a later pass looks again
		if t := e.plan.NextRun; !t.IsZero() && !t.After(l.now) {
			l.due.push(t, "", e)
		}
	}
}

func (l *ledger) decideMet() {
	list := l.met
	l.met = nil
	for _, e := range list {
		e.inMet = false
	}
	slices.SortFunc(list, func(x, y *entry) int { return cmp.Compare(x.job.ID, y.job.ID) })
	l.decide(list, store.AfterEnded)
}

// take begins the queued runs. From its own queue, a pass takes the runs that existed when it began, and
// the runs that follow from those that it executes. Workers take the runs of other queues.
func (l *ledger) take(began time.Time) (taken int) {
	list := l.queued
	l.queued = nil
	slices.SortStableFunc(list, func(x, y *run) int {
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), x.ReadyAt.Compare(y.ReadyAt), cmp.Compare(x.ID, y.ID))
	})
	for _, x := range list {
		switch later := x.CreatedAt.After(began) && !x.parent.Equal(began); {
		case x.State != store.Queued || l.runs[x.ID] != x: // a decision has changed it since
		case later && x.Queue == ownQueue:
			l.queued = append(l.queued, x)
		default:
			taken++
			l.begin(x, began)
		}
	}
	return taken
}

// begin delivers a run.
func (l *ledger) begin(x *run, pass time.Time) {
	x.State, x.LeaseUntil, x.began = store.Running, forever, pass
	x.Fence, x.Attempt, x.Attempts = x.Fence+1, x.Attempt+1, x.Attempts+1
	if x.StartedAt.IsZero() {
		x.StartedAt = l.now
		l.out.started(x)
	}
	l.out.busy(1)
	took, fails := l.outcome(x)
	if x.fails = fails; took <= 0 {
		l.end(x)
		return
	}
	l.work(x, l.now.Add(took))
}

func (l *ledger) work(x *run, end time.Time) {
	x.ends = end
	l.working.push(end, x.ID, x)
}

func (l *ledger) outcome(x *run) (time.Duration, bool) {
	if l.o.Outcome != nil {
		return l.o.Outcome(x.of.job, &x.Run)
	}
	return time.Duration(x.of.job.Took.Length), false
}

// finish ends a run that was under way. The pass that executed the run decides what follows. If a worker
// executed it, the next pass decides.
func (l *ledger) finish(x *run) {
	if x.stopped {
		l.out.busy(-1)
		x.State, x.FinishedAt = store.Cancelled, l.now
		l.regroup(x)
		l.wake(x)
	} else {
		l.end(x)
	}
	if x.Queue == ownQueue {
		l.rounds(x.began, false)
	}
}

// end goes through the steps of a run, beginning at its current step, up to the end of the run or the
// back-off of a step.
func (l *ledger) end(x *run) {
	l.out.busy(-1)
	t := store.Task{Run: x.Run, Job: x.of.job.Job}
	for t.Run.State == store.Running {
		step := t.StepAt(t.Run.Step)
		var next store.StepEnd
		switch {
		case step == nil:
			next.Final = store.Failed
		case x.fails:
			next = decide.AfterFailure(&t, step, true, func(time.Duration) time.Duration { return 0 })
		default:
			next = decide.Follow(&t, step.OnSuccess, store.Succeeded)
		}
		x.fails = false // later steps succeed
		switch {
		case next.NextStep > 0:
			t.Run.Step, t.Run.Attempt, t.Run.Attempts = next.NextStep, 1, t.Run.Attempts+1
		case next.Retry:
			t.Run.State, t.Run.HeldBy, t.Run.ReadyAt = store.Waiting, "", l.now.Add(next.Backoff)
		default:
			t.Run.State, t.Run.FinishedAt = next.Final, l.now
		}
	}
	x.Run = t.Run
	l.regroup(x)
	l.wake(x)
}

// stop lets the holder of a run cancel it. The run has ended when the decision is written.
func (l *ledger) stop(x *run) {
	if x != nil && x.State == store.Running {
		x.stopped, x.CancelAt = true, l.now
		l.work(x, l.now)
	}
}
