package tick_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// beside runs a pass beside somebody's open transaction, which it must not wait for.
func beside(t *testing.T, d *storetest.DB, statement string) (succeeded int) {
	t.Helper()
	tx, err := d.SQL.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(statement); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	r, err := ticktest.New(t, d.Store).Run(ctx)
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	return r.Succeeded
}

// A holder that stands still with its run locked, half-way through its end, holds up that run and no other job's.
func TestALockedRunThatExpiredHoldsUpNobody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("an open write holds up all others, for the busy timeout")
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}, {Name: "b", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Request(t, d, "a")
		ticktest.DecideOnly(t, d)
		tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "gone", Lease: time.Minute})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		d.Clock.Add(time.Hour)
		if _, err := d.RunNow(t.Context(), "b", store.Request{}); err != nil {
			t.Fatal(err)
		}
		if n := beside(t, d, "UPDATE "+d.Table("runs")+" SET error = 'x' WHERE id = '"+tasks[0].Run.ID+"'"); n != 1 {
			t.Errorf("%d runs succeeded, want that of b", n)
		}
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Errorf("the lock is gone, and the run is not recovered: %+v", r)
		}
	})
}

// An editor's open transaction on one of a job's links blocks nothing.
func TestALockedLinkHoldsUpNobody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("an open write holds up all others, for the busy timeout")
		}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "s1", Rule: "every 5m"}, {Name: "s2", Rule: "every 7m"}},
			Jobs: []store.Job{{Name: "a", Schedules: []string{"s1", "s2"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET priority = 3")
		d.Clock.Add(10 * time.Minute)
		if n := beside(t, d, "DELETE FROM "+d.Table("job_schedules")+" WHERE schedule_id = (SELECT id FROM "+d.Table("schedules")+" WHERE name = 's1')"); n != 1 {
			t.Errorf("%d runs succeeded", n)
		}
	})
}

// Hosts that tick one database in turn tell of their starts in turn, and each start has one run.
func TestStartsOfTwoHostsRunOnceEach(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", OnStartup: true, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		for i := range 6 {
			tk := ticktest.New(t, d.Store)
			tk.StartupID = []string{"host a", "host b"}[i%2]
			r, err := tk.Run(t.Context())
			if err != nil || r.Made != max(0, min(1, 2-i)) {
				t.Fatalf("pass %d: %v: %+v", i, err, r)
			}
			d.Clock.Add(time.Minute)
		}
		if n := d.Int(t, "SELECT runs_made FROM "+d.Table("plans")); n != 2 {
			t.Errorf("%d runs made, want 2", n)
		}
	})
}

// What no column of the type can hold is refused on SQLite too, where a row of it would stop every pass.
func TestSQLiteRefusesValuesOfAnotherType(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
	for _, set := range []string{"priority = 'high'", "priority = 1.5", "timeout_ms = '5m'", "enabled = 'no'", "jitter_ms = 1.5",
		"not_before = 'xxxx-xx-xxTxx:xx:xx.xxxxxxZ'", "not_before = '2026-02-31T08:00:00.000000Z'", "not_before = '2026-01-05 08:00:00'"} {
		if _, err := d.SQL.ExecContext(t.Context(), "UPDATE dbjobs_jobs SET "+set); err == nil {
			t.Errorf("%s is taken", set)
		}
	}
	for _, set := range []string{"priority = 7", "not_before = '2026-02-28T08:00:00.000000Z'", "not_before = NULL"} {
		d.Exec(t, "UPDATE dbjobs_jobs SET "+set)
	}
}

// locking is an executor during whose step somebody else takes the lock of an SQLite file.
type locking struct {
	t    *testing.T
	d    *storetest.DB
	held *sql.Tx
}

func (l *locking) Execute(ctx context.Context, _ executor.Request) (executor.Result, error) {
	tx, err := l.d.SQL.BeginTx(context.WithoutCancel(ctx), nil) // immediate: it holds the lock for writing
	if err != nil {
		l.t.Error(err)
	}
	l.held = tx
	return executor.Result{}, nil
}

// A pass with a budget does not wait beyond it for another process that writes to the SQLite file. It says what it waited
// for, and leaves nothing half-way: neither what it could not decide, nor the run whose end it could not record.
func TestALockedFileKeepsNoPass(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{{Executor: "locking", Spec: []byte("{}")}}}}})
	ticktest.Run(t, d)
	d.Clock.Add(6 * time.Minute)
	count := func(of string) int { return d.Int(t, "SELECT count(*) FROM dbjobs_"+of) }
	x := &locking{t: t, d: d}
	pass := func(budget time.Duration) (tick.Report, error) {
		t.Helper()
		tk := ticktest.New(t, d.Store)
		tk.Executors, tk.Budget = executor.Registry{"locking": x}, budget
		began := time.Now()
		r, err := tk.Run(t.Context())
		t.Logf("%s of %s: %v: %s", time.Since(began).Round(time.Millisecond), budget, err, r.CutShort)
		if took := time.Since(began); took > 8*time.Second { // SQLite alone waits for ten
			t.Errorf("it took %s", took)
		}
		return r, err
	}
	locked := func(when string, r tick.Report, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "another process holds the lock") {
			t.Errorf("%s: %v: %+v", when, err, r)
		}
	}
	release := func() {
		t.Helper()
		if err := x.held.Rollback(); err != nil {
			t.Error(err)
		}
	}

	if _, err := x.Execute(t.Context(), executor.Request{}); err != nil {
		t.Fatal(err)
	}
	r, err := pass(time.Second)
	locked("deciding", r, err)
	release()
	if !strings.Contains(r.CutShort, "another process") || r.Made != 0 || count("runs") != 0 || count("gaps") != 0 {
		t.Errorf("%d runs, %d gaps: %+v", count("runs"), count("gaps"), r)
	}

	r, err = pass(time.Second) // decides, takes, and is locked out of the end
	locked("ending a step", r, err)
	release()
	if n := count("runs WHERE state = 'running' AND fence = 1"); r.Made != 1 || r.Started != 1 || n != 1 || count("attempts") != 1 {
		t.Fatalf("%d run: %+v", n, r)
	}

	d.Clock.Add(3 * time.Minute) // the lease is over, and nobody gives a sign of life
	time.AfterFunc(500*time.Millisecond, release)
	if r, err = pass(0); err != nil || r.Succeeded != 1 || r.Made != 0 {
		t.Errorf("when the lock is free again: %v: %+v", err, r)
	}
	if n := count("attempts WHERE state = 'lost'"); n != 1 || count("attempts") != 2 || count("runs") != 1 {
		t.Errorf("%d attempt lost of %d, %d runs", n, count("attempts"), count("runs"))
	}
}
