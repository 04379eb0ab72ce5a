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
		if err != nil || r.Runs != 9 || r.NotRun != 2 || len(r.Gaps) == 0 || r.Gaps[0].Reason != store.Skipped || r.Gaps[0].Because != simulate.BecauseSkipped {
			t.Errorf("%v: %+v", err, r)
		}
	})
}

// A request to cancel counts from the beginning: the run under way is stopped at once, and the one that waits does not run.
func TestRequestsToCancelAreSimulated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := ticktest.Hourly("job")
		j.Queue, j.Overlap = "worker", store.OverlapWaitAll
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		if _, err := d.Take(t.Context(), "worker", 1, store.Holder{Name: "here", Lease: time.Hour, Until: d.Clock.Now().Add(24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		runs, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil || len(runs) != 2 {
			t.Fatalf("%v: %+v", err, runs)
		}
		for i := range runs {
			if _, err := d.CancelRun(t.Context(), runs[i].ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		now := d.Clock.Now()
		in, _, err := simulate.Read(t.Context(), d.Store, now, now)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in.Jobs {
			in.Jobs[i].Took.Length = store.Duration(10 * time.Hour)
		}
		ended := map[string]time.Time{}
		o := simulate.Options{From: now, To: now.Add(30 * time.Minute), Run: func(r store.Run) { ended[r.ID] = r.FinishedAt }}
		if _, err := simulate.Run(t.Context(), in, o); err != nil {
			t.Fatal(err)
		}
		for i := range runs {
			if at := ended[runs[i].ID]; at.IsZero() || at.After(now.Add(time.Minute)) {
				t.Errorf("%s: its end is %v, want at once: %v", runs[i].State, at, now)
			}
		}
	})
}
