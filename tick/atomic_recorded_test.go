package tick_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// deliveredRun is a run of an atomic step that another process holds, in the transaction of its effect.
type deliveredRun struct {
	d  *storetest.DB
	h  store.Holder
	t  store.Task
	tx *sql.Tx
}

var success = store.StepEnd{State: store.Succeeded, Final: store.Succeeded}

// deliver takes such a run, and makes its effect. Another job runs after its job.
func deliver(t *testing.T, d *storetest.DB) *deliveredRun {
	t.Helper()
	d.Exec(t, "CREATE TABLE effects (n int)")
	next := ticktest.Step("", "INSERT INTO effects VALUES (2)")
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
		{Name: "first", Queue: "others", Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)")}},
		{Name: "then", After: []store.After{{Job: "first"}}, Steps: []store.Step{next}}}})
	ticktest.Request(t, d, "first")
	ticktest.Run(t, d)
	r := &deliveredRun{d: d, h: store.Holder{Name: "another", Lease: time.Minute}}
	tasks, err := d.Take(t.Context(), "others", 1, r.h)
	if err != nil || len(tasks) != 1 {
		t.Fatal(err, tasks)
	}
	r.t = tasks[0]
	if r.tx, err = d.SQL.BeginTx(t.Context(), &sql.TxOptions{Isolation: d.Store.Engine().Isolation}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.tx.Rollback() })
	if _, err := r.tx.ExecContext(t.Context(), "INSERT INTO effects VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	return r
}

// record records the end in the transaction, and nothing after it.
func (r *deliveredRun) record(t *testing.T) {
	t.Helper()
	commit, err := r.d.EndStepIn(t.Context(), r.tx, &r.t, success, r.h)
	if err != nil {
		t.Fatal(err)
	}
	commit()
}

func (r *deliveredRun) commit(t *testing.T) {
	t.Helper()
	if err := r.tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func (r *deliveredRun) want(t *testing.T, state string, effects, losses int) store.RunDetail {
	t.Helper()
	now, err := r.d.Run(t.Context(), r.t.Run.ID)
	if err != nil || now.State != state || now.Losses != losses {
		t.Errorf("%v: the run is %s, with %d losses, want %s with %d: %s", err, now.State, now.Losses, state, losses, now.Error)
	}
	if n := r.d.Int(t, "SELECT count(*) FROM effects WHERE n = 1"); n != effects {
		t.Errorf("%d effects, want %d", n, effects)
	}
	return now
}

// A process dies between the COMMIT of an atomic step and the record of its run's end. The run has then succeeded, and
// never executes again. The jobs that run after its job run.
func TestAtomicRunWhoseEndWasNotRecordedHasSucceeded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		r := deliver(t, d)
		d.Clock.Add(time.Second)
		r.record(t)
		at := d.Clock.Now()
		r.commit(t)
		ticktest.Run(t, d) // the lease has not ended
		if now := r.want(t, store.Running, 1, 0); len(now.Tries) != 1 || now.Tries[0].State != store.Succeeded {
			t.Errorf("%+v", now.Tries)
		}
		d.Clock.Add(10 * time.Minute)
		ticktest.Run(t, d)
		if now := r.want(t, store.Succeeded, 1, 0); !now.FinishedAt.Equal(at) || now.SettledAt.IsZero() {
			t.Errorf("it succeeded at %v, and was settled at %v; want %v", now.FinishedAt, now.SettledAt, at)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects WHERE n = 2"); n != 1 {
			t.Errorf("%d runs followed, want 1", n)
		}
		late := store.Ending{Task: &r.t, End: store.StepEnd{State: store.Succeeded, Final: store.Succeeded, Recorded: true}}
		d.EndSteps(t.Context(), []*store.Ending{&late})
		if err := d.EndStep(t.Context(), &r.t, late.End, r.h); !errors.Is(late.Err, store.ErrAlone) || !errors.Is(err, store.ErrOutdated) {
			t.Errorf("the end that comes too late: %v, %v", late.Err, err)
		}
	})
}

// While the transaction is open, nobody recovers the run. If the transaction is rolled back, the run is delivered
// again.
func TestAtomicRunIsLockedUntilItsCommit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		r := deliver(t, d)
		r.record(t)
		d.Clock.Add(10 * time.Minute)
		if !d.Store.Engine().OneWriter { // with one writer, nobody could write
			ticktest.Run(t, d)
			r.want(t, store.Running, 0, 0)
		}
		if err := r.tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		r.want(t, store.Queued, 0, 1)
	})
}

// An atomic step that was delivered again meanwhile has no effect.
func TestAtomicStepOfAnOutdatedDeliveryIsUndone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		r := deliver(t, d)
		if d.Store.Engine().OneWriter { // the transaction has the lock that a tick would wait for
			if err := r.tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		d.Clock.Add(10 * time.Minute)
		ticktest.Run(t, d)
		if d.Store.Engine().OneWriter {
			var err error
			if r.tx, err = d.SQL.BeginTx(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.EndStepIn(t.Context(), r.tx, &r.t, success, r.h); !errors.Is(err, store.ErrOutdated) {
			t.Errorf("its end: %v", err)
		}
		if err := r.tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		r.want(t, store.Queued, 0, 1)
	})
}

// If the answer to COMMIT is lost, the holder regards the step as failed. Whatever the holder records next is refused.
func TestAtomicStepThatHasCommittedIsNotEndedOtherwise(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		r := deliver(t, d)
		r.record(t)
		r.commit(t)
		for _, end := range []store.StepEnd{
			{State: store.Failed, Final: store.Failed, InDoubt: true},
			{State: store.Cancelled, Final: store.Cancelled, InDoubt: true},
			{State: store.Failed, Retry: true, Backoff: time.Minute},
			{State: "cut", Redeliver: true},
			{State: store.Failed, NextStep: 2},
		} {
			again := r.t
			if err := d.EndStep(t.Context(), &again, end, r.h); !errors.Is(err, store.ErrRecorded) {
				t.Errorf("%+v: %v", end, err)
			}
			if end.Finishes() {
				t.Errorf("%+v would be recorded with others, unseen", end)
			}
		}
		r.want(t, store.Running, 1, 0)
		if err := d.EndStep(t.Context(), &r.t, store.StepEnd{State: store.Succeeded, Final: store.Succeeded, Recorded: true}, r.h); err != nil {
			t.Error(err)
		}
		r.want(t, store.Succeeded, 1, 0)
	})
}

// A step learns whether the end of its run follows its own record. Only then may its commit be synced later.
func TestAtomicStepLearnsWhetherTheEndFollows(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	fails := ticktest.Call("fails")
	fails.OnSuccess = "fail"
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
		{Name: "two", Steps: []store.Step{ticktest.Call("first"), ticktest.Call("last")}}, {Name: "one", Steps: []store.Step{fails}}}})
	ticktest.Request(t, d, "two")
	ticktest.Request(t, d, "one")
	told := map[string]bool{}
	tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
		told[r.Task.StepAt(r.Task.Run.Step).Name] = r.EndFollows
		return executor.Result{}, nil
	})
	tk.Concurrency = 1
	ticktest.Pass(t, tk)
	if want := map[string]bool{"first": false, "last": true, "fails": false}; !maps.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// An atomic step that is followed by another one begins a new count of the deliveries that did not come back. Its
// end is recorded by the program, or by the routine for a step that executes as the owner of the job.
func TestAtomicStepBeginsANewCountOfDeliveries(t *testing.T) {
	for name, login := range map[string]string{"by the program": "", "by the owner": "another"} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if login != "" && d.Engine == "sqlite" {
					return // it has no logins
				}
				r := deliver(t, d)
				if _, err := r.tx.ExecContext(t.Context(), "UPDATE "+d.Table("runs")+" SET losses = 1 WHERE state = 'running'"); err != nil {
					t.Fatal(err)
				}
				r.t.Run.Losses, r.h.Login = 1, login
				commit, err := r.d.EndStepIn(t.Context(), r.tx, &r.t, store.StepEnd{State: store.Succeeded, NextStep: 2}, r.h)
				if err != nil {
					t.Fatal(err)
				}
				commit()
				r.commit(t)
				if now := r.want(t, store.Running, 1, 0); r.t.Run.Losses != 0 || now.Step != 2 {
					t.Errorf("%d losses are left, at step %d", r.t.Run.Losses, now.Step)
				}
			})
		})
	}
}
