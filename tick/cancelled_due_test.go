package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The tick that cancels a run on request also ends the tries of such runs. The run is cancelled, and has not failed.
func TestRetryUntilNextThatIsCancelled(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), OnError: store.OnErrorPause, Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")},
			Retry: store.Retry{Attempts: new(store.Attempts(0)), Backoff: new(store.Duration(time.Hour))}}}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 1 {
			t.Fatal(err, runs)
		}
		if _, err := d.CancelRun(t.Context(), runs[0].ID, store.Author{}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		if got := standing(t, d); got != "job cancelled, job queued" {
			t.Errorf("%s", got)
		}
	})
}

// The tick that cancels a run on request also decides the next nominal time. The cancelled run does not take it away.
func TestOverlapWithARunThatIsCancelled(t *testing.T) {
	for _, overlap := range []string{store.OverlapWait, store.OverlapSkip} {
		t.Run(overlap, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1h"}, Overlap: overlap,
					Jitter: store.Duration(50 * time.Minute), Steps: []store.Step{ticktest.Nop("")}}}})
				ticktest.Run(t, d)
				d.Clock.Add(time.Hour)
				ticktest.Run(t, d)
				runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
				if err != nil || len(runs) != 1 {
					t.Fatal(err, runs)
				}
				d.Clock.Add(time.Second)
				if _, err := d.CancelRun(t.Context(), runs[0].ID, store.Author{}); err != nil {
					t.Fatal(err)
				}
				d.Clock.Add(time.Hour - time.Second)
				ticktest.Run(t, d)
				if got := standing(t, d); got != "job cancelled, job waiting" {
					t.Errorf("%s", got)
				}
			})
		})
	}
}
