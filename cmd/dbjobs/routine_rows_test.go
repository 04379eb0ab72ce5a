package main

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

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
			for _, c := range []struct {
				call
				state string
			}{
				{routine("pause", "a", "job "), "JB003"}, {routine("pause", "a", "job,tag"), "JB003"}, {routine("finish", run, 1, "failed "), "JB003"}, {routine("finish", run, 1, "failed,cancelled"), "JB003"},
				{routine("alter_job", "a", `{"after": {"job": "b", "on": "end "}}`), "JB003"}, {routine("alter_job", "a", `{"steps": [{"sql": "SELECT 1", "on_success": "next "}]}`), "JB003"},
				{routine("alter_job", "a", `{"steps": [{"name": "x", "sql": "SELECT 1", "on_failure": "step:x "}]}`), "JB003"}, {routine("alter_job", "a", `{"on": {"failed": "none "}}`), "JB001"},
				{routine("alter_job", "a", `{"overlap": "wait "}`), "JB003"}, {routine("alter_job", "a", `{"overlap": "wait,wait-all"}`), "JB003"}, {routine("alter_schedule", "n", `{"ambiguous": "first,last"}`), "JB003"},
				{routine("alter_job", "a", `{"not_before": "0500-01-01T00:00:00Z"}`), "JB003"}, {routine("alter_job", "a", `{"not_after": "9999-12-31T23:59:59.5Z"}`), "JB003"},
				{routine("pause", "a", nil, late), "JB003"}, {routine("run_now", "a", nil, late), "JB003"},
			} {
				if err := c.on(d); sqlState(err) != c.state {
					t.Errorf("%v: %v, want the state %s", c.call, err, c.state)
				}
			}
		})
	}
}
