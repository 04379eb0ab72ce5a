package simulate

import (
	"cmp"
	"slices"

	"github.com/dbjobs/dbjobs/store"
)

// group is what a decision has to know of the runs of a group, so that it need not go through all of its jobs.
type group struct {
	max     int // 0: there is no such group
	active  int // runs that are under way
	waiting []store.GroupWaiter
}

// place is what a run is to its group.
type place struct {
	active bool
	waits  store.GroupWaiter // zero: it does not wait for its group
}

// inTurn orders runs as they are let go.
func inTurn(x, y store.GroupWaiter) int {
	return cmp.Or(cmp.Compare(y.Priority, x.Priority), x.ReadyAt.Compare(y.ReadyAt), cmp.Compare(x.Run, y.Run))
}

// group returns the group with that name, also if nobody has defined it.
func (l *ledger) group(name string) *group {
	if l.groups[name] == nil {
		l.groups[name] = &group{}
	}
	return l.groups[name]
}

// regroup counts a run in the group of its job as it is now. It follows each change of the run's state.
func (l *ledger) regroup(x *run) {
	if x.of.job.Group == "" {
		return
	}
	is := place{active: x.UnderWay()}
	if !is.active && x.State == store.Waiting && x.HeldBy == store.HeldByGroup {
		is.waits = store.GroupWaiter{Run: x.ID, JobID: x.JobID, Priority: x.Priority, ReadyAt: x.ReadyAt}
	}
	g, was := l.group(x.of.job.Group), x.place
	if x.place = is; was == is {
		return
	}
	if was.active {
		g.active--
	}
	if is.active {
		g.active++
	}
	if was.waits.Run != "" {
		i, _ := slices.BinarySearchFunc(g.waiting, was.waits, inTurn)
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	if is.waits.Run != "" {
		i, _ := slices.BinarySearchFunc(g.waiting, is.waits, inTurn)
		g.waiting = slices.Insert(g.waiting, i, is.waits)
	}
}

// readGroups fills what the decisions for some jobs have to know of their groups. Of the runs of other jobs that wait, it takes only
// the first ones, as a pass does.
func (l *ledger) readGroups(part []*entry, loads map[string]*store.GroupLoad) {
	here := map[int64]bool{}
	for _, e := range part {
		here[e.job.ID] = true
		for _, x := range e.open {
			if x.place.waits.Run != "" {
				load := loads[e.job.Group]
				load.Waiting = append(load.Waiting, x.place.waits)
			}
		}
	}
	for name, load := range loads {
		g, others := l.group(name), 0
		load.MaxRunning, load.Active = g.max, g.active
		for i := 0; i < len(g.waiting) && others < g.max; i++ {
			if w := g.waiting[i]; !here[w.JobID] {
				others++
				load.Waiting = append(load.Waiting, w)
			}
		}
	}
}
