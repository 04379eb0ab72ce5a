package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// worked lets a worker hold the run of a job for two hours. It returns when the run has ended.
func worked(t *testing.T, d *storetest.DB) time.Time {
	t.Helper()
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "report", Queue: "reports", Steps: []store.Step{ticktest.Nop("")}}}})
	ticktest.Request(t, d, "report")
	ticktest.Run(t, d)
	h := store.Holder{Name: "worker", Lease: 3 * time.Hour}
	tasks, err := d.Take(t.Context(), "reports", 1, h)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%v: %d taken", err, len(tasks))
	}
	d.Clock.Add(2 * time.Hour)
	if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
		t.Fatal(err)
	}
	return d.Clock.Now()
}

// The job of a run that was long under way needs a decision since the run has ended, and not since it was made: the pass that
// makes this decision is not late.
func TestEndOfALongRunIsNotLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ended := worked(t, d)
		d.Clock.Add(30 * time.Minute)
		list, err := d.Damages(t.Context(), 9)
		if err != nil || len(list) != 1 || list[0].Kind != "stuck" || !list[0].At.Equal(ended) {
			t.Errorf("%v: %+v; want one that is stuck since %v", err, list, ended)
		}
		if r := ticktest.Run(t, d); r.Decided != 1 || !r.OldestDue.Equal(ended) {
			t.Errorf("%d decided; a decision was due since %v, want %v", r.Decided, r.OldestDue, ended)
		}
	})
}

// Nor does the pass fail because somebody has locked the plan of that job for some seconds.
func TestEndOfALongRunThatIsLocked(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ended := worked(t, d)
		ticktest.LockPlans(t, d)
		for _, late := range []bool{false, true} {
			d.Clock.Add(3 * time.Minute)
			r, err := ticktest.New(t, d.Store).Run(t.Context())
			if (err != nil) != late || late && (len(r.Locked) != 1 || !r.Locked[0].Since.Equal(ended)) {
				t.Errorf("%v after the end: %v: %+v", d.Clock.Now().Sub(ended), err, r.Locked)
			}
		}
	})
}
