package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// ledger is what a database would hold.
type ledger struct {
	o      Options
	now    time.Time
	last   time.Time // the last pass
	pass   *decide.Pass
	list   []*entry
	byID   map[int64]*entry
	byName map[string]*entry
	runs   map[string]*run // runs that are not settled, by id
	pauses []store.Pause
	groups map[string]*group
	users  map[string][]*entry // of hooks, by the name of the hook

	changed  []*entry      // jobs that a pass has to look at, even if they are not due
	met      []*entry      // jobs with ends of runs that no decision has seen
	due      queue[*entry] // jobs by the time at which a decision is due
	wakes    queue[*run]
	working  queue[*run]
	queued   []*run
	ids      int64
	moved    int
	woken    int
	metMoved int
	out      *collector
}

// entry is a job.
type entry struct {
	job       *Job
	plan      store.Plan
	rules     []store.Rule
	stale     bool
	queuedUp  bool // it is in ledger.changed
	gone      bool
	circle    bool
	steps     map[int]store.Attempts
	open      []*run // in the order in which they were made
	followers []follower
	of        int // how many jobs it runs after
	ends      []endRow
	inMet     bool
	facts     *facts
}

type follower struct {
	*entry
	store.Follower
}

// endRow is an end of a run that counts for a job that runs after several.
type endRow struct {
	store.End
	start, end time.Time // its interval
	at         time.Time
	seen       bool
}

// run is a run that has not been settled.
type run struct {
	store.Run
	of      *entry
	began   time.Time // of the pass that executes it
	parent  time.Time // of the pass that executed the run that it follows
	fails   bool
	ends    time.Time
	stopped bool   // its holder is asked to cancel it
	waited  string // what the run waited for
	place   place  // in the group of its job
}

// waitsForOthers is how long the end of a run waits for the ends of runs of other jobs, as in package store.
const waitsForOthers = 30 * 24 * time.Hour

func (l *ledger) enter(j *Job) {
	e := &entry{job: j, plan: j.Plan, rules: slices.Clone(j.Rules), stale: j.Stale || j.Plan.DecidedThrough.IsZero(), of: len(j.After), facts: &facts{}}
	e.plan.JobID = j.ID
	for i := range j.Steps {
		if own := j.Steps[i].Retry.Attempts; own != nil {
			if e.steps == nil {
				e.steps = map[int]store.Attempts{}
			}
			e.steps[i+1] = *own
		}
	}
	on := j.On.Of(j.Owner)
	for _, hook := range on.Jobs() {
		l.users[hook] = append(l.users[hook], e)
	}
	l.list = append(l.list, e)
	l.byID[j.ID], l.byName[j.FullName()] = e, e
}

// isHook reports whether the job is a hook of another one that is still there. A job that this pass removes counts as
// such.
func (l *ledger) isHook(e *entry) bool {
	return slices.ContainsFunc(l.users[e.job.FullName()], func(user *entry) bool { return !user.gone || user.facts.Removed.Equal(l.now) })
}

// named finds a job by owner/name, or by a name of the same owner.
func (l *ledger) named(name, owner string) *entry {
	if owner != "" && !strings.Contains(name, "/") {
		name = owner + "/" + name
	}
	return l.byName[name]
}

// follow notes a job as a follower of the jobs that it runs after.
func (l *ledger) follow(f *entry) {
	if f.job.Disabled {
		return
	}
	for _, a := range f.job.After {
		if e := l.named(a.Job, f.job.Owner); e != nil {
			e.followers = append(e.followers, follower{f, store.Follower{JobID: f.job.ID, Queue: f.job.Queue, Priority: f.job.Priority, On: cmp.Or(a.On, store.OnSuccess), Of: f.of}})
		}
	}
}

// circular reports whether a job runs after itself, through other jobs.
func (l *ledger) circular(e *entry) bool {
	seen := map[*entry]bool{}
	var up func(*entry) bool
	up = func(f *entry) bool {
		for _, a := range f.job.After {
			g := l.named(a.Job, f.job.Owner)
			if g == e || g != nil && !seen[g] && func() bool { seen[g] = true; return up(g) }() {
				return true
			}
		}
		return false
	}
	return up(e)
}

// reopenEnds adds the ends that wait for other ends when the simulation begins.
func (l *ledger) reopenEnds(e *entry) {
	for _, w := range e.job.Ends {
		follows := func(a store.After) bool { f := l.named(a.Job, e.job.Owner); return f != nil && f.job.ID == w.AfterID }
		if !slices.ContainsFunc(e.job.After, follows) {
			continue
		}
		e.ends = append(e.ends, endRow{End: w.End, start: w.IntervalStart, end: w.IntervalEnd, at: w.At, seen: w.Seen})
		if !w.Seen && !e.inMet {
			e.inMet = true
			l.met = append(l.met, e)
		}
	}
}

// reopen adds a run that exists when the simulation begins.
func (l *ledger) reopen(e *entry, r store.Run) {
	x := &run{Run: r, of: e, began: l.o.From}
	x.Owner, x.Job = e.job.Owner, e.job.Name
	e.open = append(e.open, x)
	l.runs[r.ID] = x
	l.regroup(x)
	switch r.State {
	case store.Running:
		x.LeaseUntil = forever
		took, fails := l.outcome(x)
		began, again := e.job.Tried[r.ID]
		if !again {
			began = x.StartedAt
		}
		end := began.Add(took)
		if end.Before(l.o.From) {
			end = l.o.From
		}
		if x.stopped = !r.CancelAt.IsZero(); x.stopped { // its holder stops it at once
			end = l.o.From
		}
		x.fails = fails
		l.work(x, end)
	case store.Queued:
		l.queued = append(l.queued, x)
	default:
		if l.wake(x); !r.CancelAt.IsZero() { // the request asks for a decision
			l.change(e)
		}
	}
}

var forever = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// make adds a new run.
func (l *ledger) make(r store.Run, parent time.Time) {
	e := l.byID[r.JobID]
	if e == nil || e.gone {
		return
	}
	l.ids++
	l.moved++
	r.ID = fmt.Sprintf("z%012d", l.ids) // after all ids of a database
	r.Owner, r.Job, r.CreatedAt, r.Step = e.job.Owner, e.job.Name, l.now, 1
	x := &run{Run: r, of: e, parent: parent}
	e.open = append(e.open, x)
	l.runs[r.ID] = x
	l.changedState(x)
}

// changedState files a run by its state.
func (l *ledger) changedState(x *run) {
	l.regroup(x)
	if x.HeldBy != "" {
		x.waited = x.HeldBy
	}
	if x.State == store.Queued {
		l.queued = append(l.queued, x)
		return
	}
	l.wake(x)
}

// wakesAt is when a run needs a decision: the column wake_at.
func (x *run) wakesAt() time.Time {
	switch {
	case x.State == store.Waiting && x.HeldBy == "":
		return x.ReadyAt
	case x.Ended() && x.SettledAt.IsZero():
		return x.CreatedAt
	}
	return time.Time{}
}

func (l *ledger) wake(x *run) {
	if t := x.wakesAt(); !t.IsZero() {
		l.wakes.push(t, x.ID, x)
	}
}

// snapshot returns the data from which a decision for the job is made, for that need.
func (l *ledger) snapshot(e *entry, loads map[string]*store.GroupLoad, need store.Need) store.Snapshot {
	c := store.Snapshot{Plan: e.plan, Job: e.job.Job, Stale: e.stale, ChangedAt: e.job.ChangedAt, Rules: e.rules, StepAttempts: e.steps, Circle: e.circle, AfterLost: e.job.AfterLost}
	if e.stale {
		c.Planned = e.job.Planned
	}
	for _, f := range e.followers {
		if !f.gone && !f.circle && !f.job.AfterLost {
			f.UsedUp = f.job.UsedUp(f.plan.RunsMade)
			c.Followers = append(c.Followers, f.Follower)
		}
	}
	for i := range l.pauses {
		if p := &l.pauses[i]; p.Covers(&c) && p.Ends(forever).After(e.plan.DecidedThrough) {
			c.Pauses = append(c.Pauses, *p)
		}
	}
	c.Runs = e.read(&c, l.now, need == store.RunWakes && !e.stale)
	if g := e.job.Group; g != "" {
		if loads[g] == nil {
			loads[g] = &store.GroupLoad{Name: g}
		}
		c.Group = loads[g]
	}
	return c
}

// read returns the open runs from which a decision is made. Where nothing but a run has woken the job, it leaves out the
// runs that rest and to which the decision cannot get, as a pass does: otherwise each end of a run would copy all that wait. It
// counts those in the queue.
func (e *entry) read(c *store.Snapshot, now time.Time, woken bool) []store.Run {
	most := len(e.open)
	if woken && !slices.ContainsFunc(e.open, func(x *run) bool { return c.SeeksTimes(&x.Run, now) }) {
		most = min(most, e.job.RestingRead())
	}
	list, resting, timed := make([]store.Run, 0, most), 0, false
	for _, x := range e.open {
		rest := e.job.Rest(&x.Run)
		if rest == store.RestsInQueue {
			if woken && c.LeavesQueue(now) {
				c.Queue.Add(&x.Run)
				continue
			}
		} else if rest != store.Stirs && !x.ReadyAt.After(now) {
			is := rest == store.RestsAsTime && !timed
			timed = timed || is
			if resting++; resting > most && !is {
				continue
			}
		}
		list = append(list, x.Run)
	}
	c.LeftOut = resting > most
	return list
}

// isPaused reports whether a pause of the job, or of one of its schedules, is in force.
func (l *ledger) isPaused(e *entry) bool {
	c := store.Snapshot{Plan: e.plan, Job: e.job.Job, Rules: e.rules}
	return slices.ContainsFunc(l.pauses, func(p store.Pause) bool { return p.Holds(l.now) && p.Covers(&c) })
}
