package tick_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A standby takes over that has not got the last delivery of a run. Then it gives the same fence to another process. No end of
// the first one counts: it would end the run that the other one executes, or deliver it a third time.
func TestTwoHoldersOfOneFence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 3)
		h := store.Holder{Name: "first", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "others", 3, h)
		if err != nil || len(tasks) != 3 {
			t.Fatal(err, len(tasks))
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET holder = 'second'")
		d.Exec(t, "UPDATE "+d.Table("attempts")+" SET holder = 'second'")
		for name, end := range map[string]store.StepEnd{
			"the end":        success,
			"the next step":  {State: store.Succeeded, NextStep: 2},
			"another try":    {State: store.Failed, Retry: true},
			"a new delivery": {State: "cut", Redeliver: true},
		} {
			if err := d.EndStep(t.Context(), &tasks[0], end, h); !errors.Is(err, store.ErrOutdated) {
				t.Errorf("%s: %v", name, err)
			}
		}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.EndStepIn(t.Context(), tx, &tasks[0], success, h); !errors.Is(err, store.ErrOutdated) {
			t.Errorf("in the transaction of the step: %v", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		list := make([]*store.Ending, len(tasks))
		for i := range tasks {
			list[i] = &store.Ending{Task: &tasks[i], End: success}
		}
		d.EndSteps(t.Context(), list[:1]) // one end, and several together: some engines have a statement for each
		d.EndSteps(t.Context(), list[1:])
		for i, e := range list {
			if !errors.Is(e.Err, store.ErrAlone) {
				t.Errorf("%d: %v", i, e.Err)
			}
		}
		if given, err := d.GiveBack(t.Context(), []*store.Task{&tasks[0]}); err != nil || len(given) > 0 {
			t.Errorf("%v: gave %d back", err, len(given))
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" r JOIN "+d.Table("attempts")+" a ON a.run_id = r.id WHERE r.state = 'running' AND a.state = 'running'"); n != 3 {
			t.Errorf("%d runs of the second holder are as they were, want 3", n)
		}
	})
}
