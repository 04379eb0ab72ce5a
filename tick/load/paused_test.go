package load

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// Trouble that nobody has paused is found without a look at each pause for each job that fails, however many there are of both: a
// pass asks this, too.
func TestTroubleDoesNotReadPausesForEachJob(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			const jobs, paused, named = 600, 300, 100_000
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			crowded(t, d, extent{jobs, jobs, 10, 10, 50})
			w, exec := words[d.Engine], fill(t, d)
			d.Exec(t, "UPDATE "+d.Table("plans")+" SET streak = 3")
			exec(`INSERT INTO dbjobs.schedules (id, name, rule, created_at, changed_at) SELECT %d + i, %s, 'every 5m', %s, %s FROM NUMBERS`, paused, named, w.join("'paused '", w.text("i")), w.at("0"), w.at("0"))
			exec(`INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at) SELECT i, %d + i, %s FROM NUMBERS`, paused, named, w.at("0"))
			exec(`INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'schedule', %d + i, 'ada', %s FROM NUMBERS`, paused, named, w.at("3600"))
			exec(`INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'job', %d + i, 'ada', %s FROM NUMBERS`, paused, jobs-paused, w.at("3600"))
			d.Analyze(t)
			c.Reset()
			if st, err := d.Standing(t.Context(), time.Hour, 0, 5); err != nil || st.Failing.Count != jobs-paused {
				t.Errorf("%v: status counts %d failing jobs, want %d", err, st.Failing.Count, jobs-paused)
			}
			if tr, err := d.Trouble(t.Context(), 5); err != nil || tr.FailingJobs != jobs-paused {
				t.Errorf("%v: a pass counts %d failing jobs, want %d", err, tr.FailingJobs, jobs-paused)
			}
			const most = 20 * (jobs + paused)
			for _, call := range c.All() {
				if !strings.Contains(call.SQL, "paused_by <> ") {
					continue
				}
				read := rowsRead(t, d, call)
				t.Logf("%d rows read, at most %d", read, most)
				if read > most {
					t.Errorf("%d rows are read, more than %d, by %s", read, most, call.SQL)
				}
			}
		})
	}
}

// Jobs that pauses of tags and owners hold are found by sets, and not by a look at each pause for each job: a pass asks this, too.
func TestPausesOfTagsAreNotReadForEachJob(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			const jobs, teams, paused, others = 1500, 300, 200, 50
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			crowded(t, d, extent{jobs, jobs, 10, 10, 50})
			w, exec := words[d.Engine], fill(t, d)
			tags := w.join(`'["all", "team '`, w.text(fmt.Sprintf("id %% %d", teams)), `'"]'`)
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET tags = "+w.json(tags)+" WHERE removed_at IS NULL")
			d.Exec(t, "UPDATE "+d.Table("plans")+" SET streak = 3")
			exec(`INSERT INTO dbjobs.pauses (scope, subject, paused_by, since) SELECT 'tag', %s, 'ada', %s FROM NUMBERS`, paused, w.join("'team '", w.text("i")), w.at("3600"))
			exec(`INSERT INTO dbjobs.pauses (scope, subject, paused_by, since) SELECT 'owner', %s, 'ada', %s FROM NUMBERS`, others, w.join("'somebody '", w.text("i")), w.at("3600"))
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET owner = 'somebody 1' WHERE id = 300")
			d.Analyze(t)
			c.Reset()
			const held = jobs/teams*paused + 1
			if n, err := d.CountPaused(t.Context()); err != nil || n != held {
				t.Errorf("%v: %d jobs are paused, want %d", err, n, held)
			}
			if tr, err := d.Trouble(t.Context(), 5); err != nil || tr.FailingJobs != jobs-held {
				t.Errorf("%v: %d jobs fail, want %d", err, tr.FailingJobs, jobs-held)
			}
			for _, call := range c.All() {
				if call.SQL == "" {
					continue
				}
				const most = 20 * jobs
				if read := rowsRead(t, d, call) + pairsDropped(t, d, call); read > most {
					t.Errorf("%d rows are read or compared, more than %d, by %s", read, most, call.SQL)
				}
			}
		})
	}
}

var dropped = regexp.MustCompile(`loops=(\d+)\)\n(?:[^\n]*\n)??\s*(?:Join Filter: [^\n]*\n\s*)?Rows Removed by (?:Join )?Filter: (\d+)`)

// pairsDropped sends a statement once more. It returns how many rows, and pairs of rows, the server has compared without a match; 0 if the
// server does not say.
func pairsDropped(t *testing.T, d *storetest.DB, c storetest.Call) (n int) {
	t.Helper()
	if d.Engine != "postgres" {
		return 0
	}
	plan := strings.Join(planOf(t, d.SQL, "EXPLAIN (ANALYZE, TIMING OFF) ", c), "\n")
	for _, m := range dropped.FindAllStringSubmatch(plan, -1) {
		loops, _ := strconv.Atoi(m[1])
		rows, _ := strconv.Atoi(m[2])
		n += loops * rows
	}
	return n
}
