package load

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A view reads only as much as its rows need, however long the history is. For all jobs it reads a bounded number
// of rows each. It finds one job, or its newest runs, by a key. DBJOBS_PROVE has half a million runs of 5,000 jobs.
func TestExplainViewsReadNoHistory(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			n := extent{3_000, 20_000, 6_000, 1_000, 50}
			if prove.Whole() {
				n = extent{5_000, 500_000, 20_000, 5_000, 50}
			}
			d := storetest.Open(t, e, store.Options{})
			crowded(t, d, n)
			troubles(t, d)
			d.Exec(t, "INSERT INTO "+d.Table("pauses")+" (scope, subject_id) SELECT 'job', id FROM "+d.Table("jobs")+" WHERE id % 3 = 0")
			d.Analyze(t)
			jobs, runs := d.Table("v_jobs"), d.Table("v_runs")
			for query, most := range map[string]int{
				"SELECT * FROM " + jobs: 60 * n.jobs,
				"SELECT name, state, why, next_run, streak FROM " + jobs + " WHERE state = 'parked'":                    60 * n.jobs,
				"SELECT * FROM " + jobs + " WHERE name = 'job 8'":                                                       20*n.jobs + n.pauses,
				"SELECT * FROM " + d.Table("v_upcoming") + " ORDER BY next_run LIMIT 10":                                60 * n.jobs,
				"SELECT * FROM " + d.Table("v_schedules"):                                                               30 * n.jobs,
				"SELECT * FROM " + runs + " WHERE job_id = 8 ORDER BY number DESC LIMIT 10":                             2_000 + n.runs/n.jobs,
				"SELECT * FROM " + runs + " ORDER BY created_at DESC, id DESC LIMIT 10":                                 2_000 + n.pauses, // it reads the pauses of jobs once
				"SELECT * FROM " + d.Table("v_errors") + " WHERE job_id = 8":                                            2_000 + 10*n.runs/n.jobs,
				"SELECT * FROM " + d.Table("v_attempts") + " WHERE job_id = 8":                                          2_000 + 10*n.runs/n.jobs,
				"SELECT * FROM " + d.Table("v_gaps") + " WHERE job_id = 8":                                              2_000,
				"SELECT * FROM " + d.Table("v_changes") + " WHERE kind = 'job' AND subject_id = 8 ORDER BY id LIMIT 10": 2_000,
			} {
				began := time.Now()
				call := storetest.Call{SQL: query}
				read := rowsRead(t, d, call)
				if e == "sqlite" { // it does not count
					d.Int(t, "SELECT count(*) FROM ("+query+")")
					for _, problem := range wholeTables(e, query+" FROM dbjobs_runs r", explain(t, d, call), n) {
						if strings.HasSuffix(problem, " runs") {
							t.Errorf("%s: %s", query, problem)
						}
					}
				}
				t.Logf("%s: %s, %d rows read", query, time.Since(began).Round(time.Millisecond), read)
				if read > most {
					t.Errorf("%s: %d rows are read, more than %d", query, read, most)
				}
			}
		})
	}
}
