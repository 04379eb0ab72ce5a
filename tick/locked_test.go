package tick_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
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
	r, err := newTick(t, d.Store).Run(ctx)
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
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{step("", "SELECT 1")}}, {Name: "b", Steps: []store.Step{step("", "SELECT 1")}}}})
		request(t, d, "a")
		decideOnly(t, d)
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
		if r := run(t, d); r.Succeeded != 1 {
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
		apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "s1", Rule: "every 5m"}, {Name: "s2", Rule: "every 7m"}},
			Jobs: []store.Job{{Name: "a", Schedules: []string{"s1", "s2"}, Steps: []store.Step{step("", "SELECT 1")}}}})
		run(t, d)
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
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", OnStartup: true, Steps: []store.Step{step("", "SELECT 1")}}}})
		for i := range 6 {
			tk := newTick(t, d.Store)
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
	apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{step("", "SELECT 1")}}}})
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
