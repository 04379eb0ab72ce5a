package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job is paused after the number of failures in a row that its policy sets.
func TestPauseAfterFailures(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		bad := []store.Step{ticktest.Step("", "INSERT INTO nowhere VALUES (1)")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "at once", Own: ticktest.EveryFiveMinutes(), OnError: "pause", Steps: bad},
			{Name: "third", Own: ticktest.EveryFiveMinutes(), PauseAfterFailures: 3, Steps: bad},
		}})
		failed := map[string]int{}
		for range 6 {
			for _, e := range ticktest.Run(t, d).Runs {
				failed[e.Job[strings.LastIndex(e.Job, "/")+1:]]++
			}
			d.Clock.Add(5 * time.Minute)
		}
		if failed["at once"] != 1 || failed["third"] != 3 {
			t.Fatalf("%v", failed)
		}
		j, err := d.Job(t.Context(), "third")
		if err != nil || j.State != "paused" || j.Paused.Reason == "" {
			t.Fatalf("%v: %+v", err, j)
		}
		d.Clock.Add(time.Minute)
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "third"}, false)
		if r := ticktest.Run(t, d); r.Made != 0 {
			t.Fatalf("resumed, and fired back: %+v", r)
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Failed != 1 {
			t.Fatalf("resumed: %+v", r)
		}
	})
}

// A job whose runs execute side by side pauses itself once, also if they fail one after the other. After a resume, it
// pauses itself again.
func TestPauseAfterFailuresSideBySide(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		load := store.Job{Name: "load", OnError: store.OnErrorPause, Overlap: store.OverlapAllow, MaxRunning: 3, On: store.Hooks{Paused: "tell"}, Steps: []store.Step{ticktest.Call("")}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{load, {Name: "tell", Steps: []store.Step{ticktest.Call("")}}}})
		paused := func(want int) {
			t.Helper()
			d.Clock.Add(time.Second)
			ticktest.DecideOnly(t, d)
			rows := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("pauses"))
			if got := told(t, d, "tell"); rows != want || len(got) != want {
				t.Fatalf("%d pauses, want %d; events: %s", rows, want, kinds(got))
			}
		}
		for range 3 {
			ticktest.Request(t, d, "load")
		}
		ticktest.DecideOnly(t, d)
		holder := store.Holder{Name: "worker", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "tick", 3, holder)
		if err != nil || len(tasks) != 3 {
			t.Fatal(len(tasks), err)
		}
		for i := range tasks {
			if i == 2 {
				ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "load"}, false)
			}
			if err := d.EndStep(t.Context(), &tasks[i], store.StepEnd{State: store.Failed, Final: store.Failed, Error: "the source is gone"}, holder); err != nil {
				t.Fatal(err)
			}
			paused([]int{1, 1, 2}[i])
		}
	})
}
