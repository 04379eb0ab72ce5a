package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Two decisions are under way at the same time: for two of the jobs, or for one of them and for the job that runs after
// both. Whichever commits last, there is one run.
func TestAfterAllBesideEachOther(t *testing.T) {
	for name, part := range map[string]string{"two of the jobs": "job_ends (job_id, meets", "one, and the job after both": "SET seen ="} {
		t.Run(name, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				ok := []store.Step{ticktest.Nop("")}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
					{Name: "one", Queue: "one", Own: ticktest.EveryFiveMinutes(), Steps: ok},
					{Name: "two", Queue: "two", Own: ticktest.EveryFiveMinutes(), Steps: ok},
					{Name: "both", Queue: "both", After: []store.After{{Job: "one"}, {Job: "two"}}, Steps: ok},
				}})
				ticktest.DecideOnly(t, d)
				d.Clock.Add(5 * time.Minute)
				ticktest.DecideOnly(t, d)
				endOne(t, d, "one")
				beside := false
				decideBeside(t, d, part, func() {
					beside = true
					endOne(t, d, "two")
					decideFor(t, d, store.RunWakes)
				})
				ticktest.DecideOnly(t, d)
				if got := runsOf(t, d, "both"); len(got) != 1 || !beside {
					t.Errorf("%q, one beside the other: %t", got, beside)
				}
			})
		})
	}
}

// endOne takes a run of a queue and ends it, as a worker does.
func endOne(t *testing.T, d *storetest.DB, queue string) {
	t.Helper()
	endOneAs(t, d, queue, store.Succeeded)
}

// endOneAs is endOne for any end.
func endOneAs(t *testing.T, d *storetest.DB, queue, state string) {
	t.Helper()
	h := store.Holder{Name: "worker", Lease: time.Minute}
	tasks, err := d.Take(t.Context(), queue, 1, h)
	if err != nil || len(tasks) != 1 {
		t.Fatal(tasks, err)
	}
	if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: state, Final: state}, h); err != nil {
		t.Fatal(err)
	}
}

// A decision finds the end of a run that is not kept. Beside it, another decision gives that end the next run for the interval,
// and this one counts.
func TestAfterAllBesideAnEndThatIsMadeAgain(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "one", Queue: "one", Steps: ok}, {Name: "two", Queue: "two", Steps: ok},
			{Name: "both", Queue: "both", After: []store.After{{Job: "one"}, {Job: "two"}}, Steps: ok}}})
		request := func(job string) {
			t.Helper()
			ticktest.RunNow(t, d, job, store.Request{Interval: store.Interval{Start: ticktest.Morning(7, 0), End: ticktest.Morning(8, 0)}})
			ticktest.DecideOnly(t, d)
		}
		request("one")
		endOne(t, d, "one")
		ticktest.DecideOnly(t, d)
		for _, table := range []string{"attempts", "runs"} {
			d.Exec(t, "DELETE FROM "+d.Table(table))
		}
		d.Clock.Add(time.Minute)
		request("one")
		request("two")
		endOne(t, d, "two")
		decideFor(t, d, store.RunWakes)
		decideBeside(t, d, "p.scope IN ('all', 'owner', 'schedule', 'tag')", func() { // the ends were read just before
			endOne(t, d, "one")
			decideFor(t, d, store.RunWakes)
		})
		ticktest.DecideOnly(t, d)
		if got := runsOf(t, d, "both"); len(got) != 1 {
			t.Errorf("%q", got)
		}
	})
}
