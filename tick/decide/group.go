package decide

import (
	"cmp"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Groups completes the decisions of jobs that share a cap, from the data that was read under the locks
// of the groups. It queues runs that only their group holds back, by priority, then by the time at which
// they became ready. It returns the runs of other jobs whose turn has come: the decisions of these jobs
// queue them, under the locks of their plans.
func Groups(members []store.GroupDecision) (wake []string) {
	byGroup := map[*store.GroupLoad][]*store.GroupDecision{}
	var caps []*store.GroupLoad
	for i := range members {
		c := members[i].Snapshot.Group
		if byGroup[c] == nil {
			caps = append(caps, c)
		}
		byGroup[c] = append(byGroup[c], &members[i])
	}
	for _, c := range caps {
		wake = append(wake, admitGroup(c, byGroup[c])...)
	}
	for i := range members {
		d := &members[i].Decision
		d.Updates = slices.DeleteFunc(d.Updates, func(m store.RunUpdate) bool { return m.Unchanged })
	}
	return wake
}

// contender is a run that only its group holds back.
type contender struct {
	priority int
	ready    time.Time
	id       string           // empty: a decision of the batch makes the run
	run      *store.Run       // the run in a decision of the batch; nil: the run of another job
	update   *store.RunUpdate // the update in a decision of the batch; nil: the run is new, or of another job
}

func admitGroup(c *store.GroupLoad, members []*store.GroupDecision) (wake []string) {
	room := c.MaxRunning - c.Active
	var list []contender
	here := map[int64]bool{}
	for _, m := range members {
		here[m.Snapshot.Plan.JobID] = true
		d := &m.Decision
		room += m.Snapshot.UnderWay() - d.UnderWay
		for i := range d.Updates {
			if r := &d.Updates[i].Run; r.State == store.Waiting && r.HeldBy == store.HeldByGroup {
				list = append(list, contender{r.Priority, r.ReadyAt, r.ID, r, &d.Updates[i]})
			}
		}
		for i := range d.Made {
			if r := &d.Made[i]; r.State == store.Waiting && r.HeldBy == store.HeldByGroup {
				list = append(list, contender{r.Priority, r.ReadyAt, "", r, nil})
			}
		}
	}
	for _, h := range c.Waiting {
		if !here[h.JobID] {
			list = append(list, contender{h.Priority, h.ReadyAt, h.Run, nil, nil})
		}
	}
	slices.SortStableFunc(list, func(x, y contender) int {
		return cmp.Or(cmp.Compare(y.priority, x.priority), x.ready.Compare(y.ready), cmp.Compare(cmp.Or(x.id, "~"), cmp.Or(y.id, "~")))
	})
	for _, x := range list[:min(len(list), max(0, room))] {
		switch {
		case x.run == nil:
			wake = append(wake, x.id)
			continue
		case x.update != nil:
			x.update.Unchanged = false
		}
		x.run.State, x.run.HeldBy = store.Queued, ""
	}
	return wake
}
