package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job is paused after as many failures in a row as its policy says.
func TestPauseAfterFailures(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
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
		if _, err := d.Resume(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "third"}, false, store.Author{}); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Made != 0 {
			t.Fatalf("resumed, and fired back: %+v", r)
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Failed != 1 {
			t.Fatalf("resumed: %+v", r)
		}
	})
}
