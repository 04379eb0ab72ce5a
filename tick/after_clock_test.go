package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A worker in SQL has given the end of its run an instant that is two hours away. That is the affair of this job alone: a run of
// another job that the same page makes begins now, and its failure has its hook with the next pass.
func TestAfterAnEndInTheFuture(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		nop := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "local", Queue: "others", Steps: nop}, {Name: "right", Queue: "others", Steps: nop}, {Name: "tell", Steps: nop},
			hooked(store.Job{Name: "load", After: []store.After{{Job: "right"}}, Steps: []store.Step{ticktest.Call("")}}),
		}})
		for _, name := range []string{"local", "right"} {
			ticktest.Request(t, d, name)
		}
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "another", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "others", 2, h)
		if err != nil || len(tasks) != 2 {
			t.Fatalf("%v: %+v", err, tasks)
		}
		for i := range tasks {
			if err := d.EndStep(t.Context(), &tasks[i], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
				t.Fatal(err)
			}
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET finished_at = "+ticktest.Literal(d, d.Clock.Now().Add(2*time.Hour))+
			" WHERE job_id = (SELECT id FROM "+d.Table("jobs")+" WHERE name = 'local')")
		broken := true
		tk := failing(t, d, &broken)
		for range 2 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		if got := ticktest.States(t, d, "load"); !slices.Equal(got, []string{"failed"}) {
			t.Fatalf("the run of another job: %v", got)
		}
		if got := kinds(told(t, d, "tell")); got != "failed of load" {
			t.Errorf("the hook of another job: %q", got)
		}
		run := ticktest.LastRun(t, d, "load")
		if run.CreatedAt.After(d.Clock.Now()) {
			t.Errorf("the run of another job is made at %s, and it is %s", run.CreatedAt, d.Clock.Now())
		}
	})
}

// A run ends while the decision for its job waits for the row of its group, long after the plan was locked. What follows from
// that end is made no earlier than the end, so that it stays behind what other processes have made from earlier ends.
func TestAfterAnEndDuringAWaitForAGroup(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		nop := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}, Jobs: []store.Job{
			hooked(store.Job{Name: "a", Queue: "others", Group: "g", Steps: nop}), {Name: "tell", Steps: nop},
			{Name: "load", After: []store.After{{Job: "a", On: store.OnFailure}}, Steps: nop},
		}})
		ticktest.Request(t, d, "a")
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "another", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "others", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %+v", err, tasks)
		}
		ticktest.RunNow(t, d, "a", store.Request{}) // it wakes the job
		decideBeside(t, d, "group_plans WHERE ", func() {
			d.Clock.Add(3 * time.Second)
			if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Failed, Final: store.Failed}, h); err != nil {
				t.Error(err)
			}
		})
		for _, name := range []string{"tell", "load"} {
			if run := ticktest.LastRun(t, d, name); run.CreatedAt.Before(d.Clock.Now()) {
				t.Errorf("the run of %s is made at %s, before the end from which it follows, at %s", name, run.CreatedAt, d.Clock.Now())
			}
		}
	})
}
