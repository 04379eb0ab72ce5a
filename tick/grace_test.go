package tick_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// graceful is an executor whose attempts may take a while to end.
type graceful struct {
	ticktest.Doing
	grace time.Duration
}

func (g graceful) Grace(json.RawMessage) time.Duration { return g.grace }

// A program is stopped so early that its grace fits into the budget, and only as early as that leaves it time to work.
func TestGraceFitsIntoTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		budget, grace  time.Duration
		timeout, steps time.Duration // of the run, and of its step
		stops, most    time.Duration
	}{
		"a long budget":                        {budget: time.Minute, grace: 10 * time.Second, stops: 48 * time.Second, most: 58*time.Second + 500*time.Millisecond},
		"a short grace":                        {budget: 20 * time.Second, grace: 3 * time.Second, stops: 15 * time.Second, most: 18*time.Second + 500*time.Millisecond},
		"a third of the time is the most":      {budget: 20 * time.Second, grace: 10 * time.Second, stops: 12 * time.Second, most: 18*time.Second + 500*time.Millisecond},
		"a budget shorter than the grace":      {budget: 4 * time.Second, grace: 10 * time.Second, stops: 2400 * time.Millisecond, most: 3700 * time.Millisecond},
		"nothing to wait for":                  {budget: 20 * time.Second, stops: 18 * time.Second, most: 18*time.Second + 500*time.Millisecond},
		"a timeout that fits":                  {budget: 20 * time.Second, grace: 10 * time.Second, timeout: 17 * time.Second, stops: 17 * time.Second, most: 18*time.Second + 500*time.Millisecond},
		"a timeout of the step that fits":      {budget: 20 * time.Second, grace: 10 * time.Second, steps: 17 * time.Second, stops: 17 * time.Second, most: 18*time.Second + 500*time.Millisecond},
		"a timeout of the step that fits not":  {budget: 20 * time.Second, grace: 10 * time.Second, steps: 19 * time.Second, stops: 12 * time.Second, most: 18*time.Second + 500*time.Millisecond},
		"no budget":                            {grace: 10 * time.Second},
		"no budget, with a timeout of the run": {grace: 10 * time.Second, timeout: 17 * time.Second, stops: 17 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				step := ticktest.Call("")
				step.Timeout = store.Duration(c.steps)
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Timeout: store.Duration(c.timeout), Steps: []store.Step{step}}}})
				ticktest.Request(t, d, "job")
				tk := ticktest.New(t, d.Store)
				tk.Now, tk.Budget = d.Clock.Now, c.budget // this clock stands still, so that all of the budget is left
				before := time.Now()
				tk.Executors["doing"] = graceful{func(ctx context.Context, r executor.Request) (executor.Result, error) {
					stops, bounded := ctx.Deadline()
					if bounded != (c.stops > 0) || bounded && (stops.Before(before.Add(c.stops)) || stops.After(time.Now().Add(c.stops))) {
						t.Errorf("is stopped after %s (%t), want %s", time.Until(stops), bounded, c.stops)
					}
					if r.Most != c.most {
						t.Errorf("may take %s, want %s", r.Most, c.most)
					}
					return executor.Result{}, nil
				}, c.grace}
				if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != 1 {
					t.Errorf("%v: %+v", err, r)
				}
			})
		})
	}
}

// A run that is stopped for its grace is returned, and the pass says so. No later pass of the same budget begins it again,
// although some time is left, and half of what is left to that pass is not used. That is so whether the step has done anything or
// not.
func TestGraceBeforeTheEndOfTheBudgetReturnsTheRun(t *testing.T) {
	for said, stopped := range map[string]error{"end of the pass": context.DeadlineExceeded, "nothing of the step": executor.ErrNothingDone} {
		t.Run(said, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				often := store.Job{Name: "often", Steps: []store.Step{ticktest.Nop("")}, Own: &store.Schedule{Rule: "every 1s"}}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 9, Steps: []store.Step{ticktest.Call("")}}, often}})
				ticktest.Request(t, d, "job")
				tk := ticktest.New(t, d.Store)
				executed := 0
				tk.Executors["doing"] = graceful{func(ctx context.Context, _ executor.Request) (executor.Result, error) {
					executed++
					<-ctx.Done()
					return executor.Result{}, stopped
				}, time.Hour}
				tk.Sleep = func(_ context.Context, wait time.Duration) { d.Clock.Add(wait) }
				for _, tk.Budget = range []time.Duration{9 * time.Second, time.Minute} { // on a slow machine, no later pass may fit into 9 s
					executed = 0
					r, err := tk.RunFor(t.Context(), time.Minute)
					if err != nil || executed != 1 || r.Waiting != 1 || r.Lost+r.Failed > 0 || !strings.Contains(r.CutShort, "budget") {
						t.Fatalf("%v: executed %d times: %+v", err, executed, r)
					}
					tries := ticktest.LastRun(t, d, "job").Tries
					if last := tries[len(tries)-1]; last.State != "cut" || !strings.Contains(last.Error, said) {
						t.Errorf("%+v", last)
					}
					if r.Passes > 1 {
						return
					}
				}
				t.Error("there was no later pass")
			})
		})
	}
}

// A worker's pass says so, too: it decides nothing, so no run is queued again.
func TestGraceBeforeTheEndOfAWorkersBudget(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 1)
		tk := ticktest.New(t, d.Store)
		tk.Executors["doing"] = graceful{func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{}, ctx.Err()
		}, time.Hour}
		tk.Queues = []string{"others"}
		for _, tk.Budget = range []time.Duration{3 * time.Second, time.Minute} { // a slow machine cannot return the run in the share of 3 s
			r, err := tk.Work(t.Context())
			if err == nil {
				if r.Waiting != 1 || !strings.Contains(r.CutShort, "budget") {
					t.Errorf("%+v", r)
				}
				return
			}
			if tk.Budget == time.Minute {
				t.Errorf("%v: %+v", err, r)
			}
			d.Clock.Add(time.Hour) // the lease of the run that could not be returned is over
			ticktest.DecideOnly(t, d)
		}
	})
}
