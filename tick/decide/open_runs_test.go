package decide

import (
	"strconv"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A decision copies the open runs of its job a few times, however many wait: a list of them never grows run by run.
func TestDecisionsAllocateAFewListsOfOpenRuns(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	allocations := func(runs int) float64 {
		j := store.Job{ID: 1, Name: "crowded", MaxRunning: 1, CreatedAt: now.Add(-time.Hour), Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		s := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: now, RunsMade: int64(runs)}, Job: j}
		for i := range runs {
			r := store.Run{ID: strconv.Itoa(i), JobID: 1, Number: int64(i) + 1, Occurrence: "now:" + strconv.Itoa(i), State: store.Waiting, Queue: j.Queue,
				HeldBy: store.HeldByPredecessor, ReadyAt: now, CreatedAt: now}
			if i == 0 {
				r.State, r.HeldBy, r.Fence, r.Attempt, r.Attempts, r.StartedAt, r.LeaseUntil = store.Running, "", 1, 1, 1, now, now.Add(time.Hour)
			}
			s.Runs = append(s.Runs, r)
		}
		if d := Job(now, s, testPass("")); len(d.Updates) != 0 || d.Plan.Parked != "" {
			t.Fatalf("%d runs: %d updates, parked: %q", runs, len(d.Updates), d.Plan.Parked)
		}
		return testing.AllocsPerRun(5, func() { Job(now, s, testPass("")) })
	}
	few, many := allocations(10), allocations(5000)
	t.Logf("%g allocations for 10 open runs, %g for 5000", few, many)
	if many > few+3 {
		t.Errorf("%g allocations for 5000 open runs, %g for 10", many, few)
	}
}
