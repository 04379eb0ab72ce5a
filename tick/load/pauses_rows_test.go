package load

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// However many other jobs are paused one by one, neither a decision for a job, nor its state, nor its own pause reads their pauses.
func TestPausesOfOtherJobsAreNotRead(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			const others, first, most = 5001, 1_000_000, 100
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			w, exec := words[d.Engine], fill(t, d)
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("held"), ticktest.Hourly("free")}})
			ticktest.Run(t, d)
			exec(`INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'job', %d + i, 'ada', %s FROM NUMBERS`, others, first, w.at("0"))
			d.Exec(t, "UPDATE "+d.Table("pauses")+" SET planned = plan_input")
			d.Analyze(t)
			held := store.Subject{Scope: store.ScopeJob, Name: "held"}
			c.Reset()
			ticktest.Pause(t, d, held, time.Time{})
			d.Clock.Add(time.Hour)
			r := ticktest.Run(t, d)
			if v, err := d.Job(t.Context(), "held"); err != nil || v.State != store.JobPaused || r.Succeeded != 1 {
				t.Errorf("%v: held is %s; %d runs have succeeded, want 1", err, v.State, r.Succeeded)
			}
			ticktest.Resume(t, d, held, false)
			looked := 0
			for _, call := range c.All() {
				if call.Kind != storetest.Query || !strings.HasPrefix(call.SQL, "SELECT p.id, p.scope") {
					continue
				}
				looked++
				if read := rowsRead(t, d, call); read > most {
					t.Errorf("%d rows are read, more than %d, by %s", read, most, call.SQL)
				}
			}
			if looked < 4 {
				t.Errorf("only %d statements look for pauses", looked)
			}
		})
	}
}
