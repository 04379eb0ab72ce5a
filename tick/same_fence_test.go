package tick_test

import (
	"context"
	"errors"
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

// A standby takes over that has not got the last delivery of a run. Then it gives the same fence to another process. No end of
// the first one counts: it would end the run that the other one executes, or deliver it a third time.
func TestTwoHoldersOfOneFence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 3)
		h := store.Holder{Name: "first", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "others", 3, h)
		if err != nil || len(tasks) != 3 {
			t.Fatal(err, len(tasks))
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET holder = 'second'")
		d.Exec(t, "UPDATE "+d.Table("attempts")+" SET holder = 'second'")
		for name, end := range map[string]store.StepEnd{
			"the end":        success,
			"the next step":  {State: store.Succeeded, NextStep: 2},
			"another try":    {State: store.Failed, Retry: true},
			"a new delivery": {State: "cut", Redeliver: true},
		} {
			if err := d.EndStep(t.Context(), &tasks[0], end, h); !errors.Is(err, store.ErrOutdated) {
				t.Errorf("%s: %v", name, err)
			}
		}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.EndStepIn(t.Context(), tx, &tasks[0], success, h); !errors.Is(err, store.ErrOutdated) {
			t.Errorf("in the transaction of the step: %v", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		list := make([]*store.Ending, len(tasks))
		for i := range tasks {
			list[i] = &store.Ending{Task: &tasks[i], End: success}
		}
		d.EndSteps(t.Context(), list[:1]) // one end, and several together: some engines have a statement for each
		d.EndSteps(t.Context(), list[1:])
		for i, e := range list {
			if !errors.Is(e.Err, store.ErrAlone) {
				t.Errorf("%d: %v", i, e.Err)
			}
		}
		if given, err := d.GiveBack(t.Context(), []*store.Task{&tasks[0]}); err != nil || len(given) > 0 {
			t.Errorf("%v: gave %d back", err, len(given))
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" r JOIN "+d.Table("attempts")+" a ON a.run_id = r.id WHERE r.state = 'running' AND a.state = 'running'"); n != 3 {
			t.Errorf("%d runs of the second holder are as they were, want 3", n)
		}
	})
}

// A run that this process no longer holds is stopped by the looks for cancels, long before a heartbeat: another process executes it
// at the same time. One look that does not find it may have asked a server that is a little behind.
func TestRunOfAnotherHolderIsStoppedSoon(t *testing.T) {
	storetest.Needs(t, "sqlite") // any will do, and only SQLite works in a bubble
	for name, unseen := range map[string]int{"for good": 0, "once": 1} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var looks, beats atomic.Int32
				var stopped atomic.Bool
				calls := storetest.Calls{Before: func(c storetest.Call) error {
					if c.Kind == storetest.Exec && strings.Contains(c.SQL, "SET lease_until =") {
						beats.Add(1)
					}
					return nil
				}, Rewrite: func(text string) string {
					if strings.HasPrefix(text, "SELECT id, fence, cancel_at FROM") && (unseen == 0 || int(looks.Add(1)) <= unseen) {
						return strings.Replace(text, "WHERE", "WHERE 1 = 0 AND", 1)
					}
					return text
				}}
				d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "job")
				r, err := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
					if unseen == 0 {
						d.Exec(t, "UPDATE dbjobs_runs SET holder = 'second'")
					}
					select {
					case <-ctx.Done():
						stopped.Store(true)
						return executor.Result{}, ctx.Err()
					case <-time.After(20 * time.Second):
						return executor.Result{}, nil
					}
				}).Run(t.Context())
				if err != nil || r.Outdated != 1-unseen || r.Succeeded != unseen || beats.Load() > 0 || stopped.Load() == (unseen > 0) {
					t.Errorf("%v: %d outdated, %d succeeded, stopped: %v, after %d heartbeats", err, r.Outdated, r.Succeeded, stopped.Load(), beats.Load())
				}
			})
		})
	}
}
