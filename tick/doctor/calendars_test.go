package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A calendar is named 60 days before its days end, as by check, and if they cannot be read. A calendar that nobody uses is not
// named, and neither is one whose days come each year.
func TestCalendarsThatEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		in := func(days int) []string { return []string{d.Clock.Now().AddDate(0, 0, days).Format(time.DateOnly)} }
		defs := store.Definitions{Calendars: []store.Calendar{{Name: "near", Days: in(59)}, {Name: "far", Days: in(62)}, {Name: "over", Days: in(-400)},
			{Name: "yearly", Days: []string{"12-25"}}, {Name: "torn", Days: in(90)}, {Name: "idle", Days: in(1)}}}
		for _, c := range defs.Calendars[:5] {
			defs.Schedules = append(defs.Schedules, store.Schedule{Name: c.Name, Rule: "every 1h", Calendar: c.Name})
		}
		ticktest.Apply(t, d, defs)
		d.Exec(t, "UPDATE "+d.Table("calendars")+" SET days = 'never' WHERE name = 'torn'")
		_, r := examine(t, d)
		var found []string
		for _, f := range r.Findings {
			if f.Check == "holidays" {
				found = append(found, string(f.Level)+" "+strings.Fields(strings.TrimPrefix(strings.TrimPrefix(f.Problem, "the last day of "), "the calendar "))[0])
			}
		}
		if got := strings.Join(found, ", "); got != "warning torn, note near, note over" {
			t.Errorf("found %s: %+v", got, r.Findings)
		}
	})
}
