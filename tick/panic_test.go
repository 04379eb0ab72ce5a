package tick_test

import (
	"context"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// An executor that panics fails its run, and no other. If this end is not recorded, the pass says so, as after any other end.
func TestPanicOfAnExecutor(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		meanwhile := ""
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			if meanwhile != "" {
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET "+meanwhile+" WHERE state = 'running'")
			}
			panic("a mistake")
		})
		ticktest.Request(t, d, "job")
		if r, err := tk.Run(t.Context()); err != nil || r.Failed != 1 || r.Runs[0].Error != "the executor panicked: a mistake" {
			t.Errorf("%v: %+v", err, r)
		}
		ticktest.Request(t, d, "job")
		meanwhile = "fence = fence + 1"
		if r, err := tk.Run(t.Context()); err != nil || r.Failed != 0 || r.Outdated != 1 {
			t.Errorf("delivered again: %v: %+v", err, r)
		}
	})
}
