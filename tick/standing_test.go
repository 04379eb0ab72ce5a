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

// A job whose definition ticks cannot use, such as one whose step no run could execute, stays due in its plan. It is parked, and
// neither overdue nor coming: ticks come, and do decide for it.
func TestStandingOfAParkedJobThatStaysDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		grouped := ticktest.Hourly("grouped")
		grouped.Group = "few"
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "few", MaxRunning: 1}}, Jobs: []store.Job{grouped}})
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.ParkedJobs != 1 {
			t.Fatalf("%d jobs are parked", r.ParkedJobs)
		}
		for _, wait := range []time.Duration{0, time.Hour} {
			d.Clock.Add(wait)
			st, err := d.Standing(t.Context(), time.Minute, 2*time.Hour, 1)
			if err != nil || st.Parked.Count != 1 || st.Overdue.Count != 0 || len(st.Coming) != 0 {
				t.Errorf("after %s: %v: %d parked, %d overdue, coming %+v", wait, err, st.Parked.Count, st.Overdue.Count, st.Coming)
			}
		}
	})
}
