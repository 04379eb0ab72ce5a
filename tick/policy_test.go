package tick_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

func TestAFailedRunPausesItsJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		bad := []store.Step{ticktest.Step("", "INSERT INTO nowhere VALUES (1)")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "at once", Own: ticktest.EveryFiveMinutes(), OnError: "pause", Steps: bad},
			{Name: "third", Own: ticktest.EveryFiveMinutes(), PauseAfterFailures: 3, Steps: bad},
		}})
		failed := map[string]int{}
		for range 6 {
			for _, e := range ticktest.Run(t, d).Runs {
				failed[e.Job[strings.LastIndex(e.Job, "/")+1:]]++
			}
			d.Clock.Add(5 * time.Minute)
		}
		if failed["at once"] != 1 || failed["third"] != 3 {
			t.Fatalf("%v", failed)
		}
		j, err := d.Job(t.Context(), "third")
		if err != nil || j.State != "paused" || j.Paused.Reason == "" {
			t.Fatalf("%v: %+v", err, j)
		}
		d.Clock.Add(time.Minute)
		if _, err := d.Resume(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "third"}, false, store.Author{}); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Made != 0 {
			t.Fatalf("resumed, and fired back: %+v", r)
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Failed != 1 {
			t.Fatalf("resumed: %+v", r)
		}
	})
}

func TestOneJobRunsAfterAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "third", After: "second", Steps: ok},
			{Name: "second", After: "first", Steps: ok},
			{Name: "first", Own: ticktest.EveryFiveMinutes(), Steps: ok},
			{Name: "never", After: "failing", Steps: ok},
			{Name: "failing", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO nowhere VALUES (1)")}},
		}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		r := ticktest.Run(t, d)
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" a JOIN "+d.Table("runs")+" b ON b.interval_start = a.interval_start AND b.interval_end = a.interval_end "+
			"WHERE a.scheduled_for IS NOT NULL AND a.state = 'succeeded' AND b.scheduled_for IS NULL"); n != 2 {
			t.Errorf("%d of those that run after it have its interval", n)
		}
		if r.Succeeded != 3 || r.Failed != 1 {
			t.Fatalf("%+v", r)
		}
		_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "first", After: "third", Steps: ok}}}, store.ApplyOptions{})
		if err == nil || !strings.Contains(err.Error(), "circle") {
			t.Fatalf("a circle: %v", err)
		}
	})
}

// A circle that plain SQL closes parks the job, and a pass over it ends; opened anywhere, the job is back.
func TestACircleOfJobsParks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Own: ticktest.EveryFiveMinutes(), Steps: ok}, {Name: "second", After: "first", Steps: ok}, {Name: "third", After: "second", Steps: ok}}})
		ticktest.Run(t, d)
		after := func(job, predecessor string) {
			t.Helper()
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET after_job_id = "+predecessor+" WHERE name = '"+job+"'")
		}
		state := func(want string) {
			t.Helper()
			jobs, err := d.Jobs(t.Context(), store.JobFilter{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, j := range jobs {
				got += fmt.Sprintf("%s %d %t; ", j.Name, j.RunsMade, j.Parked != "")
			}
			if got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
		after("first", strconv.Itoa(d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = 'third'")))
		ticktest.Request(t, d, "first")
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); len(r.Parked) != 1 || !strings.Contains(r.Parked[0].Error, "after: goes in a circle") {
			t.Fatalf("%+v", r)
		}
		state("first 1 true; second 0 false; third 0 false; ")
		after("third", "NULL")
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		state("first 2 false; second 1 false; third 0 false; ")
	})
}

func TestStartupJobsRunOnceForEachStart(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "warm", OnStartup: true, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		want := []int{0, 1, 0, 1, 0}
		for i, id := range []string{"", "boot-1", "boot-1", "boot-2", ""} {
			p := ticktest.New(t, d.Store)
			p.StartupID = id
			r, err := p.Run(t.Context())
			if err != nil || r.Succeeded != want[i] {
				t.Fatalf("tick %d: %v, %+v", i, err, r)
			}
			d.Clock.Add(time.Minute)
		}
	})
}

func TestReplaceMakesWayForTheNewest(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Overlap: "replace", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		decide := func() {
			t.Helper()
			p := ticktest.New(t, d.Store)
			p.Limit = -1
			if _, err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.Clock.Add(5 * time.Minute)
		}
		decide()
		decide() // 08:05 is queued
		h := store.Holder{Name: "h", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		decide() // 08:10 waits for it, and it is told
		decide() // 08:15 takes the waiter's place
		signs, err := d.Heartbeat(t.Context(), []string{tasks[0].Run.ID}, h)
		if err != nil || !signs[tasks[0].Run.ID].Cancel {
			t.Fatalf("%v: %+v", err, signs)
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Cancelled, Final: store.Cancelled}, h); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		runs, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range runs {
			got += r.ScheduledFor.Format("15:04 ") + r.State + ", "
		}
		if got != "08:20 succeeded, 08:15 cancelled, 08:10 cancelled, 08:05 cancelled, " {
			t.Fatal(got)
		}
	})
}
