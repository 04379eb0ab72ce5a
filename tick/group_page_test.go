package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// crowdedGroup is a group with one place: a run of "crowd" has it, three more and one of "b" wait for it. It returns the task of
// the first run.
func crowdedGroup(t *testing.T, d *storetest.DB) (*store.Task, store.Holder) {
	t.Helper()
	aside := func(name string) store.Job {
		return store.Job{Name: name, Group: "g", Queue: "other", Steps: []store.Step{ticktest.Nop("")}}
	}
	crowd := aside("crowd")
	crowd.Overlap, crowd.MaxRunning = store.OverlapAllow, 9
	ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}, Jobs: []store.Job{crowd, aside("b")}})
	for range 4 {
		ticktest.Request(t, d, "crowd")
	}
	d.Clock.Add(time.Second)
	ticktest.Request(t, d, "b")
	ticktest.DecideOnly(t, d)
	h := store.Holder{Name: "h", Lease: 24 * time.Hour}
	tasks, err := d.Take(t.Context(), "other", 10, h)
	if got := standing(t, d); err != nil || len(tasks) != 1 || got != "b waiting group, crowd running, crowd waiting group, crowd waiting group, crowd waiting group" {
		t.Fatalf("%v: %d taken: %s", err, len(tasks), got)
	}
	return &tasks[0], h
}

// All runs of a job leave the group together. The run of another job that waits behind them gets the place.
func TestGroupThatAJobLeavesWithAllItsRuns(t *testing.T) {
	for by, leave := range map[string]struct {
		how  func(d *storetest.DB) error
		want string
	}{
		"abort": {func(d *storetest.DB) error {
			_, err := d.AbortJob(t.Context(), "crowd", false, store.Author{})
			return err
		}, "b queued, crowd cancelled, crowd cancelled, crowd cancelled, crowd cancelled"},
		"pause": {func(d *storetest.DB) error {
			_, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "crowd"}, time.Time{}, store.Author{})
			return err
		}, "b queued, crowd cancelled, crowd waiting pause, crowd waiting pause, crowd waiting pause"},
	} {
		t.Run(by, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				first, h := crowdedGroup(t, d)
				if err := leave.how(d); err != nil {
					t.Fatal(err)
				}
				if err := d.EndStep(t.Context(), first, store.StepEnd{State: store.Cancelled, Final: store.Cancelled}, h); err != nil {
					t.Fatal(err)
				}
				ticktest.DecideOnly(t, d)
				if got := standing(t, d); got != leave.want {
					t.Error(got)
				}
			})
		})
	}
}

// The run that has the place of a group ends while another session decides for its job. That session settles the run, so it also
// has to give the place away: nobody else looks.
func TestGroupWhosePlaceBecomesFreeBesideADecision(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		first, h := crowdedGroup(t, d)
		ticktest.RunNow(t, d, "crowd", store.Request{}) // it wakes the job
		decideBeside(t, d, "ROW_NUMBER() OVER (PARTITION BY j.group_name", func() {
			if err := d.EndStep(t.Context(), first, store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
				t.Error(err)
			}
		})
		ticktest.DecideOnly(t, d)
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'queued'"); n != 1 {
			t.Errorf("%d runs have the place: %s", n, standing(t, d))
		}
	})
}
