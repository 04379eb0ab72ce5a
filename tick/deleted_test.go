package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A row that plain SQL deletes leaves no mark in any other row. The first pass of the hour finds the loss, reports it
// with the job's name, and repairs or ends the rest.

// parkedWith makes sure that a pass parks just one job, for a reason.
func parkedWith(t *testing.T, d *storetest.DB, job, why string) {
	t.Helper()
	r := ticktest.Run(t, d)
	if len(r.Parked) != 1 || !strings.HasSuffix(r.Parked[0].Job, job) || !strings.Contains(r.Parked[0].Error, why) {
		t.Errorf("parked: %+v, want %s: %s", r.Parked, job, why)
	}
	if again := ticktest.Run(t, d); again.Decided != 0 || again.ParkedJobs != 1 {
		t.Errorf("the next pass: %+v", again)
	}
}

func mended(t *testing.T, d *storetest.DB) {
	t.Helper()
	if r := ticktest.Run(t, d); r.ParkedJobs != 0 {
		t.Errorf("not mended: %+v", r.Parked)
	}
	if r := ticktest.Run(t, d); r.Decided != 0 || r.ParkedJobs != 0 {
		t.Errorf("the next pass: %+v", r)
	}
}

// A deleted plan is made again, and goes on where the runs on record end.
func TestDeletedPlanIsMadeAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "job", Own: &store.Schedule{Rule: "every 20m"}, Missed: "all", Overlap: "wait-all", Steps: []store.Step{ticktest.Nop("")}}, onRequest("asked")}})
		ticktest.Run(t, d)
		for _, minute := range []int{20, 40} {
			d.Clock.Set(ticktest.Morning(8, minute))
			ticktest.Run(t, d)
		}
		d.Exec(t, "DELETE FROM "+d.Table("runs")+" WHERE number = 1") // as if pruned
		d.Exec(t, "DELETE FROM "+d.Table("plans"))
		ticktest.RunNow(t, d, "asked", store.Request{})
		d.Clock.Set(ticktest.Morning(8, 59))
		if r := ticktest.Run(t, d); r.Succeeded != 1 || r.Made != 0 { // a request wakes its job, which has a plan again
			t.Errorf("within the hour: %+v", r)
		}
		d.Clock.Set(ticktest.Morning(9, 20))
		if r := ticktest.Run(t, d); r.Made != 2 || r.Succeeded != 2 || len(r.Gaps) != 0 {
			t.Errorf("in the next hour: %+v", r)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 3 || runs[0].Number != 4 || !runs[0].ScheduledFor.Equal(ticktest.Morning(9, 20)) || !runs[1].IntervalStart.Equal(ticktest.Morning(8, 40)) {
			t.Errorf("%v: %+v", err, runs)
		}
		if r := ticktest.Run(t, d); r.Decided != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Somebody brings back an older copy of plans, while no trigger runs. The plan goes on where the runs on record end: no gap says
// that times were missed that have a run, no number is given twice, and no interval has what earlier runs had.
func TestOlderPlanGoesOnAfterTheRuns(t *testing.T) { olderPlan(t, ticktest.Morning(9, 20), 1) }

// The same, where a pass came in the same hour, so that nothing looks for such plans but the decision itself.
func TestOlderPlanGoesOnWithinTheHour(t *testing.T) { olderPlan(t, ticktest.Morning(8, 25), 0) }

// olderPlan brings back an older copy. It wants a number of gaps from the next pass, which comes at an instant.
func olderPlan(t *testing.T, next time.Time, gaps int) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		for _, minute := range []int{5, 10, 15, 20} {
			d.Clock.Set(ticktest.Morning(8, minute))
			ticktest.Run(t, d)
		}
		at := func(minute int) string { return ticktest.Literal(d, ticktest.Morning(8, minute)) }
		d.Exec(t, "UPDATE "+d.Table("plans")+" SET version = 2, runs_made = 1, cycles = 1, next_run = "+at(10)+", decided_through = "+at(5)+", last_scheduled_for = "+at(5))
		d.Clock.Set(next)
		if r := ticktest.Run(t, d); r.Made != 1 || r.Gaps[store.Missed] != gaps {
			t.Errorf("%d made, gaps %v", r.Made, r.Gaps)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 5 || runs[0].Number != 5 || !runs[0].ScheduledFor.Equal(next) || !runs[0].IntervalStart.Equal(ticktest.Morning(8, 20)) {
			t.Errorf("%v: %+v", err, runs)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("gaps")+" WHERE from_at >= "+at(20)); n != gaps {
			t.Errorf("%d gaps begin after the last run, want %d", n, gaps)
		}
		if j, err := d.Job(t.Context(), "job"); err != nil || j.RunsMade != 5 {
			t.Errorf("%v: %d runs are counted", err, j.RunsMade)
		}
	})
}

// In a plan that is made again, the runs that the job has made count towards its max_runs, also when the last of them is deleted,
// and whether or not the job has more to do.
func TestDeletedPlanCountsTheRuns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := store.Job{Name: "job", Own: ticktest.EveryFiveMinutes(), MaxRuns: 2, Steps: []store.Step{ticktest.Nop("")}}
		more := job
		more.Name, more.MaxRuns = "more", 10
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job, more, onRequest("asked")}})
		ticktest.Run(t, d)
		ticktest.RunNow(t, d, "asked", store.Request{})
		for _, minute := range []int{5, 10, 15} {
			d.Clock.Set(ticktest.Morning(8, minute))
			ticktest.Run(t, d)
		}
		d.Exec(t, "DELETE FROM "+d.Table("plans"))
		d.Clock.Set(ticktest.Morning(9, 0))
		if r := ticktest.Run(t, d); r.Made != 1 || len(r.Gaps) != 1 { // of the job that has more to do
			t.Errorf("%+v", r)
		}
		for name, made := range map[string]int64{"job": 2, "more": 4, "asked": 1} {
			if j, err := d.Job(t.Context(), name); err != nil || j.RunsMade != made {
				t.Errorf("%s: %v: %d runs are counted", name, err, j.RunsMade)
			}
		}
		d.Exec(t, "DELETE FROM "+d.Table("runs")) // as if pruned
		job.MaxRuns = 3
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
		for _, minute := range []int{5, 10, 15} {
			d.Clock.Set(ticktest.Morning(9, minute))
			ticktest.Run(t, d)
		}
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{"succeeded"}) {
			t.Errorf("%q", got)
		}
	})
}

// A job with repeat_after waits for the end of its run. Where that run is gone, or had ended when an older plan was brought
// back, no end comes: the job goes on from the pass that finds this.
func TestRepeatAfterARunThatIsGone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", RepeatAfter: store.Duration(10 * time.Minute), Steps: []store.Step{ticktest.Nop("")}}}})
		made := func(hour, minute, want int) {
			t.Helper()
			d.Clock.Set(ticktest.Morning(hour, minute))
			if r := ticktest.Run(t, d); r.Made != want || r.Succeeded != want {
				t.Errorf("%d:%02d: %+v", hour, minute, r)
			}
		}
		ticktest.DecideOnly(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("runs"))
		made(8, 30, 0) // it is found
		made(8, 39, 0)
		made(8, 40, 1)
		made(8, 50, 1)
		old := ticktest.Literal(d, ticktest.Morning(8, 40))
		d.Exec(t, "UPDATE "+d.Table("plans")+" SET repeat_from = "+old+", last_scheduled_for = "+old+", decided_through = "+old+
			", next_run = "+ticktest.Literal(d, ticktest.Morning(8, 50)))
		d.Clock.Set(ticktest.Morning(9, 0))
		if r := ticktest.Run(t, d); r.Started != 0 { // 8:50 has its run
			t.Errorf("%+v", r)
		}
		made(9, 9, 0)
		made(9, 10, 1)
		made(9, 20, 1)
	})
}

// Another run of that job is open meanwhile, such as a long one that somebody has requested. The job does not wait for its end.
func TestRepeatAfterARunThatIsGoneBesideAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", RepeatAfter: store.Duration(10 * time.Minute), Overlap: store.OverlapAllow, MaxRunning: 2,
			Queue: "other", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("runs")+" WHERE occurrence LIKE 'at:%'")
		for _, at := range []struct{ hour, minute, made int }{{8, 5, 0}, {9, 30, 0}, {9, 39, 0}, {9, 40, 1}, {9, 50, 0}} { // at 9:30 it is found
			d.Clock.Set(ticktest.Morning(at.hour, at.minute))
			if r := ticktest.Run(t, d); r.Made != at.made {
				t.Errorf("%d:%02d: %+v", at.hour, at.minute, r)
			}
		}
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{"queued", "queued"}) {
			t.Errorf("%q", got)
		}
	})
}

// A job had no schedule, and its plan is deleted. The rule that it gets then counts from that change, and not from when the job was
// made: nothing was due before.
func TestDeletedPlanOfAJobThatGetsARule(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{onRequest("job")}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("plans"))
		d.Clock.Set(ticktest.Morning(10, 2))
		job := onRequest("job")
		job.Own = ticktest.EveryFiveMinutes()
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
		d.Clock.Set(ticktest.Morning(10, 4))
		if r := ticktest.Run(t, d); r.Made != 0 || len(r.Gaps) != 0 {
			t.Errorf("%+v", r)
		}
		d.Clock.Set(ticktest.Morning(10, 5))
		if r := ticktest.Run(t, d); r.Made != 1 || len(r.Gaps) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// All rows of jobs are deleted, and ids begin anew, as after TRUNCATE. A new job does not execute what waited for the job that had
// its id. A run that was requested of the new job before any pass is its own.
func TestDeletedJobWhoseIDAnotherHas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		old := onRequest("old")
		old.Queue = "other"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{old}})
		ticktest.Request(t, d, "old")
		ticktest.DecideOnly(t, d)
		id := d.Int(t, "SELECT id FROM "+d.Table("jobs"))
		d.Exec(t, "DELETE FROM "+d.Table("steps"))
		d.Exec(t, "DELETE FROM "+d.Table("jobs"))
		d.Clock.Add(5 * time.Minute)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{onRequest("job")}})
		is := d.Int(t, "SELECT id FROM "+d.Table("jobs"))
		for _, table := range []string{"runs", "plans"} {
			d.Exec(t, fmt.Sprintf("UPDATE %s SET job_id = %d WHERE job_id = %d", d.Table(table), is, id))
		}
		ticktest.RunNow(t, d, "job", store.Request{})
		r := ticktest.Run(t, d)
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{"cancelled", "succeeded"}) {
			t.Errorf("%q, %+v", got, r)
		}
		if runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"}); err != nil || !strings.Contains(runs[len(runs)-1].Error, "for another one that had the same id") {
			t.Errorf("%v: %+v", err, runs)
		}
	})
}

// A job has runs on record, and its plan is deleted with the rules in it. A rule that it gets, or that is edited, before the next
// pass counts from that change, and not from the last record: no edit starts runs for times before it. They are on record as a gap.
func TestDeletedPlanOfAJobWhoseRuleIsEdited(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		edited, gets := onRequest("edited"), onRequest("gets")
		edited.Own, gets.Own = &store.Schedule{Rule: "every 20m"}, &store.Schedule{Rule: "every 20m"}
		often := store.Schedule{Name: "often", Rule: "every 5m"}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{often}, Jobs: []store.Job{edited, gets}})
		ticktest.Run(t, d)
		d.Clock.Set(ticktest.Morning(8, 20))
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("plans"))
		d.Exec(t, "DELETE FROM "+d.Table("plan_rules"))
		d.Clock.Set(ticktest.Morning(8, 37))
		edited.Own, gets.Schedules = &store.Schedule{Rule: "every 5m"}, []string{"often"}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{often}, Jobs: []store.Job{edited, gets}})
		d.Clock.Set(ticktest.Morning(8, 39))
		if r := ticktest.Run(t, d); r.Made != 0 || fmt.Sprint(r.Gaps) != "map[edited:1]" {
			t.Errorf("after the edit: %d made, gaps %v", r.Made, r.Gaps)
		}
		d.Clock.Set(ticktest.Morning(8, 40))
		if r := ticktest.Run(t, d); r.Made != 2 || len(r.Gaps) != 0 {
			t.Errorf("at the next time: %d made, gaps %v", r.Made, r.Gaps)
		}
	})
}

// onRequest is a job without a schedule.
func onRequest(name string) store.Job {
	return store.Job{Name: name, Steps: []store.Step{ticktest.Nop("")}}
}

// A job whose schedule was deleted is parked until it has one again.
func TestDeletedSchedule(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Schedules: []store.Schedule{{Name: "shared", Rule: "every 5m"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"shared"}, Steps: []store.Step{ticktest.Nop("")}}, onRequest("other")}}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("schedules"))
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Decided != 0 {
			t.Errorf("before the hour is over: %+v", r)
		}
		d.Clock.Add(time.Hour)
		parkedWith(t, d, "job", "the row of the schedule with the id")
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("gaps")+" WHERE reason = 'edited'"); n != 1 {
			t.Errorf("%d gaps", n)
		}
		ticktest.Apply(t, d, defs)
		mended(t, d)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Made != 1 {
			t.Errorf("%+v", r)
		}
		// Deleting the row in job_schedules also repairs the job. A pass sees it within the hour.
		d.Exec(t, "DELETE FROM "+d.Table("schedules"))
		d.Clock.Add(time.Hour)
		parkedWith(t, d, "job", "the row of the schedule with the id")
		d.Exec(t, "DELETE FROM "+d.Table("job_schedules"))
		d.Clock.Add(time.Hour)
		mended(t, d)
	})
}

// A job whose predecessor was deleted is parked until it is there again.
func TestDeletedPredecessor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		follower := store.Job{Name: "follower", After: []store.After{{Job: "victim"}}, Steps: []store.Step{ticktest.Nop("")}}
		defs := store.Definitions{Jobs: []store.Job{onRequest("victim"), follower, onRequest("other")}}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("jobs")+" WHERE name = 'victim'")
		list, err := d.Jobs(t.Context(), store.JobFilter{})
		if err != nil || len(list) != 2 || !strings.Contains(store.AfterText(list[0].After), "whose row is gone") {
			t.Fatalf("%v: %+v", err, list)
		}
		if _, err := d.Job(t.Context(), "follower"); err != nil {
			t.Error(err)
		}
		d.Clock.Add(time.Hour)
		parkedWith(t, d, "follower", "the row of a job that it runs after was deleted")
		ticktest.Apply(t, d, defs)
		mended(t, d)
		ticktest.RunNow(t, d, "victim", store.Request{})
		if r := ticktest.Run(t, d); r.Succeeded != 2 {
			t.Errorf("%+v", r)
		}
		// A job that runs after another one gets no more runs.
		d.Exec(t, "DELETE FROM "+d.Table("jobs")+" WHERE name = 'victim'")
		follower.After = nil
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{follower}})
		d.Clock.Add(time.Hour)
		mended(t, d)
	})
}

// The runs of a job that was deleted are cancelled.
func TestDeletedJobsRunsEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{onRequest("job"), onRequest("asked"), onRequest("other")}})
		ticktest.Run(t, d)
		for _, name := range []string{"job", "asked"} {
			ticktest.RunNow(t, d, name, store.Request{})
		}
		tk := ticktest.New(t, d.Store)
		tk.Limit = -1
		if _, err := tk.Run(t.Context()); err != nil { // both are queued
			t.Fatal(err)
		}
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, occurrence, ready_at, created_at) VALUES ('00000000-0000-7000-9000-000000000001', 777, 'now:1', %[2]s, %[2]s)",
			d.Table("runs"), ticktest.Literal(d, d.Clock.Now())))
		d.Exec(t, "DELETE FROM "+d.Table("plans"))
		d.Exec(t, "DELETE FROM "+d.Table("jobs")+" WHERE name <> 'other'")
		d.Clock.Add(time.Hour)
		tk.Gauges, tk.Limit = true, 0
		r, err := tk.Run(t.Context())
		if err != nil || r.Started != 0 || !r.OldestQueued.IsZero() || !r.NextRun.IsZero() {
			t.Errorf("%v: %+v", err, r)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil || len(runs) != 3 {
			t.Fatal(err, runs)
		}
		for _, v := range runs {
			if v.State != store.Cancelled || !strings.Contains(v.Error, "the row of its job was deleted") || v.SettledAt.IsZero() {
				t.Errorf("%+v", v)
			}
		}
		if r := ticktest.Run(t, d); r.Decided != 0 || !r.OldestDue.IsZero() {
			t.Errorf("%+v", r)
		}
	})
}
