package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

const batch = 1000 // jobs that one transaction decides for

// decide decides for jobs, as Store.Decide does for a page of that need. Of AfterEnded, it reads the ends of the runs of
// the jobs that these jobs run after.
func (l *ledger) decide(list []*entry, need store.Need) {
	ends := need == store.AfterEnded
	for part := range slices.Chunk(list, batch) {
		slices.SortFunc(part, func(x, y *entry) int { return cmp.Compare(x.job.ID, y.job.ID) }) // as the locks are taken
		cases := make([]store.Snapshot, len(part))
		loads := map[string]*store.GroupLoad{}
		for i, e := range part {
			cases[i] = l.snapshot(e, loads, need)
			if ends {
				cases[i].Met = e.meetings()
			}
		}
		l.readGroups(part, loads)
		made := make([]store.GroupDecision, 0, len(part))
		var grouped []store.GroupDecision
		for i := range cases {
			m := store.GroupDecision{Snapshot: &cases[i], Decision: decide.Job(l.now, &cases[i], l.pass)}
			if cases[i].Group != nil {
				grouped = append(grouped, m)
			} else {
				made = append(made, m)
			}
		}
		if len(grouped) > 0 {
			l.wakeHeld(decide.Groups(grouped))
		}
		made = append(made, grouped...)
		for i := range made {
			l.write(made[i].Snapshot, &made[i].Decision, ends)
		}
	}
}

// wakeHeld lets runs ask for their group again.
func (l *ledger) wakeHeld(ids []string) {
	for _, id := range ids {
		x := l.runs[id]
		x.HeldBy = ""
		l.regroup(x)
		l.wake(x)
	}
	l.woken += len(ids)
	l.moved += len(ids)
}

// write stores what was decided for a job.
func (l *ledger) write(c *store.Snapshot, d *store.Decision, ends bool) {
	e := l.byID[c.Plan.JobID]
	l.writeEnds(e, d, ends)
	if d.Nothing(&c.Plan) {
		return
	}
	l.moved += len(d.Updates)
	for _, r := range d.Made {
		parent := time.Time{}
		if x := l.runs[r.Predecessor()]; x != nil {
			parent = x.began
		}
		l.make(r, parent)
	}
	l.raise(d.Events)
	for i := range d.Updates {
		l.update(e, &d.Updates[i])
	}
	for i := range d.Gaps {
		l.out.gap(e, &d.Gaps[i], d)
	}
	for _, id := range d.Cancel {
		l.stop(l.runs[id])
	}
	if d.Pause != "" {
		l.pauses = append(l.pauses, store.Pause{ID: int64(len(l.pauses)) + 1, Scope: store.ScopeJob, SubjectID: e.job.ID, Since: l.now, By: store.Itself, Reason: d.Pause})
		l.change(e)
	}
	e.plan, e.stale = d.Plan, false
	if d.Replan {
		l.replan(e, d.Rules)
	}
	if e.plan.Parked != "" {
		e.facts.Parked = e.plan.Parked
	}
	if d.Remove != "" && !l.isHook(e) {
		e.gone, e.facts.Removed = true, l.now
		return
	}
	if t := e.plan.NextRun; !t.IsZero() && t != c.Plan.NextRun {
		l.due.push(t, "", e)
	}
}

// replan stores the rules that the plan has from now on: the definition is now as planned.
func (l *ledger) replan(e *entry, planned []store.Rule) {
	e.rules = slices.Clone(planned)
	for i := range e.rules {
		e.rules[i].LinkPlanned, e.rules[i].NewInput = true, e.rules[i].Input
	}
}

// change asks for a decision by the next pass.
func (l *ledger) change(e *entry) {
	if !e.queuedUp {
		e.queuedUp = true
		l.changed = append(l.changed, e)
	}
}

// update writes a run that a decision has changed.
func (l *ledger) update(e *entry, m *store.RunUpdate) {
	x := l.runs[m.Run.ID]
	x.Run = m.Run
	if !x.SettledAt.IsZero() {
		l.regroup(x)
		delete(l.runs, x.ID)
		e.open = slices.DeleteFunc(e.open, func(o *run) bool { return o == x })
		l.out.run(x)
		return
	}
	l.changedState(x)
}

// raise makes the runs of hooks.
func (l *ledger) raise(events []store.Event) {
	for i := range events {
		ev := &events[i]
		hook := l.byName[ev.HookName()]
		if hook == nil || hook.gone || hook.job.Disabled {
			l.out.unheard(ev)
			continue
		}
		j := hook.job
		l.make(store.Run{JobID: j.ID, Occurrence: store.OccurrenceHook(ev.Kind, ev.Cause), State: store.Waiting, Queue: j.Queue, Priority: j.Priority, ReadyAt: l.now}, time.Time{})
	}
}

// meetings returns the intervals for which each of the jobs that this job runs after has an end. It looks
// only at intervals for which there is a new end.
func (e *entry) meetings() (list []store.Meeting) {
	slices.SortStableFunc(e.ends, func(x, y endRow) int {
		return cmp.Or(cmp.Compare(x.Meets, y.Meets), cmp.Compare(x.AfterID, y.AfterID))
	})
	for i := 0; i < len(e.ends); {
		n, unseen := i, false
		m := store.Meeting{Meets: e.ends[i].Meets, Start: e.ends[i].start, End: e.ends[i].end}
		for ; n < len(e.ends) && e.ends[n].Meets == m.Meets; n++ {
			unseen = unseen || !e.ends[n].seen
			if e.ends[n].start.Before(m.Start) {
				m.Start = e.ends[n].start
			}
		}
		if unseen && n-i == e.of {
			list = append(list, m)
		}
		i = n
	}
	return list
}

// writeEnds stores the ends of runs for jobs that run after several jobs, and removes the ends that have met.
func (l *ledger) writeEnds(e *entry, d *store.Decision, read bool) {
	l.metMoved += len(d.Ends)
	for _, end := range d.Ends {
		f, x := l.byID[end.JobID], l.runs[end.RunID]
		known := slices.ContainsFunc(f.ends, func(o endRow) bool { return o.Meets == end.Meets && o.AfterID == end.AfterID })
		if known {
			continue
		}
		f.ends = append(f.ends, endRow{End: end, start: x.IntervalStart, end: x.IntervalEnd, at: l.now})
		if !f.inMet {
			f.inMet = true
			l.met = append(l.met, f)
		}
	}
	if !read {
		return
	}
	old := l.now.Add(-waitsForOthers)
	e.ends = slices.DeleteFunc(e.ends, func(o endRow) bool { return slices.Contains(d.Met, o.Meets) || o.at.Before(old) })
	for i := range e.ends {
		e.ends[i].seen = true
	}
}
