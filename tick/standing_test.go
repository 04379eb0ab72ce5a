package tick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// However many paused jobs would come first, the jobs that are not paused are found.
func TestStandingLooksPastPausedJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{ticktest.Hourly("free")}}
		for i := range 20 {
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprintf("held-%d", i), Own: ticktest.EveryFiveMinutes(), Tags: []string{"held"}, Steps: []store.Step{ticktest.Nop("")}})
		}
		ticktest.Apply(t, d, defs)
		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeTag, Name: "held"}, time.Time{}, store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		st, err := d.Standing(t.Context(), time.Minute, 2*time.Hour, 1)
		if err != nil || len(st.Coming) != 1 || st.Coming[0].Name != "free" || st.Overdue.Count != 0 {
			t.Errorf("%v: %d overdue, coming %+v", err, st.Overdue.Count, st.Coming)
		}
		d.Clock.Add(3 * time.Hour)
		st, err = d.Standing(t.Context(), time.Minute, 2*time.Hour, 1)
		if err != nil || len(st.Coming) != 0 || st.Overdue.Count != 1 || len(st.Overdue.First) != 1 || st.Overdue.First[0].Name != "free" {
			t.Errorf("%v: overdue %+v, coming %+v", err, st.Overdue, st.Coming)
		}
	})
}
