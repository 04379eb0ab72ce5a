package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A step that fails is tried again when its back-off is over, and not before; an atomic step takes
// effect once.
func TestRetryWaitsForItsBackoff(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
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
			ticktest.RunNow(t, d, name, store.Request{})
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

// The pass that backed off reports the wake of the retry, though it decided nothing, and a later pass keeps to it.
func TestRetryIsTheNextRunOfTheReport(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tries, wait, jitter := store.Attempts(2), store.Duration(5*time.Second), 0
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Retry: store.Retry{Attempts: &tries, Backoff: &wait, Jitter: &jitter},
			Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}}}})
		ticktest.Request(t, d, "a")
		ticktest.DecideOnly(t, d)
		tk, _ := repeating(t, d)
		r, err := tk.RunFor(t.Context(), 20*time.Second)
		if err != nil || r.Passes != 2 || r.Waiting != 1 || r.Failed != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// If all allowed connections are in use, a run waits for one, and uses up no attempt.
func TestRetryCountsNoAttemptWithoutAConnection(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e != "postgres" {
			continue // elsewhere only an administrator can limit connections
		}
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			const jobs = 12
			var defs store.Definitions
			for i := range jobs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprintf("job%02d", i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT pg_sleep(0.1)")}})
			}
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			d.Clock.Add(6 * time.Minute)
			var name string
			if err := d.SQL.QueryRow("SELECT current_database()").Scan(&name); err != nil {
				t.Fatal(err)
			}
			d.Exec(t, "ALTER DATABASE "+name+" CONNECTION LIMIT 4")
			var probes sync.WaitGroup // after them, the store has the allowed number of connections
			for range 4 {
				probes.Go(func() { _, _ = d.Probe(t.Context(), "probe", "tick") })
			}
			probes.Wait()
			tk := ticktest.New(t, d.Store)
			tk.Concurrency = jobs
			r, err := tk.Run(t.Context())
			if err != nil || r.Succeeded != jobs {
				t.Errorf("%v: %+v", err, r)
			}
			d.Exec(t, "ALTER DATABASE "+name+" CONNECTION LIMIT -1")
			if n := d.Int(t, "SELECT count(*) FROM dbjobs.attempts"); n != jobs {
				t.Errorf("%d attempts for %d runs", n, jobs)
			}
		})
	}
}

// The next occurrence ends the tries of a step if the policy says so: the step's policy, or the job's if the step has
// none.
func TestRetryUntilTheNextOccurrence(t *testing.T) {
	for name, c := range map[string]struct {
		job, step *store.Attempts
		want      string
	}{
		"of the job":                     {new(store.Attempts(0)), nil, "01-05T08:05 failed; 01-05T08:10 waiting; next 01-05T08:15"},
		"of the step":                    {nil, new(store.Attempts(0)), "01-05T08:05 failed; 01-05T08:10 waiting; next 01-05T08:15"},
		"of the job, and not the step's": {new(store.Attempts(0)), new(store.Attempts(5)), "01-05T08:05 waiting; 01-05T08:10 waiting predecessor; next 01-05T08:15"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				fails := ticktest.Step("", "SELECT * FROM nowhere")
				fails.Retry.Attempts = c.step
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Retry: store.Retry{Attempts: c.job, Backoff: new(store.Duration(time.Hour))},
					Steps: []store.Step{fails}}}})
				ticktest.DecideOnly(t, d)
				var r tick.Report
				for range 2 {
					d.Clock.Add(5 * time.Minute)
					r = ticktest.Run(t, d)
				}
				if ended := r.Failed == 1 && len(r.Runs) == 2 && r.Runs[0].State == store.Failed && strings.HasSuffix(r.Runs[0].Job, "job"); ended != strings.Contains(c.want, "failed") {
					t.Errorf("what the pass reports of the run that it gave up: %+v", r)
				}
				if got := ticktest.Told(t, d, "job"); got != c.want {
					t.Errorf("%s\nwant %s", got, c.want)
				}
			})
		})
	}
}

// A step is tried as it says itself, also where plain SQL has deleted a step before it: positions of steps may have holes.
func TestRetryUntilNextOfAStepAfterADeletedOne(t *testing.T) {
	for name, c := range map[string]struct {
		attempts []store.Attempts // of the steps that stay
		want     string
	}{
		"until next": {[]store.Attempts{0}, "01-05T08:05 failed; 01-05T08:10 waiting; next 01-05T08:15"},
		"a number":   {[]store.Attempts{0, 5}, "01-05T08:05 waiting; 01-05T08:10 waiting predecessor; next 01-05T08:15"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				steps := []store.Step{ticktest.Step("gone", "SELECT 1")}
				for i, n := range c.attempts {
					s := ticktest.Step(fmt.Sprint("stays ", i), "SELECT 1")
					s.Retry.Attempts = &n
					steps = append(steps, s)
				}
				last := &steps[len(steps)-1]
				last.Spec = ticktest.Step("", "SELECT * FROM nowhere").Spec
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Retry: store.Retry{Backoff: new(store.Duration(time.Hour))}, Steps: steps}}})
				ticktest.DecideOnly(t, d)
				d.Exec(t, "DELETE FROM "+d.Table("steps")+" WHERE name = 'gone'")
				for range 2 {
					d.Clock.Add(5 * time.Minute)
					ticktest.Run(t, d)
				}
				if got := ticktest.Told(t, d, "job"); got != c.want {
					t.Errorf("%s\nwant %s", got, c.want)
				}
			})
		})
	}
}

// Tries without a bound end when the next nominal time comes, whose run has tries of its own.
func TestRetryUntilNextEndsThere(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		attempts, wait, share := store.Attempts(0), store.Duration(time.Minute), 0
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO nowhere VALUES (1)")},
			Retry: store.Retry{Attempts: &attempts, Backoff: &wait, MaxBackoff: &wait, Jitter: &share}}}})
		ticktest.Run(t, d)
		for range 12 {
			d.Clock.Add(time.Minute)
			ticktest.Run(t, d)
		}
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{store.Failed, store.Waiting}) {
			t.Fatalf("%v", got)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); n != 8 { // at :05 to :09, and at :10 to :12
			t.Errorf("%d attempts", n)
		}
	})
}

// The end of the tries pauses the job where its policy says so: the pause also holds a run that has waited for that end.
func TestRetryUntilNextPausesBeforeTheNextRun(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), OnError: store.OnErrorPause, Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")},
			Retry: store.Retry{Attempts: new(store.Attempts(0)), Backoff: new(store.Duration(time.Minute))}}}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		r := ticktest.Run(t, d)
		if got := standing(t, d); r.Started != 0 || got != "job failed, job waiting pause, job waiting pause" {
			t.Errorf("%d started: %s", r.Started, got)
		}
	})
}

// A job that is parked decides no next occurrence, so the tries of its run go on: otherwise the run would keep its place in the
// group for ever, and the other jobs of the group would wait for it. The clock goes on within a pass.
func TestRetryUntilNextOfAParkedJob(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			tried := ticktest.Grouped("a", "one", 1)
			tried.Steps, tried.Retry = []store.Step{ticktest.Call("")}, store.Retry{Attempts: new(store.Attempts(0)), Backoff: new(store.Duration(time.Minute))}
			jobs := []store.Job{tried, ticktest.Grouped("b", "one", 0)}
			for i := range jobs {
				jobs[i].Queue = "tick"
			}
			ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "one", MaxRunning: 1}}, Jobs: jobs})
			ticktest.DecideOnly(t, d)
			broken := errors.New("the source is down")
			tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) { return executor.Result{}, broken })
			calls.After = func(storetest.Call) error {
				d.Clock.Add(time.Millisecond)
				return nil
			}
			d.Clock.Add(5 * time.Minute)
			ticktest.Pass(t, tk)
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET missed_grace_ms = 1 WHERE name = 'a'")
			d.Clock.Add(2 * time.Minute)
			ticktest.Pass(t, tk)
			if j, err := d.Job(t.Context(), "a"); err != nil || j.State != store.JobParked {
				t.Fatalf("%v: %s", err, j.State)
			}
			d.Clock.Add(4 * time.Minute) // 08:10 has come
			broken = nil
			for range 2 {
				ticktest.Pass(t, tk)
			}
			if got := standing(t, d); got != "a succeeded, b succeeded" {
				t.Error(got)
			}
		})
	}
}

// Runs that are tried until the next occurrence are not tried after it, though another pass decides that occurrence.
// Otherwise two such runs, each ready again while the other runs, would keep a pass going for ever.
func TestRetryUntilNextKeepsNoPass(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		attempts, backoff, jitter := store.Attempts(0), store.Duration(time.Second), 0
		jobs := []store.Job{lastingJob("a"), lastingJob("b")}
		for i := range jobs {
			jobs[i].Own = &store.Schedule{Rule: "every 10s"}
			jobs[i].Retry = store.Retry{Attempts: &attempts, Backoff: &backoff, MaxBackoff: &backoff, Jitter: &jitter}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		ticktest.Run(t, d)
		d.Clock.Add(10 * time.Second)
		l := &lasting{took: 2 * time.Second, most: 6, fail: func(*store.Run) bool { return true }}
		if r := lastingPass(t, d, l); len(l.done) < 4 || r.Failed != 0 {
			t.Fatalf("%q: %+v", l.done, r)
		}
		l.most, l.fail = 2, nil
		r := lastingPass(t, d, l)
		if failed := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'failed'"); r.Made != 2 || r.Succeeded != 2 || failed != 2 {
			t.Errorf("%d runs given up: %+v", failed, r)
		}
	})
}
