package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestRoutinesMeetRowsOfPlainSQL: steps count by their order, also where an edit by SQL has left out numbers, and a run
// whose job's row is gone can be cancelled.
func TestRoutinesMeetRowsOfPlainSQL(t *testing.T) {
	const orphan = "0195a3c0-0000-7000-8000-000000000002"
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			do := func(name string, args ...any) {
				t.Helper()
				if err := routine(name, args...).on(d); err != nil {
					t.Errorf("%s %v: %v", name, args, err)
				}
			}
			do("create_job", "load", nil, nil, `{"steps": [{"name": "a", "sql": "SELECT 1"}, {"name": "b", "sql": "SELECT 2"}, {"name": "c", "sql": "SELECT 3"}]}`)
			do("create_job", "tidy", "SELECT 1", nil, `{"timeout": "5m"}`)
			do("alter_step", "tidy", "step 1", `{"name": "only"}`)
			do("run_now", "load")
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed', settled_at = created_at, number = 1, step = 2")
			d.Exec(t, "DELETE FROM "+d.Table("steps")+" WHERE name = 'a'") // b and c are the first and the second step now
			do("retry", "load#1", "b")
			if step := d.Int(t, "SELECT step FROM "+d.Table("runs")); step != 1 {
				t.Errorf("the run begins at step %d, want 1", step)
			}
			d.Exec(t, "UPDATE "+d.Table("steps")+" SET position = 7 WHERE name = 'only'")
			do("alter_job", "tidy", `{"sql": "SELECT 4"}`)
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("steps")+" WHERE name = 'only' AND CONCAT(spec, '') LIKE '%SELECT 4%'"); n != 1 {
				t.Error("the only step has not got the new statement under its name")
			}
			d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence) VALUES ('"+orphan+"', 9999, 'now:1')")
			do("cancel", orphan)
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE job_id = 9999 AND cancel_at IS NOT NULL"); n != 1 {
				t.Error("the end of the run is not requested")
			}
		})
	}
}

// TestRoutinesRefuseOtherWords: a word with a blank at its end, which MySQL and MariaDB compare as the word, two words,
// and an instant that the tables do not hold are refused as wrong arguments. What is not refused changes nothing.
func TestRoutinesRefuseOtherWords(t *testing.T) {
	const run = "0195a3c0-0000-7000-8000-000000000001"
	late := time.Date(9999, 12, 31, 23, 59, 59, 5e8, time.UTC)
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, before := range []call{routine("create_job", "b", "SELECT 1"), routine("create_job", "a", "SELECT 1"), routine("create_schedule", "n", "every 5h")} {
				if err := before.on(d); err != nil {
					t.Fatal(before, err)
				}
			}
			d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state, fence, lease_until) SELECT '"+run+"', id, 'now:1', 'running', 1, created_at FROM "+d.Table("jobs")+" WHERE name = 'a'")
			var owner string
			if err := d.SQL.QueryRow("SELECT owner FROM " + d.Table("jobs") + " WHERE name = 'a'").Scan(&owner); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				call
				state string
			}{
				{routine("pause", "a", "job "), "JB003"}, {routine("pause", "a", "job,tag"), "JB003"}, {routine("finish", run, 1, "failed "), "JB003"}, {routine("finish", run, 1, "failed,cancelled"), "JB003"},
				{routine("alter_job", "a", `{"after": {"job": "b", "on": "end "}}`), "JB003"}, {routine("alter_job", "a", `{"steps": [{"sql": "SELECT 1", "on_success": "next "}]}`), "JB003"},
				{routine("alter_job", "a", `{"steps": [{"name": "x", "sql": "SELECT 1", "on_failure": "step:x "}]}`), "JB003"}, {routine("alter_job", "a", `{"on": {"failed": "none "}}`), "JB001"},
				{routine("alter_job", "a", `{"overlap": "wait "}`), "JB003"}, {routine("alter_job", "a", `{"overlap": "wait,wait-all"}`), "JB003"}, {routine("alter_schedule", "n", `{"ambiguous": "first,last"}`), "JB003"},
				{routine("alter_job", "a", `{"not_before": "0500-01-01T00:00:00Z"}`), "JB003"}, {routine("alter_job", "a", `{"not_after": "9999-12-31T23:59:59.5Z"}`), "JB003"},
				{routine("pause", owner+" ", "owner"), "JB001"}, {routine("pause", "a", nil, late), "JB003"}, {routine("run_now", "a", nil, late), "JB003"},
				{routine("create_job", "-x", "SELECT 1"), "JB003"}, {routine("rename_job", "a", "-x"), "JB003"},
			} {
				if err := c.on(d); sqlState(err) != c.state {
					t.Errorf("%v: %v, want the state %s", c.call, err, c.state)
				}
			}
		})
	}
}

// TestRoutinesNameTheStepThatIsMissing: the message about a way that leads nowhere names the step, and does not ask for what is given.
func TestRoutinesNameTheStepThatIsMissing(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{})
			for way, want := range map[string]map[string]string{
				"step:third": {"postgres": "step first: there is no step 'third'", "mariadb": "step first: leads to no step; give next, succeed, fail, or step:NAME"},
				"nowhere":    {"postgres": "step first: found 'nowhere'", "mariadb": "step first: leads to no step; give next, succeed, fail, or step:NAME"},
			} {
				err := routine("create_job", "a", nil, nil, `{"steps": [{"name": "first", "sql": "SELECT 1", "on_failure": "`+way+`"}]}`).on(d)
				if err == nil || !strings.Contains(err.Error(), storetest.For(engine, want)) {
					t.Errorf("%s: %v", way, err)
				}
			}
		})
	}
}
