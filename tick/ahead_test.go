package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// aheadOf is a worker that executes the queue of queued one at a time, by a clock that stands still. After the first
// run, it takes all others ahead. during is called in the second run, while the others wait.
func aheadOf(t *testing.T, d *storetest.DB, during func(context.Context)) (tk *tick.Tick, executed *int) {
	t.Helper()
	executed = new(int)
	tk = ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
		if *executed++; *executed == 2 {
			during(ctx)
		}
		return executor.Result{}, ctx.Err()
	})
	tk.Now, tk.Concurrency, tk.Queues = d.Clock.Now, 1, []string{"others"}
	return tk, executed
}

// states returns the states of all runs, with the traces of a delivery.
func states(t *testing.T, d *storetest.DB) string {
	t.Helper()
	var list []string
	runs, err := d.Runs(t.Context(), store.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		r, err := d.Run(t.Context(), runs[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s fence %d losses %d tries %d of %d started %t", r.State, r.Fence, r.Losses, len(r.Tries), r.Attempts, !r.StartedAt.IsZero()))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// Runs that were taken ahead are returned when the pass is asked to stop, or when its budget ends. Their delivery does
// not count: such a run has no attempt and no loss, and the next pass executes it.
func TestTakenAheadIsGivenBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 4)
		ctx, cancel := context.WithCancel(t.Context())
		tk, executed := aheadOf(t, d, func(context.Context) {
			if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'running'"); n != 3 {
				t.Errorf("%d runs are held", n)
			}
			cancel()
		})
		tk.Grace = time.Minute
		r, err := tk.Work(ctx)
		if !errors.Is(err, context.Canceled) || *executed != 2 || r.Started != 2 || r.Succeeded != 2 {
			t.Fatalf("%v: executed %d: %+v", err, *executed, r)
		}
		const ended, back = "succeeded fence 1 losses 0 tries 1 of 1 started true", "queued fence 1 losses 0 tries 0 of 0 started false\n"
		if got := states(t, d); got != back+back+ended+"\n"+ended {
			t.Error(got)
		}
		ticktest.DecideOnly(t, d)
		tk, executed = aheadOf(t, d, func(ctx context.Context) { <-ctx.Done() })
		tk.Budget, tk.Limit = 20*time.Second, 1
		if r, err := tk.Work(t.Context()); err != nil || r.Started != 1 || *executed != 1 {
			t.Fatalf("with a limit: %v: %+v", err, r)
		}
	})
}

// The rows of the runs may be locked at that time, as by a heartbeat of the pass itself: the runs are returned as soon as they are
// free. What stands alone goes to a server that does not know of the runs yet.
func TestTakenAheadIsGivenBackAfterALock(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 4)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tried := make(chan struct{}, 100)
		proxy := newSplit(func(inTx bool) bool { return !inTx })
		after := proxy.After
		proxy.After = func(c storetest.Call) error {
			if strings.HasPrefix(c.SQL, "SELECT r.id, r.fence") {
				tried <- struct{}{}
			}
			return after(c)
		}
		tk, executed := aheadOf(t, d, func(context.Context) {
			tx, err := d.SQL.BeginTx(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.Exec("SELECT id FROM " + d.Table("runs") + " WHERE state = 'running' FOR UPDATE"); err != nil {
				t.Error(err)
			}
			for len(tried) > 0 { // the end of the first run
				<-tried
			}
			cancel()
			<-tried
		})
		tk.Store, tk.Grace = ticktest.OpenBeside(t, d, "", store.Options{Wrap: proxy.Wrap}), time.Minute
		r, err := tk.Work(ctx)
		if !errors.Is(err, context.Canceled) || *executed != 2 || r.Started != 2 || r.Succeeded != 2 {
			t.Fatalf("%v: executed %d: %+v", err, *executed, r)
		}
		const ended, back = "succeeded fence 1 losses 0 tries 1 of 1 started true", "queued fence 1 losses 0 tries 0 of 0 started false\n"
		if got := states(t, d); got != back+back+ended+"\n"+ended {
			t.Error(got)
		}
	})
}

// The end of the budget ends the run that executes. The runs that wait behind it have not begun.
func TestTakenAheadIsGivenBackAtTheEndOfTheBudget(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		for _, budget := range []time.Duration{5 * time.Second, time.Minute} { // a slow machine cannot return the runs in the share of 5 s
			d.Exec(t, "DELETE FROM "+d.Table("attempts"))
			d.Exec(t, "DELETE FROM "+d.Table("runs"))
			queued(t, d, 4)
			tk, executed := aheadOf(t, d, func(ctx context.Context) { <-ctx.Done() })
			tk.Budget = budget
			r, err := tk.Work(t.Context())
			if err != nil && budget < time.Minute {
				continue
			}
			if err != nil || *executed != 2 || r.Started != 2 || r.Waiting != 1 || r.CutShort == "" {
				t.Fatalf("%v: executed %d: %+v", err, *executed, r)
			}
			if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued' AND losses = 0 AND attempts = 0 AND started_at IS NULL"); n != 2 {
				t.Errorf("given back: %d\n%s", n, states(t, d))
			}
			return
		}
	})
}

// Behind a run that lasts longer than the last ones, the runs that were taken ahead are returned for other workers. If
// there is no other worker, the same worker executes them: this needs no decision.
func TestTakenAheadBehindALongRunIsExecutedByTheSameWorker(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 5)
		tk, executed := aheadOf(t, d, func(context.Context) { d.Clock.Add(time.Minute) })
		r, err := tk.Work(t.Context())
		if err != nil || *executed != 5 || r.Started != 5 || r.Succeeded != 5 {
			t.Fatalf("%v: executed %d: %+v\n%s", err, *executed, r, states(t, d))
		}
		const once, again = "succeeded fence 1 losses 0 tries 1 of 1 started true\n", "succeeded fence 2 losses 0 tries 1 of 1 started true\n"
		if got := states(t, d); got+"\n" != once+once+again+again+again {
			t.Error(got)
		}
	})
}

// A host's clock that goes back says nothing about how long the runs behind a long run have waited: they are returned, too.
func TestTakenAheadBehindALongRunWhileTheClockGoesBack(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 5)
		tk, executed := aheadOf(t, d, func(context.Context) {
			d.Clock.Add(-time.Hour)
			for held, try := 4, 0; held > 1; try++ {
				if held = d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'running'"); try == 400 {
					t.Errorf("%d runs are held", held)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		if r, err := tk.Work(t.Context()); err != nil || *executed != 5 || r.Succeeded != 5 {
			t.Errorf("%v: executed %d: %+v\n%s", err, *executed, r, states(t, d))
		}
	})
}

// The first attempt of a run that was taken ahead begins when the run has its place, and its later attempts begin when they do:
// the time for which the run has waited counts once.
func TestTakenAheadWaitsBeforeItsFirstStepOnly(t *testing.T) {
	atomic := []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)"), ticktest.AtomicStep("INSERT INTO effects VALUES (2)")}
	atomic[0].Name, atomic[1].Name = "one", "two"
	for kind, list := range map[string][]store.Step{"plain": {ticktest.Call("one"), ticktest.Call("two")}, "atomic": atomic} {
		t.Run(kind, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				d.Exec(t, "CREATE TABLE effects (n int)")
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Overlap: "allow", MaxRunning: 100, Steps: list}}})
				for range 3 {
					ticktest.Request(t, d, "job")
				}
				ticktest.DecideOnly(t, d)
				const took = 300 * time.Millisecond
				steps := 0
				last := func() {
					if steps++; steps > 2 { // the first run is quick, so that the others are taken ahead
						d.Clock.Add(took)
					}
				}
				tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
					last()
					return executor.Result{}, nil
				})
				statements := tk.Executors["sql"]
				tk.Executors["sql"] = ticktest.Doing(func(ctx context.Context, r executor.Request) (executor.Result, error) {
					last()
					return statements.Execute(ctx, r)
				})
				tk.Now, tk.Concurrency, tk.Queues = d.Clock.Now, 1, []string{"others"}
				if r, err := tk.Work(t.Context()); err != nil || r.Succeeded != 3 {
					t.Fatalf("%v: %+v", err, r)
				}
				run, err := d.Run(t.Context(), ticktest.LastRun(t, d, "job").ID)
				if err != nil || len(run.Tries) != 2 {
					t.Fatalf("%v: %+v", err, run.Tries)
				}
				for _, a := range run.Tries {
					if got := a.FinishedAt.Sub(a.StartedAt); got != took {
						t.Errorf("step %d took %s, want %s", a.Step, got, took)
					}
				}
			})
		})
	}
}

// A pause that came while runs were taken ahead has not held these runs. The runs that were returned are looked at
// again at once: a pause holds them, and without a pause they stay queued.
func TestTakenAheadAndGivenBackIsLookedAtOnce(t *testing.T) {
	for _, paused := range []bool{true, false} {
		t.Run(fmt.Sprint("paused ", paused), func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				queued(t, d, 4)
				ctx, cancel := context.WithCancel(t.Context())
				tk, _ := aheadOf(t, d, func(context.Context) {
					if paused {
						pause(t, d, store.ScopeJob, "job", time.Time{})
					}
					ticktest.DecideOnly(t, d)
					cancel()
				})
				tk.Grace = time.Minute
				if _, err := tk.Work(ctx); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				for _, want := range []bool{true, false} {
					tk := ticktest.New(t, d.Store)
					tk.Limit = -1
					if r, err := tk.Run(t.Context()); err != nil || r.Decided > 0 != want {
						t.Errorf("%v: decided for %d jobs", err, r.Decided)
					}
				}
				state := map[bool]string{true: "state = 'waiting' AND held_by = 'pause'", false: "state = 'queued'"}[paused]
				if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE wake_at IS NULL AND "+state); n != 2 {
					t.Errorf("%d\n%s", n, states(t, d))
				}
			})
		})
	}
}

// A run whose next loss would be its last is taken only for a free place, and never waits. The runs behind it wait for
// their turn in the queue.
func TestTakenAheadIsNothingThatMayBeDeliveredOnceOnly(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 6)
		for what, set := range map[string]string{"once": "UPDATE " + d.Table("jobs") + " SET max_deliveries = 1", "lost before": "UPDATE " + d.Table("runs") + " SET losses = 2"} {
			d.Exec(t, set)
			most := 0
			tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
				most = max(most, d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'running'"))
				return executor.Result{}, nil
			})
			tk.Now, tk.Concurrency, tk.Queues, tk.Limit = d.Clock.Now, 1, []string{"others"}, 3
			if r, err := tk.Work(t.Context()); err != nil || r.Succeeded != 3 || most != 1 {
				t.Errorf("%s: %v: %d held at once: %+v", what, err, most, r)
			}
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET max_deliveries = 3")
		}
	})
}

// A run does not begin if it is cancelled while it waits.
func TestTakenAheadAndCancelledDoesNotBegin(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ids := queued(t, d, 4)
		looked := make(chan struct{}, 100)
		var calls storetest.Calls
		calls.After = func(c storetest.Call) error {
			if strings.HasPrefix(c.SQL, "SELECT id, fence, cancel_at") {
				looked <- struct{}{}
			}
			return nil
		}
		tk, executed := aheadOf(t, d, func(context.Context) {
			if _, err := d.CancelRun(t.Context(), ids[2], store.Author{}); err != nil {
				t.Error(err)
			}
			for range 3 { // the first look may have begun before
				<-looked
			}
		})
		tk.Store = ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})
		r, err := tk.Work(t.Context())
		if err != nil || *executed != 3 || r.Succeeded != 3 || r.Cancelled != 1 {
			t.Fatalf("%v: executed %d: %+v", err, *executed, r)
		}
		if run, err := d.Run(t.Context(), ids[2]); err != nil || run.State != store.Cancelled {
			t.Errorf("%v: %+v", err, run.Run)
		}
	})
}

// Several ends are recorded together: one whose run was delivered again, one that the database refuses, and one whose
// row somebody has locked. None of them stops the others, and each is reported by itself.
func TestEndsTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 5)
		h := store.Holder{Name: "holder", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "others", 5, h)
		if err != nil || len(tasks) != 5 {
			t.Fatal(err, len(tasks))
		}
		list := make([]*store.Ending, len(tasks))
		for i := range tasks {
			list[i] = &store.Ending{Task: &tasks[i], End: store.StepEnd{State: store.Succeeded, Final: store.Succeeded}}
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET fence = fence + 1 WHERE id = '"+tasks[0].Run.ID+"'")
		list[1].End.State = "nonsense"
		want := []error{store.ErrAlone, store.ErrAlone, nil, nil, nil}
		if d.Engine != "sqlite" {
			tx, err := d.SQL.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.Exec("SELECT id FROM " + d.Table("runs") + " WHERE id = '" + tasks[2].Run.ID + "' FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
			want[2] = store.ErrAlone
		}
		if d.EndSteps(t.Context(), list) {
			t.Error("everything is paused")
		}
		for i, e := range list {
			run, err := d.Run(t.Context(), e.Task.Run.ID)
			if err != nil {
				t.Fatal(err)
			}
			ended := run.State == store.Succeeded && run.Tries[0].State == store.Succeeded
			if !errors.Is(e.Err, want[i]) || ended != (want[i] == nil) || ended != (e.Task.Run.State == store.Succeeded) {
				t.Errorf("%d: %v, want %v: %s, of which is known %s", i, e.Err, want[i], run.State, e.Task.Run.State)
			}
		}
		if err := d.EndStep(t.Context(), list[0].Task, store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); !errors.Is(err, store.ErrOutdated) {
			t.Error(err)
		}
	})
}
