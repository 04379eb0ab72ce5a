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

// A heartbeat asks the server that takes writes what it holds: a proxy may send a query that stands alone to a server that does not
// know of the delivery yet.
func TestHeartbeatOfARunBehindAProxy(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ids := queued(t, d, 2)
		h := store.Holder{Name: "holder", Lease: time.Minute}
		if tasks, err := d.Take(t.Context(), "others", 2, h); err != nil || len(tasks) != 2 {
			t.Fatal(err, len(tasks))
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET holder = 'second' WHERE id = '"+ids[1]+"'")
		split := newSplit(func(inTx bool) bool { return !inTx })
		signs, err := ticktest.OpenBeside(t, d, "", store.Options{Wrap: split.Wrap}).Heartbeat(t.Context(), ids, h)
		if err != nil || len(signs) != 1 || !signs[ids[0]].Extended {
			t.Errorf("%v: %+v", err, signs)
		}
	})
}

// split stands for a proxy that sends some queries to a server that is behind.
type split struct {
	storetest.Calls
	begun atomic.Int32 // transactions
	beats atomic.Int32 // heartbeats that were sent
}

// newSplit returns a proxy. A look for what is held finds nothing where behind is true of it.
func newSplit(behind func(inTx bool) bool) *split {
	s := &split{}
	s.Before = func(c storetest.Call) error {
		switch {
		case c.Kind == storetest.Begin:
			s.begun.Add(1)
		case c.Kind == storetest.Exec && strings.Contains(c.SQL, "SET lease_until ="):
			s.beats.Add(1)
		}
		return nil
	}
	s.After = func(c storetest.Call) error {
		if c.Kind == storetest.Commit || c.Kind == storetest.Rollback {
			s.begun.Add(-1)
		}
		return nil
	}
	s.Rewrite = func(text string) string {
		if strings.HasPrefix(text, "SELECT id, fence, cancel_at FROM") && behind(s.begun.Load() > 0) {
			return strings.Replace(text, "WHERE", "WHERE 1 = 0 AND", 1)
		}
		return text
	}
	return s
}

// A run that this process no longer holds is stopped by the looks for cancels, long before a heartbeat: another process executes it
// at the same time. An answer that does not know of the run may come from a server that is behind: a replica to which a proxy sends
// what stands alone, or, once, one of several that take writes.
func TestRunOfAnotherHolderIsStoppedSoon(t *testing.T) {
	storetest.Needs(t, "sqlite") // any will do, and only SQLite works in a bubble
	const soon, long = 10 * time.Second, 100 * time.Second
	var struck atomic.Bool
	for name, behind := range map[string]func(look, beats int, inTx bool) bool{
		"for good":                     nil,
		"a look":                       func(look, _ int, _ bool) bool { return look == 1 },
		"a heartbeat":                  func(_, beats int, _ bool) bool { return beats == 1 && !struck.Swap(true) },
		"what is not in a transaction": func(_, _ int, inTx bool) bool { return !inTx },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var looks atomic.Int32
				var proxy *split
				proxy = newSplit(func(inTx bool) bool {
					return behind != nil && behind(int(looks.Add(1)), int(proxy.beats.Load()), inTx)
				})
				d := storetest.Open(t, "sqlite", store.Options{Wrap: proxy.Wrap})
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "job")
				var took time.Duration
				r, err := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
					if behind == nil {
						d.Exec(t, "UPDATE dbjobs_runs SET holder = 'second'")
					}
					began := time.Now()
					defer func() { took = time.Since(began) }()
					select {
					case <-ctx.Done():
						return executor.Result{}, ctx.Err()
					case <-time.After(long):
						return executor.Result{}, nil
					}
				}).Run(t.Context())
				if behind == nil && (r.Outdated != 1 || took > soon) || behind != nil && (r.Succeeded != 1 || took < long) || err != nil {
					t.Errorf("%v: %d outdated, %d succeeded, after %s", err, r.Outdated, r.Succeeded, took)
				}
			})
		})
	}
}
