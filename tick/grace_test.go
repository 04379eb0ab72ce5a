package tick_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A pass that is told to stop takes nothing more; what runs has a grace to end in, and is given back after it.
func TestWhatRunsHasAGraceToEndIn(t *testing.T) {
	for name, c := range map[string]struct {
		grace, budget time.Duration
		done          int
	}{
		"long enough":            {grace: time.Minute, done: 1},
		"too short":              {grace: 10 * time.Millisecond},
		"none":                   {},
		"longer than its budget": {grace: time.Hour, budget: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "one", Steps: []store.Step{ticktest.Call("")}}, {Name: "two", Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "one")
				ticktest.Request(t, d, "two")
				ctx, cancel := context.WithCancel(t.Context())
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
				tk.Concurrency, tk.Grace, tk.Budget = 1, c.grace, c.budget
				r, err := tk.Run(ctx)
				if !errors.Is(err, context.Canceled) || r.Started != 1 || r.Succeeded != c.done || r.Waiting != 1-c.done {
					t.Fatalf("%v: %+v", err, r)
				}
			})
		})
	}
}
