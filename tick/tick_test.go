package tick_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

func TestAPassRunsWhatIsDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "good", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("one", "INSERT INTO effects VALUES (1)"), ticktest.Step("two", "INSERT INTO effects VALUES (2)")}},
			{Name: "bad", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO no_such_table VALUES (1)")}},
			{Name: "idle", Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (3)")}},
		}})
		if r := ticktest.Run(t, d); r.Decided != 3 || r.Made != 0 {
			t.Fatalf("first pass: %+v", r)
		}
		d.Clock.Add(12 * time.Minute)
		r := ticktest.Run(t, d)
		if r.Made != 2 || r.Succeeded != 1 || r.Failed != 1 || r.Gaps[store.Missed] != 2 {
			t.Fatalf("second pass: %+v", r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2 {
			t.Fatalf("%d effects", n)
		}
		if r := ticktest.Run(t, d); r.Decided != 0 || r.Started != 0 {
			t.Fatalf("third pass: %+v", r)
		}
		if _, err := d.RunNow(t.Context(), "idle", store.Request{}); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("run-now: %+v", r)
		}
		j, err := d.Job(t.Context(), "bad")
		if err != nil || j.LastState != store.Failed || j.Streak != 1 || !j.NextRun.Equal(time.Date(2026, 1, 5, 8, 15, 0, 0, time.UTC)) {
			t.Fatalf("%v: %+v", err, j)
		}
	})
}

func TestWhatWasMissed(t *testing.T) {
	weeks := 21 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		job    store.Job
		down   time.Duration
		runs   int
		missed int // gaps
	}{
		{"latest", store.Job{}, weeks, 1, 1},
		{"all, capped", store.Job{Missed: "all", MissedLimit: 7}, weeks, 7, 1},
		{"all, few", store.Job{Missed: "all"}, 3 * 24 * time.Hour, 3, 0},
		{"skip, late", store.Job{Missed: "skip"}, weeks + 3*time.Minute, 0, 1},
		{"skip, in time", store.Job{Missed: "skip", MissedGrace: store.Duration(30 * time.Minute)}, weeks + 20*time.Minute, 1, 1},
		{"within", store.Job{Missed: "all", MissedWithin: store.Duration(49 * time.Hour)}, weeks, 3, 1},
		{"no more than max_runs", store.Job{Missed: "all", MaxRuns: 2}, weeks, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				j := c.job
				j.Name, j.Own, j.Steps = "job", &store.Schedule{Rule: "0 8 * * *", Zone: "UTC"}, []store.Step{ticktest.Step("", "SELECT 1")}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				ticktest.Run(t, d)
				d.Clock.Add(c.down)
				r := ticktest.Run(t, d)
				if r.Made != c.runs || r.Succeeded != c.runs || r.Gaps[store.Missed]+r.Gaps[store.OverLimit] != c.missed {
					t.Fatalf("%+v", r)
				}
				if r := ticktest.Run(t, d); r.Decided != 0 {
					t.Fatalf("again: %+v", r)
				}
			})
		})
	}
}

func TestABadRowStopsItsJobOnly(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		jobs := []store.Job{}
		for _, name := range []string{"good", "bad rule", "bad policy", "no steps", "bad spec", "other owner"} {
			jobs = append(jobs, store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		id := func(name string) int { return d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = '"+name+"'") }
		d.Exec(t, fmt.Sprintf("UPDATE %s SET rule = 'every full moon' WHERE job_id = %d", d.Table("schedules"), id("bad rule")))
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET max_running = 3 WHERE name = 'bad policy'")
		d.Exec(t, fmt.Sprintf("DELETE FROM %s WHERE job_id = %d", d.Table("steps"), id("no steps")))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET spec = '{\"sql\": 7}' WHERE job_id = %d", d.Table("steps"), id("bad spec")))
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET owner = 'somebody' WHERE name = 'other owner'")
		if r := ticktest.Run(t, d); len(r.Parked) != 3 { // the other owner's is left to that one's ticks
			t.Fatalf("parked: %+v", r.Parked)
		}
		d.Clock.Add(5 * time.Minute)
		good := 1
		if d.Engine == "sqlite" {
			good = 2
		}
		r := ticktest.Run(t, d)
		if r.Succeeded != good || r.Failed != 1 {
			t.Fatalf("%+v", r)
		}
		d.Exec(t, fmt.Sprintf("UPDATE %s SET rule = 'every 10m' WHERE job_id = %d", d.Table("schedules"), id("bad rule")))
		if r := ticktest.Run(t, d); r.Made != 0 {
			t.Fatalf("a mended rule fired back: %+v", r)
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != good+1 {
			t.Fatalf("mended: %+v", r)
		}
	})
}

func TestAPauseHoldsAndIsAGap(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "job"}, time.Time{}, store.Author{Reason: "inventory"}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(12 * time.Minute)
		if _, err := d.RunNow(t.Context(), "job", store.Request{}); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Made != 0 || r.Started != 0 {
			t.Fatalf("paused: %+v", r)
		}
		if _, err := d.Resume(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "job"}, false, store.Author{}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(5 * time.Minute)
		r := ticktest.Run(t, d)
		if r.Made != 1 || r.Succeeded != 2 {
			t.Fatalf("resumed: %+v", r)
		}
		gaps, err := d.Gaps(t.Context(), "job", 10)
		if err != nil || len(gaps) == 0 {
			t.Fatalf("%v: %+v", err, gaps)
		}
		for _, g := range gaps {
			if g.Reason != store.Paused {
				t.Errorf("%+v", g)
			}
		}
	})
}

func TestAtomicStepsAndRetries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (run varchar(60), n int)")
		mark := map[string]string{"postgres": "$1, $2", "mariadb": "?, ?", "sqlite": "?1, ?2"}[d.Engine]
		tries, wait := store.Attempts(2), store.Duration(time.Minute)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "atomic", Steps: []store.Step{ticktest.StepWith(true, "INSERT INTO effects VALUES ("+mark+")", "${run_id}", 5)}},
			{Name: "failing", Retry: store.Retry{Attempts: &tries, Backoff: &wait}, Steps: []store.Step{
				{Name: "load", Executor: "sql", Spec: ticktest.Step("", "INSERT INTO nowhere VALUES (1)").Spec, OnFailure: "next"},
				ticktest.Step("tell", "INSERT INTO effects VALUES ('told', 1)"),
			}},
		}})
		for _, name := range []string{"atomic", "failing"} {
			if _, err := d.RunNow(t.Context(), name, store.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		if r := ticktest.Run(t, d); r.Succeeded != 1 || r.Waiting != 1 {
			t.Fatalf("%+v", r)
		}
		if r := ticktest.Run(t, d); r.Started != 0 {
			t.Fatalf("before the back-off is over: %+v", r)
		}
		d.Clock.Add(2 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "failing"})
		if err != nil || len(runs) != 1 {
			t.Fatal(err, runs)
		}
		detail, err := d.Run(t.Context(), runs[0].ID[:28])
		if err != nil || len(detail.Tries) != 3 || detail.Tries[0].Code == "" || detail.Tries[2].State != store.Succeeded {
			t.Fatalf("%v: %+v", err, detail)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2 {
			t.Fatalf("%d effects", n)
		}
	})
}

func TestHistoryIsKeptAsTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "few", Own: ticktest.EveryFiveMinutes(), Keep: store.Keep{Runs: 3}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
			{Name: "young", Own: ticktest.EveryFiveMinutes(), Keep: store.Keep{Age: store.Duration(12 * time.Minute)}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
		}})
		for range 8 {
			ticktest.Run(t, d)
			d.Clock.Add(5 * time.Minute)
		}
		for name, most := range map[string]int{"few": 3, "young": 3} {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: name})
			if err != nil || len(runs) != most {
				t.Errorf("%s: %v, %d runs", name, err, len(runs))
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); n != 6 {
			t.Errorf("%d attempts", n)
		}
	})
}

func TestARunWhoseHolderDiedIsHandedOutAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 2, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		if _, err := d.RunNow(t.Context(), "job", store.Request{}); err != nil {
			t.Fatal(err)
		}
		r := ticktest.New(t, d.Store)
		r.Limit = -1 // decides only
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		dead := store.Holder{Name: "dead", Lease: time.Minute}
		late, err := d.Take(t.Context(), "tick", 1, dead)
		if err != nil || len(late) != 1 {
			t.Fatal(err, late)
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Started != 0 {
			t.Fatalf("overtaken within a heartbeat: %+v", r)
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		err = d.EndStep(t.Context(), &late[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, dead)
		if !errors.Is(err, store.ErrOutdated) {
			t.Fatalf("the late end: %v", err)
		}
		detail, err := d.Run(t.Context(), late[0].Run.ID)
		if err != nil || len(detail.Tries) != 2 || detail.Tries[0].State != store.Lost || detail.Losses != 1 || detail.Fence != 2 {
			t.Fatalf("%v: %+v", err, detail)
		}
		if detail.Tries[1].Attempt != 1 {
			t.Errorf("the delivery that did not come back counts as an attempt: %+v", detail.Tries)
		}
	})
}

func TestASignOfLifeKeepsARunOnSQLite(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
	if _, err := d.RunNow(t.Context(), "job", store.Request{}); err != nil {
		t.Fatal(err)
	}
	r := ticktest.New(t, d.Store)
	r.Limit = -1
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy := store.Holder{Name: "busy", Lease: time.Minute}
	release, err := d.Hold(busy)
	if err != nil {
		t.Fatal(err)
	}
	if tasks, err := d.Take(t.Context(), "tick", 1, busy); err != nil || len(tasks) != 1 {
		t.Fatal(err, tasks)
	}
	d.Clock.Add(time.Hour)
	if r := ticktest.Run(t, d); r.Started != 0 {
		t.Fatalf("taken from a living holder: %+v", r)
	}
	release()
	if r := ticktest.Run(t, d); r.Succeeded != 1 {
		t.Fatalf("not taken from a dead one: %+v", r)
	}
}
