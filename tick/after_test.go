package tick_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job runs after each success of the job that it follows.
func TestAfter(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "third", After: []store.After{{Job: "second"}}, Steps: ok},
			{Name: "second", After: []store.After{{Job: "first"}}, Steps: ok},
			{Name: "first", Own: ticktest.EveryFiveMinutes(), Steps: ok},
			{Name: "never", After: []store.After{{Job: "failing"}}, Steps: ok},
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
		_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "first", After: []store.After{{Job: "third"}}, Steps: ok}}}, store.ApplyOptions{})
		if err == nil || !strings.Contains(err.Error(), "circle") {
			t.Fatalf("a circle: %v", err)
		}
	})
}

// A job runs after the ends that it names: a success, a failure, or any.
func TestAfterOtherEnds(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok, bad := []store.Step{ticktest.Nop("")}, []store.Step{ticktest.Step("", "INSERT INTO nowhere VALUES (1)")}
		defs := store.Definitions{Jobs: []store.Job{
			{Name: "good", Own: ticktest.EveryFiveMinutes(), Steps: ok},
			{Name: "bad", Own: ticktest.EveryFiveMinutes(), Steps: bad},
			{Name: "lost", Own: ticktest.EveryFiveMinutes(), MaxDeliveries: 1, Queue: "nobody", Steps: ok},
			{Name: "cancelled", Own: ticktest.EveryFiveMinutes(), Queue: "never", Steps: ok},
		}}
		for _, job := range defs.Jobs {
			for _, on := range store.Ends() {
				defs.Jobs = append(defs.Jobs, store.Job{Name: on + " of " + job.Name, After: []store.After{{Job: job.Name, On: on}}, Steps: ok})
			}
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		if tasks, err := d.Take(t.Context(), "nobody", 1, store.Holder{Name: "another", Lease: time.Minute}); err != nil || len(tasks) != 1 {
			t.Fatal(tasks, err)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "cancelled"})
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		if _, err := d.CancelRun(t.Context(), runs[0].ID, store.Author{}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(4 * time.Minute)
		ticktest.Run(t, d)
		var got []string
		for _, j := range defs.Jobs[4:] {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: j.Name})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				if got = append(got, j.Name); r.State != store.Succeeded || r.IntervalEnd.IsZero() {
					t.Errorf("%s: %s, until %s", j.Name, r.State, r.IntervalEnd)
				}
			}
		}
		want := []string{"success of good", "end of good", "failure of bad", "end of bad", "failure of lost", "end of lost", "end of cancelled"}
		if !slices.Equal(got, want) {
			t.Errorf("there are runs of %q, want those of %q", got, want)
		}
		// The same run again, and another end.
		if changes, err := d.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil || len(changes) > 0 {
			t.Errorf("the same file changes %+v, %v", changes, err)
		}
		defs.Jobs[4].After[0].On = store.OnFailure
		if changes, err := d.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil || len(changes) != 1 {
			t.Errorf("%+v, %v", changes, err)
		}
		if j, err := d.Job(t.Context(), "success of good"); err != nil || store.AfterText(j.After) != "failure of "+defs.Jobs[0].FullName() && !strings.HasSuffix(store.AfterText(j.After), "/good") {
			t.Error(store.AfterText(j.After), err)
		}
	})
}

// A file may reverse the order in which its jobs run after each other.
func TestAfterTurnedRound(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		one, two := store.Job{Name: "one", Steps: ok}, store.Job{Name: "two", After: []store.After{{Job: "one"}}, Steps: ok}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{one, two}})
		one.After, two.After = []store.After{{Job: "two"}}, nil
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{one, two}})
		ticktest.Request(t, d, "two")
		if r := ticktest.Run(t, d); r.Succeeded != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// This is what plain SQL may and may not write into the table. A job that is never done may run after another one.
func TestAfterByPlainSQL(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "one", Steps: ok}, {Name: "two", RemoveDone: true, Own: ticktest.EveryFiveMinutes(), Steps: ok}}})
		ticktest.Run(t, d)
		insert := func(job, after, on string) error {
			_, err := d.SQL.Exec(fmt.Sprintf("INSERT INTO %[1]s (job_id, after_job_id, on_end) SELECT a.id, b.id, '%[5]s' FROM %[2]s a, %[2]s b WHERE a.name = '%[3]s' AND b.name = '%[4]s'",
				d.Table("job_after"), d.Table("jobs"), job, after, on))
			return err
		}
		if insert("one", "one", "success") == nil {
			t.Error("a job may run after itself")
		}
		if insert("two", "one", "whenever") == nil {
			t.Error("a job may run after nobody knows what")
		}
		if err := insert("two", "one", "success"); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(time.Minute) // no hour begins: the row itself says that it is new
		if r := ticktest.Run(t, d); len(r.Parked) != 1 || !strings.Contains(r.Parked[0].Error, "remove_when_done") {
			t.Fatalf("%+v", r)
		}
		d.Exec(t, "DELETE FROM "+d.Table("job_after"))
		d.Clock.Add(time.Hour) // deleted rows leave no mark
		if r := ticktest.Run(t, d); len(r.Parked) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A routine looks at each job above the one that it changes once, and not at each way to it: there may be billions of them. The
// limit of time is far beyond what it takes, and far below what all ways would take.
func TestAfterOfManyWaysByARoutine(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		text, found := map[string]string{"postgres": "SELECT dbjobs.alter_job($1, $2::jsonb)", "mariadb": "CALL dbjobs_alter_job(?, ?, NULL)"}[d.Engine]
		if !found {
			t.Skip("there are no routines")
		}
		defs := store.Definitions{Jobs: []store.Job{{Name: "last", Steps: []store.Step{ticktest.Nop("")}}}}
		var above []store.After
		for layer := range 14 {
			var here []store.After
			for n := range 5 {
				name := fmt.Sprintf("job%d_%d", layer, n)
				defs.Jobs = append(defs.Jobs, store.Job{Name: name, After: above, Steps: []store.Step{ticktest.Nop("")}})
				here = append(here, store.After{Job: name})
			}
			above = here
		}
		ticktest.Apply(t, d, defs)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := d.SQL.ExecContext(ctx, text, "last", `{"after": ["job13_0", "job13_1", "job13_2", "job13_3", "job13_4"]}`); err != nil {
			t.Fatal(err)
		}
		if _, err := d.SQL.ExecContext(ctx, text, "job0_0", `{"after": ["last"]}`); err == nil || !strings.Contains(err.Error(), "in a circle") {
			t.Errorf("a circle: %v", err)
		}
	})
}

// A circle that plain SQL closes parks the job, and a pass over it ends. When the circle is opened at any place, the
// job goes on.
func TestAfterInACircleParks(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Own: ticktest.EveryFiveMinutes(), Steps: ok}, {Name: "second", After: []store.After{{Job: "first"}}, Steps: ok}, {Name: "third", After: []store.After{{Job: "second"}}, Steps: ok}}})
		ticktest.Run(t, d)
		after := func(job, predecessor string) {
			t.Helper()
			id := "(SELECT id FROM " + d.Table("jobs") + " WHERE name = '" + job + "')"
			d.Exec(t, "DELETE FROM "+d.Table("job_after")+" WHERE job_id = "+id)
			if predecessor != "" {
				d.Exec(t, "INSERT INTO "+d.Table("job_after")+" (job_id, after_job_id) SELECT "+id+", id FROM "+d.Table("jobs")+" WHERE name = '"+predecessor+"'")
			}
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
		after("first", "third")
		ticktest.Request(t, d, "first")
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); len(r.Parked) != 1 || !strings.Contains(r.Parked[0].Error, "after: the jobs run after each other in a circle") {
			t.Fatalf("%+v", r)
		}
		state("first 1 true; second 0 false; third 0 false; ")
		after("third", "")
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		state("first 2 false; second 1 false; third 0 false; ")
	})
}

// A job that is disabled or aborted does not run after its predecessor.
func TestAfterOfADisabledJob(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Steps: []store.Step{ticktest.Nop("")}},
			{Name: "aborted", After: []store.After{{Job: "first"}}, Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1)")}},
			{Name: "disabled", After: []store.After{{Job: "first"}}, Disabled: true, Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (2)")}},
			{Name: "follower", After: []store.After{{Job: "first"}}, Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (3)")}},
		}})
		ticktest.Run(t, d)
		if _, err := d.AbortJob(t.Context(), "aborted", false, store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.RunNow(t, d, "first", store.Request{})
		ticktest.Run(t, d)
		ticktest.Run(t, d)
		if n, sum := d.Int(t, "SELECT COUNT(*) FROM effects"), d.Int(t, "SELECT SUM(n) FROM effects"); n != 1 || sum != 3 {
			t.Errorf("%d followers ran, with the sum %d", n, sum)
		}
	})
}

// A predecessor that was removed and made again is followed again.
func TestAfterAJobThatWasMadeAgain(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{
			{Name: "load", Steps: []store.Step{ticktest.Nop("")}},
			{Name: "tell", After: []store.After{{Job: "load"}}, Steps: []store.Step{ticktest.Step("", "SELECT 2")}},
		}}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		// No command removes a job that others run after.
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET removed_at = "+ticktest.Literal(d, d.Clock.Now())+" WHERE name = 'load'")
		ticktest.Apply(t, d, defs)
		ticktest.Request(t, d, "load")
		if r := ticktest.Run(t, d); r.Succeeded != 2 {
			t.Fatalf("%+v", r)
		}
	})
}

// decideFor decides for the jobs of one need only.
func decideFor(t *testing.T, d *storetest.DB, n store.Need) {
	t.Helper()
	decidePage(t, d, pageOf(t, d, n))
}

func pageOf(t *testing.T, d *storetest.DB, n store.Need) *store.Page {
	t.Helper()
	seen, err := d.Unmarked(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	page := store.NewPage(n, d.Clock.Now(), seen)
	if more, err := d.Next(t.Context(), page, 100); err != nil || !more {
		t.Fatalf("%s: %v, %v", n, more, err)
	}
	return page
}

func decidePage(t *testing.T, d *storetest.DB, page *store.Page) {
	t.Helper()
	login, err := d.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pass := &decide.Pass{Login: login, Heartbeat: 30 * time.Second}
	decider := store.Decider{Job: func(now time.Time, c *store.Snapshot) store.Decision { return decide.Job(now, c, pass) }, Groups: decide.Groups}
	if _, err := d.Decide(t.Context(), page, decider); err != nil {
		t.Fatal(err)
	}
}

// A pass stands still after it has read which jobs need a decision, while another one settles the first run and executes the
// second. Its decisions have the instant at which it stood still, and the follower still executes its runs in the order in
// which those of its predecessor ended.
func TestAfterKeepsTheOrderBesideAPassThatStoodStill(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "load", Queue: "others", Overlap: store.OverlapWaitAll, Steps: steps},
			{Name: "tell", Queue: "others", Overlap: store.OverlapWaitAll, After: []store.After{{Job: "load"}}, Steps: steps},
		}})
		decideFor(t, d, store.JobChanged)
		h := store.Holder{Name: "another", Lease: time.Hour}
		var ended []string
		execute := func() {
			t.Helper()
			d.Clock.Add(time.Second)
			tasks, err := d.Take(t.Context(), "others", 1, h)
			if err != nil || len(tasks) != 1 || tasks[0].Job.Name != "load" {
				t.Fatalf("%v: %+v", err, tasks)
			}
			d.Clock.Add(time.Second)
			if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
				t.Fatal(err)
			}
			ended = append(ended, store.OccurrenceAfter(&tasks[0].Run))
		}
		for range 2 {
			ticktest.Request(t, d, "load")
			d.Clock.Add(time.Second)
		}
		decideFor(t, d, store.RunWakes)
		execute()
		still := pageOf(t, d, store.RunWakes)
		d.Clock.Add(3 * time.Minute)
		decideFor(t, d, store.RunWakes) // settles the first run, and queues the second
		execute()
		decidePage(t, d, still)
		decideFor(t, d, store.RunWakes)
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "tell"})
		if err != nil || len(runs) != 2 {
			t.Fatalf("%v: %+v", err, runs)
		}
		for _, r := range runs {
			if want := slices.Index(ended, r.Occurrence) + 1; r.Number != int64(want) {
				t.Errorf("%s is #%d, want #%d", r.Occurrence, r.Number, want)
			}
		}
	})
}

// A job wakes when its predecessor is settled, whichever need the decision was for.
func TestAfterWakesWhicheverNeedSettlesThePredecessor(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		needs := []store.Need{store.JobChanged, store.PauseChanged, store.RunWakes, store.Due}
		steps := []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
		var defs store.Definitions
		for _, n := range needs {
			defs.Jobs = append(defs.Jobs,
				store.Job{Name: n.String(), Queue: "others", Own: &store.Schedule{Rule: "every 1h"}, Steps: steps},
				store.Job{Name: "after " + n.String(), Queue: "others", After: []store.After{{Job: n.String()}}, Steps: steps})
		}
		change := func() {
			ticktest.Apply(t, d, defs)
		}
		change()
		decideFor(t, d, store.JobChanged)
		h := store.Holder{Name: "another", Lease: time.Minute}
		for _, n := range needs {
			ticktest.RunNow(t, d, n.String(), store.Request{})
			decideFor(t, d, store.RunWakes)
			tasks, err := d.Take(t.Context(), "others", 10, h)
			k := slices.IndexFunc(tasks, func(task store.Task) bool { return task.Job.Name == n.String() })
			if err != nil || k < 0 {
				t.Fatalf("%s: %v, %+v", n, err, tasks)
			}
			if err := d.EndStep(t.Context(), &tasks[k], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
				t.Fatal(err)
			}
			switch n {
			case store.JobChanged:
				defs.Jobs[0].Jitter = store.Duration(time.Second)
				change()
			case store.PauseChanged:
				ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: n.String()}, time.Time{})
			case store.Due:
				d.Clock.Add(time.Hour)
			}
			decideFor(t, d, n)
			if runs, err := d.Runs(t.Context(), store.RunFilter{Job: "after " + n.String()}); err != nil || len(runs) != 1 {
				t.Errorf("%s: %v, %d runs of the follower", n, err, len(runs))
			}
		}
	})
}
