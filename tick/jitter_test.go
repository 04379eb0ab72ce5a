package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run whose jitter has ended between two ticks begins with the tick of the next nominal time. It does not take that time
// away, and is not replaced before it could begin.
func TestJitterEndsBetweenTicks(t *testing.T) {
	for overlap, want := range map[string]int{store.OverlapWait: 9, store.OverlapReplace: 9, store.OverlapSkip: 5} {
		t.Run(overlap, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1m"}, Overlap: overlap,
					Jitter: store.Duration(50 * time.Second), Steps: []store.Step{ticktest.Nop("")}}}})
				ticktest.Run(t, d)
				for range 10 {
					d.Clock.Add(time.Minute)
					ticktest.Run(t, d)
				}
				if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded'"); n != want {
					t.Errorf("%d of 10 times have succeeded, want %d: %s", n, want, standing(t, d))
				}
			})
		})
	}
}

// After an outage, a newer occurrence replaces the run whose jitter has ended meanwhile.
func TestJitterThatEndedInAnOutageIsReplaced(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1m"}, Overlap: store.OverlapReplace,
			Jitter: store.Duration(50 * time.Second), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		for _, wait := range []time.Duration{time.Minute, time.Hour, 50 * time.Second} {
			d.Clock.Add(wait)
			ticktest.Run(t, d)
		}
		if got := standing(t, d); got != "job cancelled, job succeeded" {
			t.Errorf("%s", got)
		}
	})
}
