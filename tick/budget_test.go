package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The time for work ends while the pass adds the end of another run to its report. Afterwards it takes no run, because the
// time is over, and nothing executes any more. So it looks as if no work was left.
func TestBudgetUsedUpBesideAnEndIsTold(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		for _, budget := range []time.Duration{2 * time.Second, time.Minute} { // a slow machine cannot return the run in the share of 2 s
			queued(t, d, 2)
			var begun atomic.Int32
			tk := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
				if begun.Add(1) == 1 {
					return executor.Result{}, nil
				}
				<-ctx.Done()
				return executor.Result{}, ctx.Err()
			})
			tk.Queues, tk.Concurrency, tk.Budget = []string{"others"}, 2, budget
			end := time.Now().Add(2 * budget)
			tk.Progress = func(_, _, ended int) {
				for ended == 1 && time.Now().Before(end) && d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'running'") > 0 {
					time.Sleep(10 * time.Millisecond)
				}
			}
			r, err := tk.Work(t.Context())
			if err == nil && r.Waiting > 0 {
				if r.CutShort == "" {
					t.Errorf("not cut short: %+v", r.Runs)
				}
				return
			}
			d.Clock.Add(time.Hour) // the lease of the run that could not be returned is over
		}
		t.Error("no pass returned its run")
	})
}

// A pass whose budget is used up ends, says so, and returns the run.
func TestBudgetUsedUpIsNoError(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{}, ctx.Err()
		})
		for _, tk.Budget = range []time.Duration{4 * time.Second, time.Minute} { // a slow machine cannot return the run in the share of 4 s
			r, err := tk.Run(t.Context())
			if err != nil && tk.Budget == time.Minute || r.CutShort == "" || r.Failed != 0 {
				t.Fatalf("%v: %+v", err, r)
			}
			if err == nil {
				if r.Waiting != r.Started {
					t.Errorf("%+v", r)
				}
				break
			}
			d.Clock.Add(time.Hour) // the lease of the run that could not be returned is over
		}
	})
}

// If the budget ends after the record of the pass, before the last look for the next due time, that is no error either.
func TestBudgetUsedUpBeforeTheLastLookIsNoError(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		const budget, left = 20 * time.Second, 3 * time.Second
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			d.Clock.Add(budget - left)
			return executor.Result{}, nil
		})
		var recorded atomic.Bool
		calls := &storetest.Calls{Before: func(c storetest.Call) error {
			switch {
			case c.Kind == storetest.Exec && strings.Contains(c.SQL, d.Table("ticks")):
				recorded.Store(true)
			case c.Kind == storetest.Query && recorded.Load():
				time.Sleep(left + time.Second) // so that the budget has ended, also where the machine is busy
			}
			return nil
		}}
		tk.Store, tk.Now, tk.Budget = ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap}), d.Clock.Now, budget
		r, err := tk.Run(t.Context())
		if err != nil || r.Succeeded != 1 || !strings.Contains(r.CutShort, "last look") {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("ticks")+" WHERE error IS NULL"); n != 1 {
			t.Errorf("passes on record: %d", n)
		}
	})
}

// A pass has not read its figures if the budget ends before the last of them is read. It does not report them: a monitor would take
// those that are missing for zero.
func TestBudgetUsedUpInTheLastLookLeavesFiguresOut(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		const budget, left = 20 * time.Second, 3 * time.Second
		var begun, recorded atomic.Bool
		calls := &storetest.Calls{Before: func(c storetest.Call) error {
			switch {
			case c.Kind == storetest.Exec && strings.Contains(c.SQL, d.Table("ticks")):
				recorded.Store(true)
			case c.Kind == storetest.Query && recorded.Load():
				time.Sleep(left + time.Second) // so that the budget has ended, also where the machine is busy
			case c.Kind == storetest.Query && begun.CompareAndSwap(false, true):
				d.Clock.Add(budget - left)
			}
			return nil
		}}
		tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap}))
		tk.Now, tk.Budget, tk.Gauges = d.Clock.Now, budget, true
		if r, err := tk.Run(t.Context()); err != nil || !strings.Contains(r.CutShort, "last look") || r.States || !r.Unseen || !r.Remind {
			t.Errorf("%v: figures are reported: %t; to be said: %t, %t; %+v", err, r.States, r.Unseen, r.Remind, r)
		}
	})
}

// Without a budget, the last look has some seconds. A figure that takes longer is left out: what the pass has done is on record.
func TestLastLookThatTakesTooLongIsNoError(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		asked := false
		calls := &storetest.Calls{Before: func(c storetest.Call) error {
			if strings.Contains(c.SQL, "p.scope IN ('all', 'owner') AND") {
				asked = true
				time.Sleep(time.Minute)
			}
			return nil
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		tk := ticktest.New(t, d.Store)
		tk.Gauges = true
		r, err := tk.Run(t.Context())
		if err != nil || !asked || !strings.Contains(r.CutShort, "last look") || r.States {
			t.Errorf("asked: %t; %v: figures are reported: %t; %+v", asked, err, r.States, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("ticks")+" WHERE error IS NULL"); n != 1 {
			t.Errorf("passes on record: %d", n)
		}
	})
}

// If the budget ends before the jobs in trouble are counted, nobody knows their number: the probe counts those that somebody has
// paused, too.
func TestBudgetUsedUpInTheLastLookCountsNoJobs(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		const budget, left = 20 * time.Second, 3 * time.Second
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "broken", Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}}}})
		ticktest.Request(t, d, "broken")
		ticktest.Run(t, d)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "broken"}, time.Time{})
		ticktest.Run(t, d)
		for _, dry := range []bool{false, true} {
			var begun atomic.Bool
			calls := &storetest.Calls{Before: func(c storetest.Call) error {
				switch {
				case c.Kind == storetest.Query && strings.Contains(c.SQL, "t.streak, t.jobs"):
					time.Sleep(left + time.Second) // so that the budget has ended, also where the machine is busy
				case c.Kind == storetest.Query && begun.CompareAndSwap(false, true):
					d.Clock.Add(budget - left)
				}
				return nil
			}}
			tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap}))
			tk.Now, tk.Budget, tk.DryRun = d.Clock.Now, budget, dry
			if r, err := tk.Run(t.Context()); err != nil || !strings.Contains(r.CutShort, "last look") || r.FailingJobs != 0 {
				t.Errorf("a dry run: %t: %v: %d jobs are failing: %+v", dry, err, r.FailingJobs, r)
			}
		}
	})
}

// If the budget of a worker ends while it asks which runs are too long for it, that is no error either.
func TestBudgetUsedUpBeforeTheLeftRunsAreReadIsNoError(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		asked := false
		for _, budget := range []time.Duration{2 * time.Second, 20 * time.Second} { // a slow machine may not come as far in 2 s
			queued(t, d, 1)
			tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) { return executor.Result{}, nil })
			calls := &storetest.Calls{Before: func(c storetest.Call) error {
				if strings.Contains(c.SQL, "SELECT j.owner, j.name, j.timeout_ms") {
					asked = true
					time.Sleep(budget)
				}
				return nil
			}}
			tk.Store, tk.Queues, tk.Budget = ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap}), []string{"others"}, budget
			r, err := tk.Work(t.Context())
			if err != nil || asked && (r.Succeeded == 0 || r.CutShort == "") {
				t.Fatalf("%v: %+v", err, r)
			}
			if asked {
				return
			}
			d.Clock.Add(time.Hour)
		}
		t.Error("no pass asked which runs are left")
	})
}

// A run starts only if its timeout fits into the rest of the budget. A run that never fits is left, and reported.
func TestBudgetTooSmallForARunLeavesIt(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		job := func(name string, timeout time.Duration, priority int) store.Job {
			return store.Job{Name: name, Timeout: store.Duration(timeout), Priority: priority, Steps: []store.Step{ticktest.Call("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job("never", time.Hour, 9), job("slow", 0, 8), job("long", 40*time.Second, 7), job("short", 5*time.Second, 6), job("timeless", 0, 5)}})
		for _, name := range []string{"never", "slow", "long", "short", "timeless"} {
			ticktest.Request(t, d, name)
		}
		var executed []string
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			if executed = append(executed, r.Task.Job.Name); r.Task.Job.Name == "slow" {
				d.Clock.Add(35 * time.Second)
			}
			return executor.Result{}, nil
		})
		tk.Now, tk.Budget, tk.Concurrency = d.Clock.Now, time.Minute, 1
		r, err := tk.Run(t.Context())
		if err != nil || !slices.Equal(executed, []string{"slow", "short"}) {
			t.Fatalf("%v: executed %v: %+v", err, executed, r)
		}
		if len(r.TooLong) != 1 || !strings.HasSuffix(r.TooLong[0].Job, "never") || r.TooLong[0].Timeout != store.Duration(time.Hour) || r.CutShort == "" {
			t.Errorf("%+v", r)
		}
		if r, err = tk.Run(t.Context()); err != nil || !slices.Equal(executed[2:], []string{"long", "timeless"}) || len(r.TooLong) != 1 {
			t.Fatalf("%v: executed %v: %+v", err, executed, r)
		}
		tk.Budget = 0
		if r, err = tk.Run(t.Context()); err != nil || r.Succeeded != 1 || len(r.TooLong) != 0 {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// A quiet pass reports a run that never fits when the run is new, and once an hour. A worker does not know what was reported
// before, so it does so each time.
func TestBudgetTooSmallForARunIsTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name, queue string) store.Job {
			return store.Job{Name: name, Queue: queue, Timeout: store.Duration(time.Hour), Steps: []store.Step{ticktest.Nop("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job("one", ""), job("two", ""), job("report", "reports")}})
		tk := ticktest.New(t, d.Store)
		tk.Now, tk.Budget = d.Clock.Now, time.Minute
		reminds := func(hour, minute, left int, want bool) {
			t.Helper()
			d.Clock.Set(ticktest.Morning(hour, minute))
			if r := ticktest.Pass(t, tk); r.Remind != want || len(r.TooLong) != left {
				t.Errorf("%d:%02d: %t, want %t; %v", hour, minute, r.Remind, want, r.TooLong)
			}
		}
		reminds(8, 10, 0, true)
		d.Clock.Add(20 * time.Second)
		ticktest.RunNow(t, d, "one", store.Request{})
		reminds(8, 11, 1, true)
		reminds(8, 12, 1, false)
		d.Clock.Add(20 * time.Second)
		ticktest.RunNow(t, d, "two", store.Request{})
		reminds(8, 13, 2, true)
		reminds(8, 14, 2, false)
		reminds(8, 30, 2, false)
		reminds(9, 0, 2, true)
		ticktest.RunNow(t, d, "report", store.Request{})
		ticktest.DecideOnly(t, d)
		tk.Name, tk.Queues = "work", []string{"reports"}
		for range 2 {
			if r, err := tk.Work(t.Context()); err != nil || !r.Remind || len(r.TooLong) != 1 {
				t.Errorf("a worker: %v: %t: %v", err, r.Remind, r.TooLong)
			}
		}
	})
}

// While runs are queued, decisions get a third of the budget. Then the runs go first, and the decisions go on when no
// run is left.
func TestBudgetOfDecidingGivesWayToQueuedRuns(t *testing.T) {
	t.Parallel()
	const jobs, page, eachPage, budget = 30, 5, 40 * time.Second, 300 * time.Second
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			d.Seed(t, storetest.Seed{Jobs: jobs, Rules: []string{"every 5m"}, Steps: []store.Step{{Executor: "nothing", Spec: []byte("{}")}}})
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET timeout_ms = 1000") // otherwise none would start in the second half
			ticktest.Run(t, d)
			d.Clock.Add(5 * time.Minute)

			host := storetest.NewClock(time.Now()) // by this clock, a page takes some time
			var pages []string
			beyond := 0
			var calls storetest.Calls
			calls.Before = func(c storetest.Call) error {
				if c.Kind != storetest.Query || !strings.Contains(c.SQL, "next_run <=") || !strings.Contains(c.SQL, "LIMIT") || strings.Contains(c.SQL, "installation i") ||
					strings.Contains(c.SQL, "runs_made") { // that reads the plans of a page
					return nil
				}
				queued := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'")
				ended := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state NOT IN ('waiting', 'queued')")
				pages = append(pages, fmt.Sprintf("%d queued, %d started", queued, ended))
				if time.Duration(len(pages)-1)*eachPage >= budget/3 {
					beyond++
					under := page // a batch that was under way at the same time as this page has written its runs since
					if e == "sqlite" {
						under = 0
					}
					if queued > under {
						t.Errorf("page %d: %d are queued", len(pages), queued)
					}
				}
				host.Add(eachPage)
				return nil
			}
			tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
			tk.Executors["nothing"] = ticktest.Nothing{}
			tk.Now, tk.Batch, tk.Budget = host.Now, page, budget
			r, err := tk.Run(t.Context())
			if err != nil || r.Made != jobs || beyond < 3 {
				t.Fatalf("%v: %q: %+v", err, pages, r)
			}
			if left := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'"); left > 0 && r.Started != jobs-left {
				t.Errorf("%d are left: %+v", left, r)
			}
			t.Logf("%q", pages)
		})
	}
}

// A pass that is asked to stop takes no more runs. The runs that execute have a grace period in which they can end, and
// are returned after it.
func TestGraceLetsRunsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace, budget time.Duration
		done          int
	}{
		"long enough":            {grace: time.Minute, done: 1},
		"too short":              {grace: 10 * time.Millisecond},
		"none":                   {},
		"longer than its budget": {grace: time.Hour, budget: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "one", Steps: []store.Step{ticktest.Call("")}}, {Name: "two", Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "one")
				ticktest.Request(t, d, "two")
				var cancel func()
				tk := ticktest.NewDoing(t, d, func(run context.Context, _ executor.Request) (executor.Result, error) {
					cancel()
					work := 200 * time.Millisecond
					if c.done == 0 {
						work = time.Minute
					}
					select {
					case <-time.After(work):
						return executor.Result{}, nil
					case <-run.Done():
						return executor.Result{}, run.Err()
					}
				})
				tk.Concurrency, tk.Grace = 1, c.grace
				for _, tk.Budget = range []time.Duration{c.budget, 10 * c.budget} { // a slow machine cannot return the run in the share of 6 s
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					cancel = stop
					r, err := tk.Run(ctx)
					if errors.Is(err, context.Canceled) && r.Started == 1 && r.Succeeded == c.done && r.Waiting == 1-c.done {
						return
					}
					if tk.Budget == 10*c.budget {
						t.Fatalf("%v: %+v", err, r)
					}
					d.Clock.Add(time.Hour) // the lease of the run that could not be returned is over
				}
			})
		})
	}
}
