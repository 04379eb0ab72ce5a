package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A rule may be longer in a plan than in its definition. If it is too long to be kept there, its job is parked at once, and
// no other: MariaDB would keep a part of it.
func TestParkedForARuleThatIsTooLongForAPlan(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		var dates []string
		for at := d.Clock.Now(); len(dates) < 6500; at = at.AddDate(0, 0, 1) {
			dates = append(dates, at.Format("20060102"))
		}
		long := "DTSTART;VALUE=DATE:" + dates[0] + "\nRDATE;VALUE=DATE:" + strings.Join(dates, ",")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "long", Own: &store.Schedule{Rule: long}, Steps: []store.Step{ticktest.Nop("")}},
			{Name: "other", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}},
		}})
		ticktest.Run(t, d)
		d.Clock.Add(10 * time.Minute)
		ticktest.Run(t, d)
		for name, want := range map[string]string{"long": "a rule has at most 65535 bytes as RFC 5545 text", "other": ""} {
			if v, err := d.Job(t.Context(), name); err != nil || !strings.Contains(v.Parked, want) || want == "" && v.Parked != "" {
				t.Errorf("%s: parked %.100q, %v; want %q", name, v.Parked, err, want)
			}
		}
	})
}
