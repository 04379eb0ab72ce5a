package decide

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A run that executes keeps its place in the group, also where the rows of its job cannot be read, so that the job is parked.
func TestAnUnreadableJobKeepsItsPlaceInTheGroup(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, fault := range []string{"", "its schedule: no text"} {
		load := &store.GroupLoad{Name: "g", MaxRunning: 1, Active: 1}
		member := func(id int64, r store.Run) *store.Snapshot {
			j := store.Job{ID: id, Name: "job", Group: "g", Steps: []store.Step{{Executor: "sql"}}}
			j.Normalize()
			r.JobID, r.Number = id, 1
			return &store.Snapshot{Plan: store.Plan{JobID: id, RunsMade: 1}, Job: j, Group: load, Runs: []store.Run{r}}
		}
		a := member(1, store.Run{ID: "1", Occurrence: "now:1", State: store.Running, Fence: 1, HolderAlive: true, StartedAt: now})
		b := member(2, store.Run{ID: "2", Occurrence: "now:2", State: store.Waiting, ReadyAt: now})
		a.Fault = fault
		members := []store.GroupDecision{{Snapshot: a, Decision: Job(now, a, testPass(""))}, {Snapshot: b, Decision: Job(now, b, testPass(""))}}
		Groups(members)
		if list := members[1].Decision.Updates; len(list) != 1 || list[0].Run.HeldBy != store.HeldByGroup {
			t.Errorf("fault %q: the other job's run: %+v", fault, list)
		}
	}
}
