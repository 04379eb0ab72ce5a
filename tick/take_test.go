package tick_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// queued makes n runs in the queue of others. The first has a higher priority.
func queued(t *testing.T, d *storetest.DB, n int) (ids []string) {
	t.Helper()
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
		{Name: "urgent", Queue: "others", Priority: 1, Overlap: "allow", MaxRunning: 100, Steps: []store.Step{ticktest.Call("")}},
		{Name: "job", Queue: "others", Overlap: "allow", MaxRunning: 100, Steps: []store.Step{ticktest.Call("")}},
	}})
	for i := range n {
		name := map[bool]string{true: "urgent", false: "job"}[i == n-1]
		r := ticktest.RunNow(t, d, name, store.Request{})
		d.Clock.Add(time.Millisecond)
		ids = append(ids, r.ID)
	}
	ticktest.DecideOnly(t, d)
	return append(ids[n-1:], ids[:n-1]...)
}

// Sessions that take runs of one queue wait neither for each other nor for sessions that finish runs. While one session
// is in the middle of a take, another one takes the next runs, and ends them.
func TestTakeIsInNobodysWay(t *testing.T) {
	const limit = 3
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ids := queued(t, d, 12)
		h := store.Holder{Name: "second", Lease: time.Minute}
		met := false
		var calls storetest.Calls
		calls.Before = func(c storetest.Call) error {
			if met || c.Kind != storetest.Exec || !strings.Contains(c.SQL, "state = 'running', fence") {
				return nil
			}
			met = true
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			tasks, err := d.Take(ctx, "others", limit, h)
			if err != nil || len(tasks) != limit {
				t.Errorf("the second takes %d runs, %v", len(tasks), err)
			}
			for i := range tasks {
				if tasks[i].Run.ID != ids[limit+i] {
					t.Errorf("the second's run %d is %s, want %s", i, tasks[i].Run.ID, ids[limit+i])
				}
				if err := d.EndStep(ctx, &tasks[i], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
					t.Errorf("finish: %v", err)
				}
			}
			return nil
		}
		tasks, err := ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}).Take(t.Context(), "others", limit, store.Holder{Name: "first", Lease: time.Minute})
		if err != nil || len(tasks) != limit || !met {
			t.Fatalf("the first takes %d runs, %v", len(tasks), err)
		}
		for i := range tasks {
			if tasks[i].Run.ID != ids[i] {
				t.Errorf("the first's run %d is %s, want %s", i, tasks[i].Run.ID, ids[i])
			}
		}
	})
}

// A statement sees the runs as they were when it began, and locks them as they are now. A session that is slow between
// the two does not lock a run that another session has taken meanwhile, and the holder of that run finishes it at once.
func TestTakeLocksNothingThatIsTaken(t *testing.T) {
	const limit = 3
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 6)
		slow := map[string]string{"postgres": "pg_sleep(0.15) IS NOT NULL", "mariadb": "SLEEP(0.15) = 0"}[d.Engine]
		h := store.Holder{Name: "second", Lease: time.Minute}
		taken := make(chan []store.Task, 1)
		slowed, met := 0, false
		calls := storetest.Calls{Rewrite: func(text string) string {
			if changed := lockQueued.ReplaceAllString(text, "$0 AND "+slow); changed != text {
				slowed++
				return changed
			}
			return text
		}}
		calls.Before = func(c storetest.Call) error {
			switch {
			case c.Kind == storetest.Query && lockQueued.MatchString(c.SQL):
				time.AfterFunc(100*time.Millisecond, func() {
					tasks, err := d.Take(context.Background(), "others", limit, h)
					if err != nil || len(tasks) != limit {
						t.Errorf("the second takes %d runs, %v", len(tasks), err)
					}
					taken <- tasks
				})
			case c.Kind == storetest.Exec && strings.Contains(c.SQL, "state = 'running', fence"):
				met = true
				for _, task := range <-taken {
					ctx, stop := context.WithTimeout(context.Background(), time.Minute)
					if err := d.EndStep(ctx, &task, store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
						t.Errorf("finish: %v", err)
					}
					stop()
				}
			}
			return nil
		}
		tasks, err := ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}).Take(t.Context(), "others", limit, store.Holder{Name: "first", Lease: time.Minute})
		if err != nil || len(tasks) != limit || !met || slowed != 1 {
			t.Fatalf("the first takes %d runs, %v", len(tasks), err)
		}
	})
}

// lockQueued is the statement that locks queued runs, up to its condition on their state.
var lockQueued = regexp.MustCompile(`(?s)^SELECT r\.id, r\.job_id.*runs r .*state( \|\| '')? = 'queued'`)

// For any number of runs side by side, each connection is made once, and is used again later.
func TestTakeUsesItsConnectionsAgain(t *testing.T) {
	const runs, beside = 60, 12
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, runs)
		var calls storetest.Calls
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			time.Sleep(5 * time.Millisecond)
			return executor.Result{}, nil
		})
		tk.Store, tk.Concurrency, tk.Queues = ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}), beside, []string{"others"}
		r, err := tk.Work(t.Context())
		if err != nil || r.Succeeded != runs {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := calls.Count(storetest.Connect); n > beside+4 {
			t.Errorf("%d connections for %d runs side by side", n, beside)
		}
	})
}
