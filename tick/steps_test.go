package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// endless is a statement that takes longer than any test.
func endless(d *storetest.DB) string {
	return map[string]string{
		"sqlite":   "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
		"postgres": "SELECT pg_sleep(600)",
		"mariadb":  "DO SLEEP(600)",
	}[d.Engine]
}

// stillRunning counts the endless statements on the server; on SQLite they are in this process and end with their call.
func stillRunning(t testing.TB, d *storetest.DB) int {
	t.Helper()
	return d.Int(t, map[string]string{
		"sqlite":   "SELECT 0",
		"postgres": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() AND query LIKE '%pg_sleep(600)'",
		"mariadb":  "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'DO SLEEP%'",
	}[d.Engine])
}

func TestATimeoutStopsTheStatementOnTheServer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		st := ticktest.Step("slow", endless(d))
		st.Timeout = store.Duration(300 * time.Millisecond)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{st}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Failed != 1 || !strings.Contains(r.Runs[0].Error, "timeout after 300ms") {
			t.Fatalf("%+v", r)
		}
		if n := stillRunning(t, d); n != 0 {
			t.Fatalf("%d statements still run on the server", n)
		}
	})
}

// The timeout of a run is over all of its steps, whatever they would do next.
func TestARunsTimeoutEndsItsSteps(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		tries := store.Attempts(5)
		slow := ticktest.Step("slow", endless(d))
		slow.OnFailure = "next"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Timeout: store.Duration(700 * time.Millisecond), Retry: store.Retry{Attempts: &tries},
			Steps: []store.Step{ticktest.Step("one", "INSERT INTO effects VALUES (1)"), slow, ticktest.Step("three", "INSERT INTO effects VALUES (3)")}}}})
		ticktest.Request(t, d, "job")
		r := ticktest.Run(t, d)
		if r.Failed != 1 || r.Waiting != 0 || !strings.Contains(r.Runs[0].Error, "the run's timeout of 700ms is over") {
			t.Fatalf("%+v", r)
		}
		if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 1 {
			t.Errorf("effects: %d", n)
		}
		if n := stillRunning(t, d); n != 0 {
			t.Fatalf("%d statements still run on the server", n)
		}
	})
}

// It counts from the first delivery, over the waits between the tries and over deliveries.
func TestARunsTimeoutCountsFromItsFirstDelivery(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tries, wait, jitter := store.Attempts(0), store.Duration(4*time.Minute), 0
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "retried", Timeout: store.Duration(10 * time.Minute), Retry: store.Retry{Attempts: &tries, Backoff: &wait, MaxBackoff: &wait, Jitter: &jitter}, Steps: []store.Step{ticktest.Call("")}},
			{Name: "lost", Queue: "others", Timeout: store.Duration(10 * time.Minute), Steps: []store.Step{ticktest.Call("")}},
		}})
		executed := map[string]int{}
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			executed[r.Task.Job.Name]++
			return executor.Result{}, errors.New("no such luck")
		})
		tk.Now, tk.Queues = d.Clock.Now, []string{"others", "tick"}
		ticktest.Request(t, d, "retried")
		ticktest.Request(t, d, "lost")
		pass := func() {
			t.Helper()
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := tk.Work(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tk.Limit = -1
		pass()
		if tasks, err := d.Take(t.Context(), "others", 1, store.Holder{Name: "dead", Lease: time.Minute}); err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		tk.Limit = 0
		for range 4 { // at 0, 4 and 8 minutes; at 12 it would be too late
			pass()
			d.Clock.Add(4 * time.Minute)
		}
		if executed["retried"] != 3 {
			t.Errorf("tried %d times", executed["retried"])
		}
		if executed["lost"] != 1 { // at 4 minutes; and its failure is final
			t.Errorf("delivered %d times", executed["lost"])
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "retried"})
		if err != nil || runs[0].State != store.Failed || !strings.Contains(runs[0].Error, "no such luck; not tried again: the run's timeout of 10m is over by then") {
			t.Fatalf("%v: %+v", err, runs)
		}
		// One that is delivered after its time does not begin.
		ticktest.Request(t, d, "lost")
		tk.Limit = -1
		pass()
		if tasks, err := d.Take(t.Context(), "others", 1, store.Holder{Name: "dead", Lease: time.Minute}); err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		d.Clock.Add(20 * time.Minute)
		tk.Limit = 0
		pass()
		runs, err = d.Runs(t.Context(), store.RunFilter{Job: "lost"})
		if err != nil || executed["lost"] != 1 || runs[0].State != store.Failed || !strings.Contains(runs[0].Error, "the run's timeout of 10m is over") {
			t.Fatalf("executed %d times; %v: %+v", executed["lost"], err, runs)
		}
	})
}

// A run starts only where its timeout fits what is left of the budget; one that never fits is left, and told of.
func TestARunThatDoesNotFitTheBudgetIsLeft(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name string, timeout time.Duration, priority int) store.Job {
			return store.Job{Name: name, Timeout: store.Duration(timeout), Priority: priority, Steps: []store.Step{ticktest.Call("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job("never", time.Hour, 9), job("slow", 0, 8), job("long", 40*time.Second, 7), job("short", 5*time.Second, 6), job("timeless", 0, 5)}})
		for _, name := range []string{"never", "slow", "long", "short", "timeless"} {
			ticktest.Request(t, d, name)
		}
		var executed []string
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			if executed = append(executed, r.Task.Job.Name); r.Task.Job.Name == "slow" {
				d.Clock.Add(35 * time.Second)
			}
			return executor.Result{}, nil
		})
		tk.Now, tk.Budget, tk.Concurrency = d.Clock.Now, time.Minute, 1
		r, err := tk.Run(t.Context())
		if err != nil || !slices.Equal(executed, []string{"slow", "short"}) {
			t.Fatalf("%v: executed %v: %+v", err, executed, r)
		}
		if len(r.TooLong) != 1 || !strings.HasSuffix(r.TooLong[0].Job, "never") || r.TooLong[0].Timeout != store.Duration(time.Hour) || r.CutShort == "" {
			t.Errorf("%+v", r)
		}
		if r, err = tk.Run(t.Context()); err != nil || !slices.Equal(executed[2:], []string{"long", "timeless"}) || len(r.TooLong) != 1 {
			t.Fatalf("%v: executed %v: %+v", err, executed, r)
		}
		tk.Budget = 0
		if r, err = tk.Run(t.Context()); err != nil || r.Succeeded != 1 || len(r.TooLong) != 0 {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// What follows on success and on failure, in all words.
func TestStepsFollowAsTold(t *testing.T) {
	for _, c := range []struct{ success, failure, order, state string }{
		{"next", "fail", "good bad", store.Failed},
		{"next", "next", "good bad last", store.Succeeded},
		{"next", "succeed", "good bad", store.Succeeded},
		{"succeed", "fail", "good", store.Succeeded},
		{"fail", "fail", "good", store.Failed},
		{"step:last", "fail", "good last", store.Succeeded},
		{"next", "step:last", "good bad last", store.Succeeded},
		{"step:good", "fail", strings.TrimSpace(strings.Repeat("good ", 1000)), store.Failed},
		{"next", "step:good", strings.TrimSpace(strings.Repeat("good bad ", 500)), store.Failed},
	} {
		t.Run(c.success+" or "+c.failure, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if strings.Count(c.order, " ") > 500 && d.Engine != "sqlite" {
					t.Skip("what bounds them knows no engine")
				}
				good, bad := ticktest.Call("good"), ticktest.Call("bad")
				good.OnSuccess, bad.OnFailure = c.success, c.failure
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{good, bad, ticktest.Call("last")}}}})
				ticktest.Request(t, d, "job")
				var order []string
				r, err := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
					name := r.Task.StepAt(r.Task.Run.Step).Name
					if order = append(order, name); name == "bad" {
						return executor.Result{}, errors.New("bad")
					}
					return executor.Result{}, nil
				}).Run(t.Context())
				if err != nil || strings.Join(order, " ") != c.order || !slices.Equal(ticktest.States(t, d, "job"), []string{c.state}) {
					t.Fatalf("%v: %d steps: %.80v: %+v", err, len(order), order, r)
				}
				if len(order) >= 1000 && !strings.Contains(r.Runs[0].Error, "its steps go round in a circle: the next would again be step good, after 1000 attempts") {
					t.Errorf("it says %q", r.Runs[0].Error)
				}
			})
		})
	}
}

// A circle that no outcome leaves is refused when it is made.
func TestACircleWithoutAWayOutIsRefused(t *testing.T) {
	type way struct{ success, failure string }
	for name, c := range map[string]struct {
		ways []way
		ok   bool
	}{
		"until it fails":      {[]way{{"step:a", "fail"}}, true},
		"until it succeeds":   {[]way{{"succeed", "step:a"}}, true},
		"to itself":           {[]way{{"step:a", "step:a"}}, false},
		"two":                 {[]way{{"next", "next"}, {"step:a", "step:a"}}, false},
		"one way out":         {[]way{{"next", "next"}, {"step:a", "fail"}}, true},
		"never come to":       {[]way{{"succeed", "fail"}, {"step:b", "step:b"}}, true},
		"come to on failure":  {[]way{{"succeed", "next"}, {"step:b", "step:b"}}, false},
		"over three":          {[]way{{"step:c", "next"}, {"step:a", "step:c"}, {"step:b", "step:a"}}, false},
		"over three, and out": {[]way{{"step:c", "next"}, {"step:a", "step:c"}, {"step:b", "next"}}, true},
	} {
		j := store.Job{Name: "job"}
		for i, w := range c.ways {
			j.Steps = append(j.Steps, store.Step{Name: fmt.Sprintf("%c", 'a'+i), Executor: "sql", Spec: ticktest.Step("", "SELECT 1").Spec, OnSuccess: w.success, OnFailure: w.failure})
		}
		j.Normalize()
		if err := j.Validate(); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "circle") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Plain SQL gives a step what is refused when it is made: the job is parked, and says why.
func TestAStepThatWouldBeTriedForEverParks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", RepeatAfter: store.Duration(time.Hour), Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}}}})
		d.Exec(t, "UPDATE "+d.Table("steps")+" SET retry_attempts = 0")
		r := ticktest.Run(t, d)
		if j, err := d.Job(t.Context(), "job"); err != nil || r.Started != 0 || !strings.Contains(j.Parked, "retry.attempts: until-next has no end with repeat_after") {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// A report is mailed: it has the error that is on record, whatever length an engine's had.
func TestTheReportHasTheErrorOnRecord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		r, err := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, errors.New(strings.Repeat("a statement of megabytes ", 40_000) + "\x00")
		}).Run(t.Context())
		if err != nil || r.Failed != 1 {
			t.Fatalf("%v: failed %d", err, r.Failed)
		}
		detail, err := d.Run(t.Context(), r.Runs[0].ID)
		if err != nil || r.Runs[0].Error != detail.Error || len(detail.Error) > 5000 {
			t.Fatalf("%v: %d bytes are told, %d on record", err, len(r.Runs[0].Error), len(detail.Error))
		}
	})
}

// A run that fails because its step went well says so.
func TestAStepThatFailsTheRunOnSuccess(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		st := ticktest.Step("alarm", "SELECT 1")
		st.OnSuccess = "fail"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{st}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Failed != 1 || r.Runs[0].Error != `step "alarm" has succeeded, and its on_success is fail` {
			t.Fatalf("%+v", r)
		}
	})
}
