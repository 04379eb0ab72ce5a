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
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A request to cancel a run does not wait for a heartbeat: the run's endless statement is stopped before one is sent.
func TestCancelReachesAStatementSoon(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", endless(d))}}}})
		ticktest.Request(t, d, "job")
		ticktest.DecideOnly(t, d)
		list, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(list) != 1 {
			t.Fatal(err, list)
		}
		asked := make(chan error, 1)
		go func() {
			for {
				if r, err := d.Run(t.Context(), list[0].ID); err != nil || r.State == store.Running {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			_, err := d.CancelRun(t.Context(), list[0].ID, store.Author{})
			asked <- err
		}()
		var calls storetest.Calls
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})).Run(t.Context())
		if err := errors.Join(err, <-asked); err != nil || r.Cancelled != 1 {
			t.Errorf("%v: %+v", err, r)
		}
		for _, call := range calls.All() {
			if call.Kind == storetest.Exec && strings.Contains(call.SQL, "SET lease_until =") {
				t.Error("it was stopped after a heartbeat")
			}
		}
	})
}

// The next pass follows a request to cancel a run that waits.
func TestCancelOfAWaitingRun(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		attempts, wait := store.Attempts(5), store.Duration(time.Minute)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Retry: store.Retry{Attempts: &attempts, Backoff: &wait},
			Steps: []store.Step{ticktest.Step("", "INSERT INTO nowhere VALUES (1)")}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Waiting != 1 {
			t.Fatalf("%+v", r)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET cancel_at = "+ticktest.Literal(d, d.Clock.Now()))
		d.Clock.Add(10 * time.Minute)
		r := ticktest.Run(t, d)
		if got := ticktest.States(t, d, "job"); r.Started != 0 || !slices.Equal(got, []string{store.Cancelled}) {
			t.Fatalf("%v: %+v", got, r)
		}
	})
}

// The process of a run that is to be cancelled has died. The run is cancelled, however often it may be delivered: it has not
// failed, so its job goes on.
func TestCancelOfARunWhoseProcessDied(t *testing.T) {
	for _, deliveries := range []int{1, 3} {
		t.Run(fmt.Sprint(deliveries), func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: deliveries, OnError: store.OnErrorPause, Steps: []store.Step{ticktest.Nop("")}}}})
				ticktest.Request(t, d, "job")
				ticktest.DecideOnly(t, d)
				tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "dead", Lease: time.Minute})
				if err != nil || len(tasks) != 1 {
					t.Fatal(err, tasks)
				}
				if _, err := d.CancelRun(t.Context(), tasks[0].Run.ID, store.Author{}); err != nil {
					t.Fatal(err)
				}
				cancelledLater(t, d)
			})
		})
	}
}

// cancelledLater lets a later pass decide, which has to cancel the run of "job", and to pause nothing.
func cancelledLater(t *testing.T, d *storetest.DB) {
	t.Helper()
	d.Clock.Add(10 * time.Minute)
	ticktest.DecideOnly(t, d)
	if r := ticktest.LastRun(t, d, "job"); r.State != store.Cancelled || r.Error != "cancelled on request" {
		t.Errorf("%s: %s", r.State, r.Error)
	}
	if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("pauses")); n != 0 {
		t.Errorf("%d pauses", n)
	}
}

// The pass ends while such a run executes, before a heartbeat has seen the request. The run is cancelled, too.
func TestCancelOfARunWhosePassEnds(t *testing.T) {
	for _, deliveries := range []int{1, 3} {
		t.Run(fmt.Sprint(deliveries), func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: deliveries, OnError: store.OnErrorPause, Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "job")
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				r, err := ticktest.NewDoing(t, d, func(within context.Context, r executor.Request) (executor.Result, error) {
					stop()
					<-within.Done()
					_, err := d.CancelRun(t.Context(), r.Task.Run.ID, store.Author{})
					return executor.Result{}, errors.Join(within.Err(), err)
				}).Run(ctx)
				if !errors.Is(err, context.Canceled) || r.Waiting != 1 || r.Lost != 0 {
					t.Errorf("%v: %+v", err, r)
				}
				cancelledLater(t, d)
			})
		})
	}
}

// decideBeside decides in a pass that takes no run. It calls fn once, before the first statement that contains part.
func decideBeside(t *testing.T, d *storetest.DB, part string, fn func()) {
	t.Helper()
	var calls storetest.Calls
	called := false
	calls.Before = func(c storetest.Call) error {
		if !called && (c.Kind == storetest.Exec || c.Kind == storetest.Query) && strings.Contains(c.SQL, part) {
			called = true
			fn()
		}
		return nil
	}
	s, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tk := ticktest.New(t, s)
	tk.Limit, tk.StartupID = -1, "this"
	ticktest.Pass(t, tk)
	if !called {
		t.Fatalf("no statement with %q", part)
	}
}

// The decision has read a waiting run, and is about to let it go.
func TestCancelBesideADecisionIsSeen(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		asked := ticktest.RunNow(t, d, "job", store.Request{})
		decideBeside(t, d, "ORDER BY id FOR UPDATE SKIP LOCKED", func() { // after that statement, the request would wait for the decision
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if r, err := d.CancelRun(ctx, asked.ID, store.Author{}); err != nil || r.CancelAt.IsZero() {
				t.Errorf("cancel: %+v, %v", r, err)
			}
		})
		tasks, err := d.Take(t.Context(), "others", 10, store.Holder{Name: "worker", Lease: time.Minute})
		if err != nil || len(tasks) > 0 {
			t.Errorf("a worker takes %d cancelled runs, %v", len(tasks), err)
		}
		ticktest.Run(t, d)
		if r, err := d.Run(t.Context(), asked.ID); err != nil || r.State != store.Cancelled {
			t.Errorf("%s, asked to cancel at %v, %v", r.State, r.CancelAt, err)
		}
	})
}

// abortBeside aborts the job "job" just before a decision sends the statement that contains part. The abort finds the
// one run that the decision makes, and the job has no effects.
func abortBeside(t *testing.T, d *storetest.DB, part string) {
	t.Helper()
	var ids []string
	var err error
	done := make(chan struct{})
	decideBeside(t, d, part, func() {
		go func() {
			defer close(done)
			ids, err = d.AbortJob(t.Context(), "job", false, store.Author{})
		}()
		select { // an abort that does not wait for the decision has ended by then
		case <-done:
		case <-time.After(time.Second):
		}
	})
	<-done
	if err != nil || len(ids) != 1 {
		t.Errorf("aborted %v, %v", ids, err)
	}
	ticktest.Run(t, d)
	if n := d.Int(t, "SELECT COUNT(*) FROM effects"); n > 0 {
		t.Errorf("the aborted job ran %d times", n)
	}
}

// The decision has not committed the run that it makes.
func TestCancelOfAJobBesideADecisionMissesNoRun(t *testing.T) {
	for _, planned := range []bool{true, false} {
		name := map[bool]string{true: "planned", false: "never planned"}[planned]
		t.Run(name, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				d.Exec(t, "CREATE TABLE effects (n int)")
				job := store.Job{Name: "job", OnStartup: !planned, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1)")}}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
				if planned {
					ticktest.Run(t, d)
					d.Clock.Add(6 * time.Minute)
				}
				abortBeside(t, d, "next_run = d.next_run")
			})
		})
	}
}

// The decision of a predecessor has not committed the run that it makes of the job.
func TestCancelOfAJobBesideAPredecessorsDecisionMissesNoRun(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Queue: "others", Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
			{Name: "job", After: []store.After{{Job: "first"}}, Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1)")}},
		}})
		h := store.Holder{Name: "worker", Lease: time.Minute}
		ticktest.Request(t, d, "first")
		ticktest.DecideOnly(t, d)
		tasks, err := d.Take(t.Context(), "others", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
			t.Fatal(err)
		}
		abortBeside(t, d, "last_state = d.last_state")
	})
}

// Of two requests to cancel a run, the first one stays on record.
func TestCancelledTwiceKeepsTheFirstRequest(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "job")
		id, at := ticktest.LastRun(t, d, "job").ID, d.Clock.Now()
		for _, by := range []string{"ann", "bob"} {
			if r, err := d.CancelRun(t.Context(), id, store.Author{By: by}); err != nil || r.CancelBy != "ann" || !r.CancelAt.Equal(at) {
				t.Errorf("%v: by %s at %s, want ann at %s", err, r.CancelBy, r.CancelAt, at)
			}
			d.Clock.Add(time.Minute)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("changes")+" WHERE action = 'cancel'"); n != 1 {
			t.Errorf("%d changes", n)
		}
	})
}
