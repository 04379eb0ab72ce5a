package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job whose rule names no start runs as often as COUNT says. Its creation, which is the DTSTART, is none of its times.
func TestCountWithoutAStartRunsThatOften(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		jobs := map[string]int{"FREQ=HOURLY;COUNT=3": 3, "FREQ=HOURLY;COUNT=1": 1, "FREQ=HOURLY;BYMINUTE=30;BYSECOND=0;COUNT=2": 2}
		var defs store.Definitions
		names := map[string]string{}
		for rule := range jobs {
			name := string(rune('a' + len(names)))
			names[rule] = name
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Own: &store.Schedule{Rule: rule}, Steps: []store.Step{ticktest.Nop("")}})
		}
		ticktest.Apply(t, d, defs)
		for range 10 {
			ticktest.Run(t, d)
			d.Clock.Add(30 * time.Minute)
		}
		for rule, want := range jobs {
			if got := ticktest.States(t, d, names[rule]); len(got) != want {
				t.Errorf("%s: runs %v, want %d", rule, got, want)
			}
		}
	})
}
