package load

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A need whose statement reads all of its jobs to find the first ones is not read anew for each page of them: an edit of a schedule
// of very many jobs, or a newer zone database, would keep a pass from everything else for longer than all of its decisions.
func TestNeedsAreNotReadForEachPage(t *testing.T) {
	t.Parallel()
	const jobs, batch, most = 1000, 20, 2
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			d.Seed(t, storetest.Seed{Jobs: jobs, Rules: []string{"every 4h"}, Queue: "another"})
			tk := ticktest.New(t, d.Store)
			ticktest.Pass(t, tk)
			tk.Batch = batch
			for _, x := range []struct {
				need, text string
				do         func()
			}{
				{"schedule changed", "FROM s CROSS JOIN ", func() { d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'every 5h'") }},
				{"pause changed", "FROM p CROSS JOIN ", func() {
					ticktest.Pause(t, d, store.Subject{Scope: store.ScopeSchedule, Name: "schedule 0"}, time.Time{})
				}},
				{"a newer zone database", "r.ends < ", func() {
					d.Exec(t, "UPDATE "+d.Table("plan_rules")+" SET ends = '2000a'")
					d.Clock.Add(time.Hour)
				}},
			} {
				x.do()
				c.Reset()
				r, err := tk.Run(t.Context())
				if err != nil || r.Decided != jobs {
					t.Fatalf("%s: %v: %d jobs are decided, want %d", x.need, err, r.Decided, jobs)
				}
				sent := 0
				for _, call := range c.All() {
					if strings.Contains(call.SQL, x.text) {
						sent++
					}
				}
				if sent == 0 || sent > most {
					t.Errorf("%s: %d statements find %d pages, want 1 to %d", x.need, sent, jobs/batch, most)
				}
			}
		})
	}
}

// The first pass of an hour looks at all plans, but behind what is due, which is most at that time. It looks at the newest run of each
// job alone, however many there are.
func TestHourlyCheckDelaysNothingThatIsDue(t *testing.T) {
	t.Parallel()
	const jobs, runs, before = 600, 30, 300
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			crowded(t, d, extent{jobs, jobs * runs, 10, 10, 50})
			tk := ticktest.New(t, d.Store)
			tk.Limit = -1
			ticktest.Pass(t, tk)
			d.Analyze(t)
			d.Clock.Set(ticktest.Morning(9, 0))
			c.Reset()
			ticktest.Pass(t, tk)
			read, due, older := 0, false, 0
			for _, call := range c.All() {
				if call.Kind != storetest.Query || call.SQL == "" {
					continue
				}
				due = due || strings.Contains(call.SQL, "job_id, next_run, job_id FROM")
				if !due {
					read += rowsRead(t, d, call)
				}
				if strings.Contains(call.SQL, "p.runs_made < (SELECT ") {
					older++
					if !due {
						t.Error("it looks at all plans before what is due")
					}
					if read := rowsRead(t, d, call); read > 10*jobs {
						t.Errorf("%d rows are read to find plans that are older than the runs of %d jobs", read, jobs)
					}
				}
			}
			if !due || older == 0 || read > before {
				t.Errorf("due: %t, %d looks at all plans; %d rows are read before what is due, more than %d", due, older, read, before)
			}
		})
	}
}
