package tick_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A report names a bounded number of the runs that ended well, and of those that failed, also over several passes. It counts
// all of them. Of each kind it names the first ones.
func TestReportNamesABoundedNumberOfRuns(t *testing.T) {
	t.Parallel()
	d := storetest.Open(t, "sqlite", store.Options{})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "often", Own: &store.Schedule{Rule: "every 1s"}, Missed: store.MissedAll, MissedLimit: 450,
		Overlap: store.OverlapAllow, MaxRunning: 450, Steps: []store.Step{ticktest.Call("")}}}})
	ticktest.DecideOnly(t, d)
	tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
		if r.Task.Run.Number%4 == 0 {
			return executor.Result{}, errors.New("it is the fourth")
		}
		return executor.Result{}, nil
	})
	tk.Now = d.Clock.Now
	tk.Sleep = func(context.Context, time.Duration) { d.Clock.Add(10 * time.Minute) }
	d.Clock.Add(10 * time.Minute)
	r, err := tk.RunFor(t.Context(), 25*time.Minute)
	if err != nil || r.Passes != 3 || r.Started != 3*450 || r.Succeeded+r.Failed != r.Started {
		t.Fatalf("%v: %d passes, %d started, %d and %d ended", err, r.Passes, r.Started, r.Succeeded, r.Failed)
	}
	named := map[bool]int{}
	for _, e := range r.Runs {
		named[e.Wrong()]++
	}
	if named[true] != r.Failed || named[false] != tick.NamedRuns || r.MoreRuns != r.Succeeded-tick.NamedRuns {
		t.Errorf("%d of %d that failed are named, %d of %d others, and there are %d more", named[true], r.Failed, named[false], r.Succeeded, r.MoreRuns)
	}
	if n := r.Runs[0].Number; n > 450 {
		t.Errorf("the first that is named is the run %d, of a later pass", n)
	}
}
