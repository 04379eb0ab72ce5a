package tick_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// TestRunsThatWereQueuedBeforeAreCounted: an earlier pass has queued as many runs as fit into the places of the next pass,
// and could not begin them. The next pass has nothing else to decide. It still counts how these runs ended, and runs their hook.
func TestRunsThatWereQueuedBeforeAreCounted(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		const places = 3
		var defs store.Definitions
		for i := range places {
			j := ticktest.Hourly(fmt.Sprintf("job %d", i))
			j.Steps, j.On.Failed = []store.Step{ticktest.Call("")}, "told"
			defs.Jobs = append(defs.Jobs, j)
		}
		first := ticktest.Hourly("first")
		first.Priority = 1
		defs.Jobs = append(defs.Jobs, first, store.Job{Name: "told", Overlap: store.OverlapAllow, MaxRunning: 100, Steps: []store.Step{ticktest.Nop("")}})
		ticktest.Apply(t, d, defs)
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, errors.New("failed as it should")
		})
		tk.Concurrency = places
		ticktest.DecideOnly(t, d)
		d.Clock.Set(ticktest.Morning(9, 0))
		for _, tk.Limit = range []int{1, 0} {
			ticktest.Pass(t, tk)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE settled_at IS NULL"); n != 0 {
			t.Errorf("%d runs are not counted", n)
		}
		if states := ticktest.States(t, d, "told"); len(states) != places {
			t.Errorf("of %d failures, the hook was told %d: %v", places, len(states), states)
		}
	})
}

// TestQueuedRunsThatEndBeforeADecision: a worker that fills its own queue inserts runs as queued, and ends them before a pass
// has seen them. The pass that settles them gives them their numbers, so that they count, and that the history is bounded.
func TestQueuedRunsThatEndBeforeADecision(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const runs, kept = 5, 2
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "letters", Queue: "post", Overlap: store.OverlapAllow, MaxRunning: 1_000_000,
			Keep: store.Keep{Runs: kept}, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.DecideOnly(t, d)
		for i := range runs {
			d.Clock.Add(time.Second)
			now := ticktest.Literal(d, d.Clock.Now())
			d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, occurrence, queue, state, ready_at, created_at) SELECT '00000000-0000-7000-9000-%012d', id, 'now:%[2]d', 'post', 'queued', %[3]s, %[3]s FROM %[4]s",
				d.Table("runs"), i, now, d.Table("jobs")))
			d.Exec(t, fmt.Sprintf("UPDATE %s SET state = 'running', fence = 1, attempt = 1, attempts = 1, holder = 'post/1', started_at = %s, lease_until = %[2]s WHERE state = 'queued'", d.Table("runs"), now))
			d.Exec(t, fmt.Sprintf("UPDATE %s SET state = 'failed', error = 'no stamp', finished_at = %s, lease_until = NULL WHERE state = 'running'", d.Table("runs"), now))
		}
		ticktest.Run(t, d)
		list, err := d.Runs(t.Context(), store.RunFilter{Job: "letters"})
		if err != nil || len(list) != kept || list[0].Number != runs || list[1].Number != runs-1 {
			t.Errorf("%v: %+v\nwant the newest %d of %d runs", err, list, kept, runs)
		}
		if j, err := d.Job(t.Context(), "letters"); err != nil || j.RunsMade != runs || j.Streak != runs {
			t.Errorf("%v: %d runs are counted, and %d failures; want %d", err, j.RunsMade, j.Streak, runs)
		}
		later := ticktest.RunNow(t, d, "letters", store.Request{})
		ticktest.DecideOnly(t, d)
		if r, err := d.Run(t.Context(), "letters"); err != nil || r.ID != later.ID || r.Number != runs+1 {
			t.Errorf("%v: the latest run is %s, #%d; want %s, #%d", err, r.ID, r.Number, later.ID, runs+1)
		}
	})
}

// A run that was cut, has lost its process, or is tried again keeps its place: it goes before the runs of its queue that were made
// after it. Behind a backlog, its timeout would end it.
func TestRunsThatWereDeliveredBeforeKeepTheirPlace(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		one := []store.Step{ticktest.Call("")}
		names := []string{"cut", "lost", "tried", "behind"}
		var defs store.Definitions
		for _, name := range names {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Queue: "q", Timeout: store.Duration(time.Hour), Steps: one})
		}
		ticktest.Apply(t, d, defs)
		h := store.Holder{Name: "h", Lease: time.Minute}
		take := func(want ...string) (tasks []store.Task) {
			t.Helper()
			ticktest.DecideOnly(t, d)
			tasks, err := d.Take(t.Context(), "q", len(want), h)
			if err != nil || len(tasks) != len(want) {
				t.Fatalf("%v: %d runs, want %d", err, len(tasks), len(want))
			}
			for i := range tasks {
				if got := tasks[i].Job.Name; got != want[i] {
					t.Errorf("%q is delivered, want %q", got, want[i])
				}
			}
			return tasks
		}
		for _, name := range names {
			ticktest.RunNow(t, d, name, store.Request{})
			d.Clock.Add(time.Second)
		}
		tasks := take("cut", "lost", "tried")
		for i, end := range map[int]store.StepEnd{0: {State: "cut", Redeliver: true}, 2: {State: store.Failed, Retry: true, Backoff: time.Second}} {
			if err := d.EndStep(t.Context(), &tasks[i], end, h); err != nil {
				t.Fatal(err)
			}
		}
		d.Clock.Add(2 * time.Minute)
		take("cut", "lost", "tried", "behind")
	})
}
