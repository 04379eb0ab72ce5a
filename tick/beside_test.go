package tick_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// decideBeside decides in a pass that takes nothing, and calls fn once, before its first statement with that part.
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
	if _, err := tk.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !called {
		t.Fatalf("no statement with %q", part)
	}
}

// The decision has read a waiting run, and is about to let it go.
func TestACancelBesideADecisionIsSeen(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		asked, err := d.RunNow(t.Context(), "job", store.Request{})
		if err != nil {
			t.Fatal(err)
		}
		decideBeside(t, d, "ORDER BY id FOR UPDATE SKIP LOCKED", func() { // after that, it would wait for the decision
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

// abortBeside aborts the job "job" just before a decision sends the statement with that part. It finds the one run that
// the decision makes, and none of the job has effects.
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
func TestAnAbortBesideADecisionMissesNoRun(t *testing.T) {
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

func TestADisabledJobDoesNotFollow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
			{Name: "aborted", After: "first", Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1)")}},
			{Name: "disabled", After: "first", Disabled: true, Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (2)")}},
			{Name: "follower", After: "first", Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (3)")}},
		}})
		ticktest.Run(t, d)
		if _, err := d.AbortJob(t.Context(), "aborted", false, store.Author{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RunNow(t.Context(), "first", store.Request{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		ticktest.Run(t, d)
		if n, sum := d.Int(t, "SELECT COUNT(*) FROM effects"), d.Int(t, "SELECT SUM(n) FROM effects"); n != 1 || sum != 3 {
			t.Errorf("%d followers ran, with the sum %d", n, sum)
		}
	})
}

func TestAPauseHoldsWhateverATagIsMadeOf(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		list := []string{"R&D", "a<b>c", `ü"x\`}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Tags: list, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		if j, err := d.Job(t.Context(), "job"); err != nil || !slices.Equal(j.Tags, list) {
			t.Errorf("tags %q, %v", j.Tags, err)
		}
		for _, tag := range list {
			on := store.Subject{Scope: store.ScopeTag, Name: tag}
			if _, err := d.Pause(t.Context(), on, time.Time{}, store.Author{}); err != nil {
				t.Fatal(err)
			}
			if n, err := d.CountPaused(t.Context()); err != nil || n != 1 {
				t.Errorf("%s: %d jobs paused, %v", tag, n, err)
			}
			if _, err := d.RunNow(t.Context(), "job", store.Request{}); err != nil {
				t.Fatal(err)
			}
			if r := ticktest.Run(t, d); r.Started != 0 {
				t.Errorf("%s: not paused", tag)
			}
			if _, err := d.Resume(t.Context(), on, false, store.Author{}); err != nil {
				t.Fatal(err)
			}
			if r := ticktest.Run(t, d); r.Succeeded != 1 {
				t.Errorf("%s: not let go: %+v", tag, r)
			}
		}
	})
}

func TestAJobRemovedBeforeItsFirstPassIsDoneWith(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		asked, err := d.RunNow(t.Context(), "job", store.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.RemoveJob(t.Context(), "job", store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		if p, err := d.Probe(t.Context(), "test", "tick"); err != nil || p.Anything() || !p.NextWake.IsZero() {
			t.Errorf("still needed: %+v, %v", p, err)
		}
		if r, err := d.Run(t.Context(), asked.ID); err != nil || !r.Ended() {
			t.Errorf("the run is %s, %v", r.State, err)
		}
	})
}

// Somebody holds the plan and the run of one job: the other's is decided all the same.
func TestALockedPlanIsPassedOver(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "locked", Steps: steps}, {Name: "free", Steps: steps}}})
		ticktest.Run(t, d)
		for _, name := range []string{"locked", "free"} {
			if _, err := d.RunNow(t.Context(), name, store.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		locked := " WHERE job_id = (SELECT id FROM " + d.Table("jobs") + " WHERE name = 'locked') FOR UPDATE"
		for _, table := range []string{"plans", "runs"} {
			var id int64
			if err := tx.QueryRowContext(t.Context(), "SELECT job_id FROM "+d.Table(table)+locked).Scan(&id); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		if r, err := ticktest.New(t, d.Store).Run(ctx); err != nil || r.Succeeded != 1 {
			t.Errorf("%d runs succeeded beside a locked plan, %v", r.Succeeded, err)
		}
	})
}

// The decision of a predecessor has not committed the run that it makes of the job.
func TestAnAbortBesideADecisionOfThePredecessorMissesNoRun(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Queue: "others", Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
			{Name: "job", After: "first", Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1)")}},
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

// A holder reports just when a decision has read that its lease is over: the run stays with it, whatever was to become of
// it, and whether or not somebody wants it cancelled.
func TestAHolderThatReportsBesideADecisionKeepsItsRun(t *testing.T) {
	for name, c := range map[string]struct {
		deliveries int
		cancel     bool
	}{"cancelled": {3, true}, "delivered again": {3, false}, "lost": {1, false}} {
		t.Run(name, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", MaxDeliveries: c.deliveries, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
				ticktest.Request(t, d, "job")
				ticktest.DecideOnly(t, d)
				h := store.Holder{Name: "worker", Lease: time.Minute}
				tasks, err := d.Take(t.Context(), "others", 1, h)
				if err != nil || len(tasks) != 1 {
					t.Fatal(err, tasks)
				}
				id := tasks[0].Run.ID
				if c.cancel {
					if _, err := d.CancelRun(t.Context(), id, store.Author{}); err != nil {
						t.Fatal(err)
					}
				}
				d.Clock.Add(10 * time.Minute)
				met := false
				var calls storetest.Calls
				calls.Before = func(call storetest.Call) error {
					if !met && strings.HasPrefix(call.SQL, "SELECT id FROM "+d.Table("runs")+" WHERE") && strings.HasSuffix(call.SQL, "ORDER BY id FOR UPDATE SKIP LOCKED") {
						met = true
						if signs, err := d.Heartbeat(t.Context(), []string{id}, h); err != nil || len(signs) != 1 {
							t.Errorf("heartbeat: %v, %v", signs, err)
						}
					}
					return nil
				}
				tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
				if _, err := tk.Run(t.Context()); err != nil || !met {
					t.Fatal(err, met)
				}
				if r, err := d.Run(t.Context(), id); err != nil || r.State != store.Running || r.Losses != 0 {
					t.Errorf("%v: it is %s, with %d losses: %s", err, r.State, r.Losses, r.Error)
				}
				if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
					t.Errorf("the end of it: %v", err)
				}
			})
		})
	}
}

// Somebody has one of the runs that a worker holds locked: the sign of life of the others gets through, and tells that it
// holds all of them.
func TestALockedRunTakesNoLifeFromOthers(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "locked", Queue: "others", Steps: steps}, {Name: "free", Queue: "others", Steps: steps}}})
		ticktest.Request(t, d, "locked")
		ticktest.Request(t, d, "free")
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "worker", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "others", 2, h)
		if err != nil || len(tasks) != 2 {
			t.Fatal(err, tasks)
		}
		ids := []string{tasks[0].Run.ID, tasks[1].Run.ID}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE "+d.Table("runs")+" SET error = 'x' WHERE id = '"+ids[0]+"'"); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(30 * time.Second)
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		signs, err := d.Heartbeat(ctx, ids, h)
		if err != nil || len(signs) != 2 {
			t.Fatalf("%v: %v", err, signs)
		}
		for i, ends := range []time.Duration{30 * time.Second, time.Minute} {
			if r, err := d.Run(t.Context(), ids[i]); err != nil || !r.LeaseUntil.Equal(d.Clock.Now().Add(ends)) {
				t.Errorf("%s: %v: its lease ends at %s", r.Job, err, r.LeaseUntil)
			}
		}
	})
}
