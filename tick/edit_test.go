package tick_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Each edit is one statement of plain SQL, at 08:31 on a job of "every 20m" that was planned and has run at 08:20. What the old
// rule still owes from then on is no run; when the next decision is due tells that the edit was noticed.
func TestAnEditByPlainSQLIsNoticedByTheNextTick(t *testing.T) {
	for _, c := range []struct {
		name, edit string // with the tables of %[1]s jobs, %[2]s schedules, %[3]s links
		next       time.Time
		runs       int // up to 09:31
	}{
		{"rule", "UPDATE %[2]s SET rule = 'every 30m' WHERE name = 'mine'", ticktest.Morning(9, 0), 3},
		{"zone", "UPDATE %[2]s SET rule = '0 9 * * *', zone = 'Atlantic/Azores' WHERE name = 'mine'", ticktest.Morning(10, 0), 1},
		{"reading of clock changes", "UPDATE %[2]s SET ambiguous = 'both' WHERE name = 'mine'", ticktest.Morning(8, 40), 4},
		{"a link more", "INSERT INTO %[3]s (job_id, schedule_id) SELECT j.id, s.id FROM %[1]s j, %[2]s s WHERE s.name = 'other'", ticktest.Morning(8, 35), 13},
		{"another link", "UPDATE %[3]s SET schedule_id = (SELECT id FROM %[2]s WHERE name = 'other')", ticktest.Morning(8, 35), 13},
		{"validity", "UPDATE %[1]s SET not_after = " + "%[4]s", ticktest.Morning(8, 40), 2},
		{"disabled", "UPDATE %[1]s SET enabled = false", time.Time{}, 1},
		{"policy", "UPDATE %[1]s SET max_runs = 2", ticktest.Morning(8, 40), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				planned(t, d)
				d.Exec(t, edit(d, c.edit))
				if r := ticktest.Run(t, d); r.Decided != 1 || r.Made != 0 {
					t.Errorf("the tick after the edit: %+v", r)
				}
				if j, err := d.Job(t.Context(), "job"); err != nil || !j.NextRun.Equal(c.next) {
					t.Errorf("%v: next %s", err, j.NextRun)
				}
				if r := ticktest.Run(t, d); r.Decided != 0 {
					t.Errorf("noticed twice: %+v", r)
				}
				everyMinute(t, d, 60)
				if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")); n != c.runs {
					t.Errorf("%d runs", n)
				}
			})
		})
	}
}

// planned is a job of "every 20m" at 08:31 that has run at 08:20, and a schedule "every 5m" that it does not use.
func planned(t testing.TB, d *storetest.DB) {
	t.Helper()
	ticktest.Apply(t, d, store.Definitions{
		Schedules: []store.Schedule{{Name: "mine", Rule: "every 20m"}, {Name: "other", Rule: "every 5m"}},
		Jobs:      []store.Job{{Name: "job", Schedules: []string{"mine"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}},
	})
	ticktest.Run(t, d)
	d.Clock.Set(ticktest.Morning(8, 20))
	if r := ticktest.Run(t, d); r.Succeeded != 1 {
		t.Fatalf("%+v", r)
	}
	d.Clock.Set(ticktest.Morning(8, 31))
}

// edit fills in the names of the tables, and an instant at 08:45.
func edit(d *storetest.DB, statement string) string {
	return fmt.Sprintf(statement+"%.0[1]s%.0[2]s%.0[3]s%.0[4]s", d.Table("jobs"), d.Table("schedules"), d.Table("job_schedules"), ticktest.Literal(d, ticktest.Morning(8, 45)))
}

// What no tick has seen owes nothing.
func TestAnEditBeforeTheFirstTick(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := store.Job{Name: "job", Own: &store.Schedule{Rule: "every 5m"}, Missed: "all", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		d.Clock.Add(31 * time.Minute)
		j.Own.Rule = "every 10m"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		if r := ticktest.Run(t, d); r.Made != 0 || len(r.Gaps) != 0 {
			t.Errorf("the first tick: %+v", r)
		}
		d.Clock.Add(30 * time.Minute)
		if r := ticktest.Run(t, d); r.Made != 3 {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

// An edit in a transaction that stays open blocks nothing: what was committed before goes on until it is, too. (On SQLite every open
// write blocks all others.)
func TestAnEditThatStaysOpenBlocksNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("one writer at a time")
		}
		planned(t, d)
		for _, st := range []string{"UPDATE %[2]s SET rule = 'every 15m' WHERE name = 'mine'", "UPDATE %[1]s SET priority = 2"} {
			d.Exec(t, edit(d, st))
		}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		for _, st := range []string{"UPDATE %[2]s SET rule = 'every 30m' WHERE name = 'mine'", "UPDATE %[1]s SET priority = 3, jitter_ms = 1",
			"UPDATE %[3]s SET created_at = created_at"} {
			if _, err := tx.ExecContext(t.Context(), edit(d, st)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for _, c := range []struct{ minute, runs int }{{31, 0}, {45, 1}} { // the edit before is noticed, and cannot be marked
			d.Clock.Set(ticktest.Morning(8, c.minute))
			if r, err := ticktest.New(t, d.Store).Run(ctx); err != nil || r.Decided == 0 || r.Succeeded != c.runs {
				t.Fatalf("beside it: %v: %+v", err, r)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Decided != 1 || r.Made != 0 {
			t.Errorf("committed: %+v", r)
		}
		if j, err := d.Job(t.Context(), "job"); err != nil || !j.NextRun.Equal(ticktest.Morning(9, 0)) {
			t.Errorf("%v: next %s", err, j.NextRun)
		}
	})
}
