package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A lease beyond the end of the calendar is refused as a wrong argument, and not by a table. On MySQL and MariaDB, a lease is a
// number of seconds that cannot get there.
func TestRoutinesRefuseAnEndlessLease(t *testing.T) {
	t.Parallel()
	for _, engine := range withRoutines(t) {
		if storetest.Dialect(engine) != "postgres" {
			continue
		}
		d := storetest.Open(t, engine, store.Options{Clock: time.Now})
		for _, lease := range []string{"100000 years", "9000 years", "0", "-1 hour"} {
			for _, c := range []call{routine("take", "reports", nil, lease), routine("extend", "0195a3c0-0000-7000-8000-000000000001", 1, lease)} {
				if err := c.on(d); sqlState(err) != "JB003" {
					t.Errorf("%s for %s: %v, want JB003", c.name, lease, err)
				}
			}
		}
	}
}

// The run that has the key of a request may be deleted while the request looks for it. Then the request makes a run.
func TestRunNowWhoseKeyIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, engine := range withRoutines(t) {
		if storetest.Dialect(engine) != "postgres" {
			continue
		}
		d := storetest.Open(t, engine, store.Options{Clock: time.Now})
		for _, c := range []call{routine("create_job", "tidy", "SELECT 1"), routine("run_now", "tidy", nil, nil, "k")} {
			if err := c.on(d); err != nil {
				t.Fatal(err)
			}
		}
		d.Exec(t, "UPDATE dbjobs.runs SET state = 'succeeded', settled_at = created_at")
		d.Exec(t, "CREATE FUNCTION prunes() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN DELETE FROM dbjobs.runs WHERE state = 'succeeded'; RETURN NULL; END$$")
		d.Exec(t, "CREATE TRIGGER prunes AFTER INSERT ON dbjobs.runs EXECUTE FUNCTION prunes()") // also where nothing was inserted
		d.Exec(t, "SELECT dbjobs.run_now('tidy', key => 'k')")
		if n := d.Int(t, "SELECT count(*) FROM dbjobs.runs WHERE state = 'waiting' AND occurrence = 'key:k'"); n != 1 {
			t.Errorf("%d runs wait, want the one that was requested", n)
		}
	}
}

// A schedule is taken away from its jobs, although plain SQL has removed one of them, and deleted the row of another.
func TestDetachFromJobsThatAreGone(t *testing.T) {
	const options = `{"schedule": "often"}`
	t.Parallel()
	for _, engine := range withRoutines(t) {
		d := storetest.Open(t, engine, store.Options{Clock: time.Now})
		for _, c := range []call{routine("create_schedule", "often", "every 5m"), routine("create_job", "a", "SELECT 1", nil, options), routine("create_job", "b", "SELECT 1", nil, options),
			routine("create_job", "c", "SELECT 1", nil, options)} {
			if err := c.on(d); err != nil {
				t.Fatal(c, err)
			}
		}
		d.Exec(t, "DELETE FROM "+d.Table("jobs")+" WHERE name = 'a'")
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET removed_at = created_at WHERE name = 'b'")
		if err := routine("drop_schedule", "often", true).on(d); err != nil {
			t.Errorf("%s: %v", engine, err)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("job_schedules")); n != 0 {
			t.Errorf("%s: %d links are left", engine, n)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes")+" WHERE action = 'change'"); n != 1 {
			t.Errorf("%s: %d jobs are on record as changed, want that of the one that is there", engine, n)
		}
	}
}

// All runs of a long queue are cancelled and counted. Where the job stays enabled, the change has all of their ids, in order.
func TestAbortOfALongQueue(t *testing.T) {
	t.Parallel()
	const n = 3000 // on MySQL and MariaDB, the list of the ids has several parts
	for _, engine := range withRoutines(t) {
		for _, runOnly := range []bool{true, false} {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "letters", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
				t.Fatal(err)
			}
			many(t, d, n, 0)
			text, args := routine("abort", "letters", runOnly).text(d.Server)
			var runs int
			if err := d.SQL.QueryRow(text, args...).Scan(&runs); err != nil || runs != n {
				t.Errorf("%s: %v: %d runs are counted, want %d", engine, err, runs, n)
			}
			if left := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE cancel_at IS NULL OR state <> 'waiting'"); left != 0 {
				t.Errorf("%s: %d runs are not cancelled", engine, left)
			}
			var action, content string
			if err := d.SQL.QueryRow("SELECT action, became FROM "+d.Table("changes")+" ORDER BY id DESC LIMIT 1").Scan(&action, &content); err != nil {
				t.Fatal(err)
			}
			var change struct{ Runs []string }
			if err := json.Unmarshal([]byte(content), &change); err != nil {
				t.Fatal(err)
			}
			if !runOnly && action != "abort" || runOnly && (action != "cancel" || len(change.Runs) != n || !slices.IsSorted(change.Runs)) {
				t.Errorf("%s: %s of %d runs", engine, action, len(change.Runs))
			}
		}
	}
}
