package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A time in a pause that is resumed with what it missed is late from the end of the pause on: somebody has asked for that run.
func TestHookOfALateRunCountsFromAPause(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			hooked(store.Job{Name: "load", Own: &store.Schedule{Rule: "every 24h"}, Steps: []store.Step{ticktest.Call("")}}), {Name: "tell", Steps: []store.Step{ticktest.Nop("")}}}})
		tk := failing(t, d, new(bool))
		ticktest.Pass(t, tk)
		day := d.Clock.Now().Truncate(24 * time.Hour)
		for i, c := range []struct {
			on    store.Subject
			after time.Duration // the resumption
			want  string
		}{
			{store.Subject{Scope: store.ScopeAll}, 0, ""},
			{store.Subject{Scope: store.ScopeJob, Name: "load"}, 15 * time.Minute, ""},
			{store.Subject{Scope: store.ScopeAll}, 16 * time.Minute, "late of load"},
		} {
			day = day.Add(24 * time.Hour)
			d.Clock.Set(day.Add(-time.Hour))
			ticktest.Pause(t, d, c.on, time.Time{})
			ticktest.Pass(t, tk)
			d.Clock.Set(day.Add(time.Hour))
			ticktest.Pass(t, tk)
			ticktest.Resume(t, d, c.on, true)
			d.Clock.Add(c.after)
			ticktest.Pass(t, tk)
			if got := kinds(told(t, d, "tell")); got != c.want {
				t.Errorf("%d: %q, want %q", i, got, c.want)
			}
			if run := ticktest.LastRun(t, d, "load"); !run.ScheduledFor.Equal(day) || run.State != store.Succeeded {
				t.Errorf("%d: the last run is of %s: %s", i, run.ScheduledFor, run.State)
			}
		}
	})
}
