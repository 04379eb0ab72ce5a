package load

import (
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
