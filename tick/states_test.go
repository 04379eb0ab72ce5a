package tick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A pass that finds nothing to do tells the states of jobs by one statement more, however many there are, and none where there
// are none.
func TestStatesCostOneStatement(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			d.Seed(t, storetest.Seed{Jobs: 200, Rules: []string{"every 2h"}})
			tk := ticktest.New(t, d.Store)
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			plans, jobs := d.Table("plans"), d.Table("jobs")
			for _, s := range []struct {
				sql             string
				parked, failing int
			}{
				{"UPDATE " + plans + " SET parked = 'broken' WHERE job_id <= 12", 12, 0},
				{"UPDATE " + plans + " SET streak = 3, last_error = 'failed' WHERE job_id > 100", 12, 100},
				{"UPDATE " + jobs + " SET removed_at = created_at, planned = NULL WHERE id IN (1, 101)", 11, 99},
				{"DELETE FROM " + jobs + " WHERE id IN (2, 102)", 10, 98},
				{"UPDATE " + plans + " SET parked = NULL WHERE job_id > 0", 0, 98},
				{"UPDATE " + plans + " SET streak = 0 WHERE job_id > 0", 0, 0},
			} {
				d.Exec(t, s.sql)
				if _, err := tk.Run(t.Context()); err != nil { // decides for what was edited
					t.Fatal(err)
				}
				c.Reset()
				r, err := tk.Run(t.Context())
				if err != nil || r.ParkedJobs != s.parked || r.FailingJobs != s.failing || len(r.Parked) != min(10, s.parked) || len(r.Failing) != min(10, s.failing) {
					t.Fatalf("%s: %v: %d parked, %d failing: %v, %v", s.sql, err, r.ParkedJobs, r.FailingJobs, r.Parked, r.Failing)
				}
				if s.failing > 0 && (r.Failing[0].Failures != 3 || r.Failing[0].Error != "failed") {
					t.Errorf("%+v", r.Failing[0])
				}
				want := 2
				if s.parked+s.failing > 0 {
					want = 3
				}
				if c.Count() != want {
					t.Errorf("%s: %s", s.sql, ticktest.Kinds(&c))
				}
			}
		})
	}
}

// How long the oldest run of any queue has been ready, whatever its priority.
func TestOldestQueuedRun(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		now := d.Clock.Now()
		oldest := func(want time.Time) {
			t.Helper()
			tk := ticktest.New(t, d.Store)
			tk.Gauges, tk.Limit = true, -1
			r, err := tk.Run(t.Context())
			if err != nil || !r.OldestQueued.Equal(want) {
				t.Errorf("%v: %s, want %s", err, r.OldestQueued, want)
			}
		}
		oldest(time.Time{})
		for i, r := range []struct {
			queue    string
			priority int
			hours    int
			state    string
		}{{"b", 0, 3, "queued"}, {"a", 7, 2, "queued"}, {"a", -1, 4, "queued"}, {"a", 7, 1, "queued"}, {"c", 1, 2, "queued"}, {"c", 1, 9, "succeeded"}} {
			d.Exec(t, fmt.Sprintf(`INSERT INTO %s (id, job_id, occurrence, state, queue, priority, ready_at, created_at, settled_at)
				VALUES ('00000000-0000-7000-9000-00000000000%d', 1, 'now:%d', '%s', '%s', %d, %s, %s, %s)`, d.Table("runs"), i, i, r.state, r.queue, r.priority,
				ticktest.Literal(d, now.Add(-time.Duration(r.hours)*time.Hour)), ticktest.Literal(d, now), map[bool]string{true: ticktest.Literal(d, now), false: "NULL"}[r.state == "succeeded"]))
		}
		oldest(now.Add(-4 * time.Hour))
		d.Exec(t, "DELETE FROM "+d.Table("runs")+" WHERE queue = 'a'")
		oldest(now.Add(-3 * time.Hour))
	})
}
