package doctor_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/doctor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// noBell is an alarm that nobody hears.
type noBell struct{}

func (noBell) Set(_ context.Context, at time.Time) (time.Time, error) { return at, nil }

// A trigger that comes by alarms, or once an hour, has not died because its last pass is not of the last minutes. What waits is
// named where a pass has left it, or where none has come for an hour.
func TestATriggerThatComesSeldom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "daily", Own: &store.Schedule{Rule: "daily at 00:00", Zone: "UTC"}, Steps: []store.Step{ticktest.Nop("")}}}})
		pass := func() {
			t.Helper()
			tk := ticktest.New(t, d.Store)
			tk.Alarm = noBell{}
			ticktest.Pass(t, tk)
		}
		expect := func(why string, want ...string) {
			t.Helper()
			if found, r := examine(t, d); !slices.Equal(found, want) {
				t.Errorf("%s: %q, want %q: %+v", why, found, want, r.Findings)
			}
		}
		for range 5 {
			pass()
			d.Clock.Add(time.Hour)
		}
		pass()
		d.Clock.Add(40 * time.Minute)
		expect("the next pass is not expected yet")
		due := func(ago time.Duration) {
			d.Exec(t, "UPDATE "+d.Table("plans")+" SET next_run = "+literal(d, d.Clock.Now().Add(-ago)))
		}
		due(30 * time.Minute)
		expect("the pass for what is due may still come")
		due(50 * time.Minute)
		expect("a pass has left what was due", "overdue daily")
		due(30 * time.Minute)
		d.Clock.Add(31 * time.Minute)
		expect("no pass has come for what was due", "overdue daily")
		due(-time.Hour)
		d.Clock.Add(3 * 24 * time.Hour)
		if _, r := examine(t, d); !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Check == "trigger" && f.Level == doctor.Note }) {
			t.Errorf("no pass for days: %+v", r.Findings)
		}
	})
}
