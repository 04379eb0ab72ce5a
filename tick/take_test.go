package tick_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"syscall"
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

// The answer to the COMMIT of a take is lost. The process lives, and knows that it has begun nothing: it gives the run back, so a run
// with one delivery is executed, once. The server may be away at first, or may still be about to end the session of the take.
func TestTakeWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		undone, held bool
		away         int // how many times it cannot be reached
	}{"delivered": {}, "not delivered": {undone: true}, "away": {away: 3}, "under way": {held: true}} {
		t.Run(name, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", MaxDeliveries: 1, Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "job")
				ticktest.DecideOnly(t, d)
				executed := 0
				tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
					executed++
					return executor.Result{}, nil
				})
				tk.Queues = []string{"others"}
				unanswered := unansweredTake(t, d, c.undone, c.held, c.away)
				tk.Store = ticktest.OpenBeside(t, d, "", store.Options{Wrap: unanswered.Wrap})
				if r, err := tk.Work(t.Context()); !errors.Is(err, store.ErrInDoubt) || r.Started != 0 {
					t.Errorf("%v: %d started", err, r.Started)
				}
				d.Clock.Add(5 * time.Minute)
				ticktest.DecideOnly(t, d)
				tk.Store = d.Store
				if _, err := tk.Work(t.Context()); err != nil {
					t.Error(err)
				}
				r := ticktest.LastRun(t, d, "job")
				if executed != 1 || r.State != store.Succeeded || r.Losses != 0 || r.Attempts != 1 {
					t.Errorf("executed %d times: %s after %d attempts, %d losses: %s", executed, r.State, r.Attempts, r.Losses, r.Error)
				}
			})
		})
	}
}

// unansweredTake loses the answer to the COMMIT of the first take. undone: it did not take place. held: the run stays locked until
// somebody has tried to lock it. away: how often the server cannot be reached after that.
func unansweredTake(t *testing.T, d *storetest.DB, undone, held bool, away int) *storetest.Calls {
	t.Helper()
	free := func() {}
	begun, lost, tries := false, false, 0
	lose := func(c storetest.Call, here bool) error {
		if !here || lost || !begun || c.Kind != storetest.Commit {
			return nil
		}
		if lost = true; held {
			tx, err := d.SQL.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			free = sync.OnceFunc(func() { _ = tx.Rollback() })
			t.Cleanup(free)
			if _, err := tx.ExecContext(t.Context(), "SELECT id FROM "+d.Table("runs")+" FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
		}
		return syscall.ECONNRESET
	}
	return &storetest.Calls{
		Before: func(c storetest.Call) error {
			if lost && away > 0 {
				if c.Kind == storetest.Connect {
					away--
				}
				return syscall.ECONNREFUSED
			}
			if lost && strings.HasPrefix(c.SQL, "SELECT id FROM") && strings.Contains(c.SQL, "SKIP LOCKED") {
				if tries++; tries > 1 {
					free()
				}
			}
			return lose(c, undone)
		},
		After: func(c storetest.Call) error {
			begun = begun || strings.HasPrefix(c.SQL, "INSERT INTO") && strings.Contains(c.SQL, "attempts")
			return lose(c, !undone)
		},
	}
}
