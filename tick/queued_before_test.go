package tick_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// TestRunsThatWereQueuedBeforeAreCounted: an earlier pass has queued as many runs as fit into the places of the next pass,
// and could not begin them. The next pass has nothing else to decide. It still counts how these runs ended, and runs their hook.
func TestRunsThatWereQueuedBeforeAreCounted(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		const places = 3
		var defs store.Definitions
		for i := range places {
			j := ticktest.Hourly(fmt.Sprintf("job %d", i))
			j.Steps, j.On.Failed = []store.Step{ticktest.Call("")}, "told"
			defs.Jobs = append(defs.Jobs, j)
		}
		first := ticktest.Hourly("first")
		first.Priority = 1
		defs.Jobs = append(defs.Jobs, first, store.Job{Name: "told", Overlap: store.OverlapAllow, MaxRunning: 100, Steps: []store.Step{ticktest.Nop("")}})
		ticktest.Apply(t, d, defs)
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, errors.New("failed as it should")
		})
		tk.Concurrency = places
		ticktest.DecideOnly(t, d)
		d.Clock.Set(ticktest.Morning(9, 0))
		for _, tk.Limit = range []int{1, 0} {
			ticktest.Pass(t, tk)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE settled_at IS NULL"); n != 0 {
			t.Errorf("%d runs are not counted", n)
		}
		if states := ticktest.States(t, d, "told"); len(states) != places {
			t.Errorf("of %d failures, the hook was told %d: %v", places, len(states), states)
		}
	})
}
