package tick_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

func TestAHugeErrorTextEndsTheRunOnce(t *testing.T) {
	texts := map[string]string{
		"cut within a character": strings.Repeat("x", 3999) + "üüü",
		"not text at all":        "a\x00b\xff\xfe\xc3",
		"not text, and long":     strings.Repeat("\xc3", 5000) + "\x00",
		"megabytes":              strings.Repeat("€", 2<<20),
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		var defs store.Definitions
		for name := range texts {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Steps: []store.Step{ticktest.Call("")}})
		}
		ticktest.Apply(t, d, defs)
		for name := range texts {
			ticktest.Request(t, d, name)
		}
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			return executor.Result{}, errors.New(texts[r.Task.Job.Name])
		})
		for range 2 {
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatalf("%.300s", err.Error())
			}
			d.Clock.Add(5 * time.Minute)
		}
		for name := range texts {
			if got := ticktest.States(t, d, name); !slices.Equal(got, []string{store.Failed}) {
				t.Errorf("%s: %v", name, got)
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE state = 'failed'"); n != len(texts) {
			t.Errorf("%d attempts", n)
		}
	})
}

// The steps commit with their ends, and the answers to COMMIT are lost.
func TestAStepWhoseCommitIsUnansweredGoesOnWithTheNext(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("one"), ticktest.Call("two"), ticktest.Call("three")}}}})
		ticktest.Request(t, d, "job")
		var executed []int
		r, err := ticktest.NewDoing(t, d, func(ctx context.Context, r executor.Request) (executor.Result, error) {
			executed = append(executed, r.Task.Run.Step)
			tx, err := d.SQL.BeginTx(ctx, nil)
			if err != nil {
				return executor.Result{}, err
			}
			defer func() { _ = tx.Rollback() }()
			if err := r.EndIn(ctx, tx, 1); err != nil {
				return executor.Result{}, err
			}
			if err := tx.Commit(); err != nil {
				return executor.Result{}, err
			}
			return executor.Result{}, errors.New("unexpected EOF")
		}).Run(t.Context())
		if err != nil || r.Succeeded != 1 || r.Outdated != 0 || !slices.Equal(executed, []int{1, 2, 3}) {
			t.Fatalf("%v: steps %v: %+v", err, executed, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE state = 'succeeded'"); n != 3 {
			t.Errorf("%d attempts succeeded", n)
		}
	})
}

// The same, with statements, and a connection that breaks behind the COMMIT of the first step.
func TestAnAtomicStepWhoseCommitIsUnansweredTakesEffectOnce(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var effect, broken atomic.Bool
			calls.After = func(c storetest.Call) error {
				if strings.Contains(c.SQL, "INTO effects") {
					effect.Store(true)
				}
				if c.Kind == storetest.Commit && effect.Load() && broken.CompareAndSwap(false, true) {
					return errors.New("unexpected EOF")
				}
				return nil
			}
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			d.Exec(t, "CREATE TABLE effects (n int)")
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{
				ticktest.StepWith(true, "INSERT INTO effects VALUES (1)"), ticktest.StepWith(true, "INSERT INTO effects VALUES (20)")}}}})
			ticktest.Request(t, d, "job")
			r := ticktest.Run(t, d)
			if r.Succeeded != 1 || r.Started != 1 || !broken.Load() {
				t.Fatalf("%+v", r)
			}
			if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 21 {
				t.Errorf("effects: %d", n)
			}
		})
	}
}

// An end that is recorded twice counts once: the second one is refused, and does not touch the step that came after.
func TestAnEndIsRecordedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Steps: []store.Step{ticktest.Call("one"), ticktest.Call("two")}}}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		h := store.Holder{Name: "another", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "others", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		unanswered := tasks[0]
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, NextStep: 2}, h); err != nil {
			t.Fatal(err)
		}
		for _, end := range []store.StepEnd{
			{State: store.Succeeded, NextStep: 2},
			{State: store.Failed, Final: store.Failed},
			{State: store.Failed, Retry: true, Backoff: time.Minute},
			{State: "cut", GiveBack: true},
		} {
			again := unanswered
			if err := d.EndStep(t.Context(), &again, end, h); !errors.Is(err, store.ErrOutdated) {
				t.Fatalf("%+v: %v", end, err)
			}
		}
		detail, err := d.Run(t.Context(), unanswered.Run.ID)
		if err != nil || detail.State != store.Running || detail.Step != 2 || len(detail.Tries) != 2 {
			t.Fatalf("%v: %+v", err, detail)
		}
	})
}

// One pass reads its page, another decides two seconds later, and the first goes on with what it had read.
func TestAPageDecidedAfterAnotherPassLosesNothing(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var d *storetest.DB
			armed := false
			calls.Before = func(c storetest.Call) error {
				if armed && c.Kind == storetest.Begin {
					armed = false
					d.Clock.Add(2 * time.Second)
					ticktest.Run(t, d)
				}
				return nil
			}
			d = storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Overlap: "replace", Own: &store.Schedule{Rule: "every 1m"},
				Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
			ticktest.Request(t, d, "job")
			d.Clock.Add(2*time.Minute - time.Second)
			armed = true
			ticktest.Run(t, d)
			if armed {
				t.Fatal("no other pass came between")
			}
			through := d.Int(t, "SELECT count(*) FROM "+d.Table("plans")+" WHERE decided_through < "+ticktest.Literal(d, d.Clock.Now()))
			if through != 0 {
				t.Error("the plan went back")
			}
			ticktest.Run(t, d)
			got := ticktest.States(t, d, "job") // the request, and 08:02, which has replaced nothing
			if !slices.Equal(got, []string{store.Queued, store.Waiting}) {
				t.Fatalf("%v", got)
			}
			d.Clock.Add(time.Minute)
			if r := ticktest.Run(t, d); r.Made != 1 {
				t.Fatalf("the next one: %+v", r)
			}
		})
	}
}

func TestStatementsThatLeaveATransactionOpenFailAndSaySo(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "open", Steps: []store.Step{ticktest.Step("", "BEGIN", "INSERT INTO effects VALUES (1)")}},
			{Name: "ended", Steps: []store.Step{ticktest.Step("", "BEGIN", "INSERT INTO effects VALUES (2)", "COMMIT")}},
		}})
		ticktest.Request(t, d, "open")
		r := ticktest.Run(t, d)
		if r.Failed != 1 || len(r.Runs) != 1 || !strings.Contains(r.Runs[0].Error, "left a transaction open") {
			t.Fatalf("%+v", r)
		}
		ticktest.Request(t, d, "ended")
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 2 {
			t.Errorf("effects: %d", n)
		}
	})
}

func TestACancelRequestOnAWaitingRunIsHeeded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
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
