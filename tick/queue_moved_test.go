package tick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job moves to another queue, also with its runs that nobody has taken: those that wait for it stay stuck otherwise. A run
// that plain SQL has requested without naming a queue is in that of its job.
func TestRunsFollowTheQueueOfTheirJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		inQueues(t, d, 1, "reprots")
		first := ticktest.RunNow(t, d, "reprots 0", store.Request{})
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, occurrence, ready_at, created_at) VALUES ('00000000-0000-7000-9000-000000000001', %d, 'now:1', %[3]s, %[3]s)",
			d.Table("runs"), first.JobID, ticktest.Literal(d, d.Clock.Now())))
		ticktest.DecideOnly(t, d)
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE queue = 'reprots'"); n != 3 {
			t.Errorf("%d of 3 runs are in the queue of their job", n)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "reprots 0", Steps: []store.Step{ticktest.Nop("")}}}})
		if r := ticktest.Run(t, d); r.Succeeded != 3 {
			t.Errorf("%+v", r)
		}
	})
}

// A job that becomes more urgent is so with its runs that nobody has taken: those that are queued, and those that wait for a group.
// A run that plain SQL has given a priority of its own keeps it.
func TestRunsFollowThePriorityOfTheirJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		var defs store.Definitions
		for _, name := range []string{"a", "b", "c"} {
			grouped := ticktest.Grouped("grouped "+name, "g", 0)
			grouped.Queue = "groups"
			defs.Jobs = append(defs.Jobs, grouped, ticktest.Grouped(name, "", 0))
		}
		defs.Groups = []store.Group{{Name: "g", MaxRunning: 1}}
		ticktest.Apply(t, d, defs)
		ticktest.DecideOnly(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Hour}
		took := func(queue, want string) *store.Task {
			t.Helper()
			tasks, err := d.Take(t.Context(), queue, 1, h)
			if err != nil || len(tasks) != 1 || tasks[0].Job.Name != want {
				t.Fatalf("%v: %s, want a run of %s", err, standing(t, d), want)
			}
			return &tasks[0]
		}
		first := took("groups", "grouped a")
		d.Exec(t, fmt.Sprintf("UPDATE %s SET priority = 7 WHERE job_id IN (SELECT id FROM %s WHERE name LIKE '%%b')", d.Table("runs"), d.Table("jobs")))
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET priority = 5 WHERE name LIKE '%b'")
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET priority = 10 WHERE name LIKE '%c'")
		ticktest.DecideOnly(t, d)
		for _, name := range []string{"c", "b", "a"} {
			took("another", name)
		}
		for _, name := range []string{"grouped c", "grouped b"} {
			if err := d.EndStep(t.Context(), first, store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
				t.Fatal(err)
			}
			ticktest.DecideOnly(t, d)
			first = took("groups", name)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE priority = 7"); n != 2 {
			t.Errorf("%d of 2 runs keep their own priority", n)
		}
	})
}

// A job becomes more urgent while somebody has runs of it. Where such a run is given back, waits for its next try, or has lost its
// holder, it goes by the new priority.
func TestATakenRunFollowsThePriorityOfItsJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		names := []string{"given", "tried", "lost"}
		var defs store.Definitions
		for _, name := range append([]string{"first"}, names...) {
			defs.Jobs = append(defs.Jobs, ticktest.Grouped(name, "", 0))
		}
		ticktest.Apply(t, d, defs)
		ticktest.DecideOnly(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "another", 4, h)
		if err != nil || len(tasks) != 4 {
			t.Fatal(err, tasks)
		}
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET priority = 5 WHERE name <> 'first'")
		ticktest.DecideOnly(t, d)
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("attempts")+" WHERE state = 'running'"); n != 4 {
			t.Errorf("%d attempts are under way", n)
		}
		for i := range tasks {
			switch tasks[i].Job.Name {
			case "first", "given":
				_, err = d.GiveBack(t.Context(), []*store.Task{&tasks[i]})
			case "tried":
				err = d.EndStep(t.Context(), &tasks[i], store.StepEnd{State: store.Failed, Retry: true, Backoff: time.Second}, h)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d.Clock.Add(2 * time.Minute)
		ticktest.DecideOnly(t, d)
		for _, name := range names {
			if r := ticktest.LastRun(t, d, name); r.State != store.Queued || r.Priority != 5 {
				t.Errorf("%s: %s, priority %d", name, r.State, r.Priority)
			}
		}
		if r := ticktest.LastRun(t, d, "first"); r.State != store.Queued || r.Priority != 0 {
			t.Errorf("first: %s, priority %d", r.State, r.Priority)
		}
	})
}
