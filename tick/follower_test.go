package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// decideFor decides for the jobs of one need, as a pass does that looks after no other.
func decideFor(t *testing.T, d *storetest.DB, n store.Need) {
	t.Helper()
	login, err := d.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen, err := d.Unmarked(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	page := store.NewPage(n, d.Clock.Now(), seen)
	if more, err := d.Next(t.Context(), page, 100); err != nil || !more {
		t.Fatalf("%s: %v, %v", n, more, err)
	}
	pass := &decide.Pass{Login: login, Heartbeat: 30 * time.Second}
	decider := store.Decider{Job: func(now time.Time, c *store.Snapshot) store.Decision { return decide.Job(now, c, pass) }, Groups: decide.Groups}
	if _, err := d.Decide(t.Context(), page, decider); err != nil {
		t.Fatal(err)
	}
}

func TestAFollowerWakesWhicheverNeedSettlesItsPredecessor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		needs := []store.Need{store.JobChanged, store.PauseChanged, store.RunWakes, store.Due}
		steps := []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
		var defs store.Definitions
		for _, n := range needs {
			defs.Jobs = append(defs.Jobs,
				store.Job{Name: n.String(), Queue: "others", Own: &store.Schedule{Rule: "every 1h"}, Steps: steps},
				store.Job{Name: "after " + n.String(), Queue: "others", After: n.String(), Steps: steps})
		}
		change := func() {
			if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		change()
		decideFor(t, d, store.JobChanged)
		h := store.Holder{Name: "another", Lease: time.Minute}
		for _, n := range needs {
			if _, err := d.RunNow(t.Context(), n.String(), store.Request{}); err != nil {
				t.Fatal(err)
			}
			decideFor(t, d, store.RunWakes)
			tasks, err := d.Take(t.Context(), "others", 10, h)
			k := slices.IndexFunc(tasks, func(task store.Task) bool { return task.Job.Name == n.String() })
			if err != nil || k < 0 {
				t.Fatalf("%s: %v, %+v", n, err, tasks)
			}
			if err := d.EndStep(t.Context(), &tasks[k], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
				t.Fatal(err)
			}
			switch n {
			case store.JobChanged:
				defs.Jobs[0].Jitter = store.Duration(time.Second)
				change()
			case store.PauseChanged:
				if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: n.String()}, time.Time{}, store.Author{}); err != nil {
					t.Fatal(err)
				}
			case store.Due:
				d.Clock.Add(time.Hour)
			}
			decideFor(t, d, n)
			if runs, err := d.Runs(t.Context(), store.RunFilter{Job: "after " + n.String()}); err != nil || len(runs) != 1 {
				t.Errorf("%s: %v, %d runs of the follower", n, err, len(runs))
			}
		}
	})
}
