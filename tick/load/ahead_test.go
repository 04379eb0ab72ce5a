package load

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What sleeps because of a clock that was ahead is counted without a look at each job for each schedule or pause of that clock: each
// pass asks this until somebody has planned these jobs anew.
func TestCountOfWhatSleepsDoesNotReadJobsForEachSchedule(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			const jobs, ahead, named = 4000, 100, 100_000
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			crowded(t, d, extent{jobs, jobs, 10, 10, 50})
			w, exec := words[d.Engine], fill(t, d)
			exec(`INSERT INTO dbjobs.schedules (id, name, rule, created_at, changed_at) SELECT %d + i, %s, 'every 5m', %s, %s FROM NUMBERS`, ahead, named, w.join("'ahead '", w.text("i")), w.at("0"), w.at("0"))
			exec(`INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at) SELECT i, %d + i, %s FROM NUMBERS`, ahead, named, w.at("0"))
			exec(`INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'schedule', %d + i, 'ada', %s FROM NUMBERS`, ahead, named, w.at("0"))
			exec(`INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'job', %d + i, 'ada', %s FROM NUMBERS`, ahead, ahead, w.at("0"))
			now, err := d.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			later := ticktest.Literal(d, now.Add(time.Hour))
			d.Exec(t, "UPDATE "+d.Table("pauses")+" SET since = "+later+" WHERE paused_by = 'ada'")
			d.Exec(t, "UPDATE "+d.Table("schedules")+" SET created_at = "+later+" WHERE name LIKE 'ahead %'")
			d.Exec(t, "UPDATE "+d.Table("plans")+" SET next_run = "+later+" WHERE job_id <= 100")
			d.Analyze(t)
			c.Reset()
			n, until, err := d.AheadOf(t.Context(), now, []store.Trigger{{Since: now.Add(time.Hour)}})
			if err != nil || n != 2*ahead || until.IsZero() {
				t.Errorf("%v: %d jobs sleep until %v, want %d", err, n, until, 2*ahead)
			}
			const most = 10 * jobs
			for _, call := range c.All() {
				if !strings.Contains(call.SQL, "DISTINCT u.job_id") {
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
