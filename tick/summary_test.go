package tick_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What became due during a pass is for the next one: its summary says so, and names no time that is over.
func TestTheNextTimeOfASummaryIsNotPast(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		own := func(rule string) *store.Schedule { return &store.Schedule{Rule: rule} }
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "slow", Own: own("every 1h"), Steps: []store.Step{ticktest.Call("")}},
			{Name: "often", Own: own("every 5m"), Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
		}})
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			d.Clock.Add(7 * time.Minute)
			return executor.Result{}, nil
		})
		pass := func() (r struct {
			next, now time.Time
			more      bool
		}) {
			t.Helper()
			told, err := tk.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.next, r.now, r.more = told.NextRun, d.Clock.Now(), told.MoreDue
			return r
		}
		if r := pass(); !r.next.After(r.now) || r.more {
			t.Fatalf("nothing is due: %+v", r)
		}
		d.Clock.Add(time.Hour)
		if r := pass(); r.next.Before(r.now) || !r.more {
			t.Fatalf("5-minute times came during the pass: %+v", r)
		}
		if r := pass(); !r.next.After(r.now) || r.more {
			t.Fatalf("after another pass: %+v", r)
		}
	})
}
