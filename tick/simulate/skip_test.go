package simulate_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/simulate"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A nominal time that somebody skipped does not run in a simulation either.
func TestSkipsAreSimulated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		if _, err := tick.SkipNext(t.Context(), d.Store, "job", "", 2, store.Author{}); err != nil {
			t.Fatal(err)
		}
		now := d.Clock.Now()
		in, _, err := simulate.Read(t.Context(), d.Store, now, now)
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(t.Context(), in, simulate.Options{From: now, To: now.Add(time.Hour), Keep: 100})
		if err != nil || r.Runs != 9 || r.NotRun != 2 || len(r.Gaps) == 0 || r.Gaps[0].Reason != store.Skipped {
			t.Errorf("%v: %+v", err, r)
		}
	})
}
