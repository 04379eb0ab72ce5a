package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A program with a newer release of the zone database plans all jobs again within the hour: a job whose wall time has become an
// earlier instant runs at that instant, and a single date, the start of an interval, the end of a rule and an exception move
// with the clock of the zone.
// The plans are as a program has left them for which Berlin keeps UTC in winter.
func TestClockOfAZoneThatChanges(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name, rule string) store.Job {
			return store.Job{Name: name, Own: &store.Schedule{Rule: rule, Zone: "Europe/Berlin"}, Missed: store.MissedSkip, Steps: []store.Step{ticktest.Nop("")}}
		}
		const from = "DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=1"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job("monthly", "0 9 1 * *"), job("once", "at 2026-02-01T09:00"), job("spread", "~ 9 1 * *"), job("paced", "every 3h starting 2026-02-01T09:00"),
			job("last", from+";UNTIL=20260201T080000Z"), job("except", from+",2\nEXDATE;TZID=Europe/Berlin:20260201T090000")}})
		if _, err := d.RenameJob(t.Context(), "spread", "renamed", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		spread := ticktest.Told(t, d, "renamed")
		d.Exec(t, "UPDATE "+d.Table("plan_rules")+" SET ends = '2000a', rule = REPLACE(REPLACE(rule, 'DATE:20260201T080000Z', 'DATE:20260201T090000Z'), 'START:20260201T080000Z', 'START:20260201T090000Z')")
		at := func(hour int) time.Time { return time.Date(2026, 2, 1, hour, 0, 0, 0, time.UTC) }
		d.Exec(t, "UPDATE "+d.Table("plans")+" SET next_run = "+ticktest.Literal(d, at(9))+" WHERE next_run = "+ticktest.Literal(d, at(8)))
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("plan_rules")+" WHERE ends = '"+rules.TZDataVersion()+"'"); n != 6 {
			t.Errorf("%d rules were read by this release", n)
		}
		if now := ticktest.Told(t, d, "renamed"); now != spread {
			t.Errorf("the time that the name chose: %s, before: %s", now, spread)
		}
		for hour := 7; hour < 12; hour++ {
			d.Clock.Set(at(hour))
			ticktest.Run(t, d)
		}
		for name, want := range map[string]string{"monthly": "02-01T08:00 succeeded; next 03-01T08:00", "once": "02-01T08:00 succeeded; next 01-01T00:00",
			"last": "02-01T08:00 succeeded; next 01-01T00:00", "except": "next 02-02T08:00", "paced": "02-01T08:00 succeeded; 02-01T11:00 succeeded; next 02-01T14:00"} {
			if got := ticktest.Told(t, d, name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Decided != 0 {
			t.Errorf("an hour later: %+v", r)
		}
	})
}

// Of two programs with different releases of the zone database on one database, the newer one plans. Otherwise each would plan all
// jobs again within the hour, in turn.
func TestANewerReleaseOfTheZonesStays(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Own: &store.Schedule{Rule: "daily at 09:00", Zone: "Europe/Berlin"}, Steps: []store.Step{ticktest.Nop("")}},
			{Name: "b", Own: &store.Schedule{Rule: "at 2026-02-01T09:00", Zone: "Europe/Berlin"}, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		for _, c := range []struct {
			release string
			want    int
		}{{"9999z", 0}, {"2000a", 2}} {
			d.Exec(t, "UPDATE "+d.Table("plan_rules")+" SET ends = '"+c.release+"'")
			d.Clock.Add(time.Hour) // the first pass within an hour looks at all plans
			if r := ticktest.Run(t, d); r.Decided != c.want {
				t.Errorf("planned by %s: %d decisions, want %d", c.release, r.Decided, c.want)
			}
		}
	})
}
