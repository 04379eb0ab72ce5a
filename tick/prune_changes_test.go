package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What was asked of a job that nobody changes does not stay in the change log for good. What says its definition and state does.
func TestPruneForgetsWhatWasAsked(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		first := func() float64 { return 0 } // where a sweep begins
		sweeps := ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Chance: first})
		nop := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "load", Steps: nop}, {Name: "busy", Steps: nop}}})
		for range 3 {
			run := ticktest.RunNow(t, d, "load", store.Request{})
			if _, err := d.CancelRun(t.Context(), run.ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
			ticktest.Run(t, d)
			if _, err := d.RetryRun(t.Context(), run.ID, "", store.Author{}); err != nil {
				t.Fatal(err)
			}
			ticktest.Run(t, d)
			ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "load"}, time.Time{})
			ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "load"}, false)
		}
		d.Clock.Add(401 * 24 * time.Hour)
		for range 4 {
			ticktest.Request(t, d, "busy")
			ticktest.Pass(t, ticktest.New(t, sweeps))
		}
		got := seen(t, d, "changes", "action", "WHERE subject LIKE '%load' ORDER BY id")
		if want := []string{"create", "resume"}; !slices.Equal(got, want) {
			t.Errorf("the change log has %q, want %q", got, want)
		}
	})
}
