package tick_test

import (
	"context"
	"errors"
	"fmt"
	"os"
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
		"sqlite":   storetest.Resting,
		"postgres": "SELECT pg_sleep(600)",
		"mariadb":  "DO SLEEP(600)",
	}[d.Engine]
}

// stillRunning counts the endless statements on the server; on SQLite they are in this process and end with their call.
// A server that has been asked to end a statement may take a moment, but not the ten minutes of the statement.
func stillRunning(t testing.TB, d *storetest.DB) (n int) {
	t.Helper()
	for range 200 {
		n = d.Int(t, map[string]string{
			"sqlite":   "SELECT 0",
			"postgres": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() AND query LIKE '%pg_sleep(600)'",
			"mariadb":  "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'DO SLEEP%'",
		}[d.Engine])
		if n == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return n
}

// A timeout also ends the statement on the server, and not only the wait for it.
func TestTimeoutStopsTheStatementOnTheServer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		st := ticktest.Step("slow", endless(d))
		st.Timeout = store.Duration(3 * time.Second) // long enough for the session to be opened on a busy machine
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{st}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Failed != 1 || !strings.Contains(r.Runs[0].Error, "timeout after 3s") {
			t.Fatalf("%+v", r)
		}
		if n := stillRunning(t, d); n != 0 {
			t.Fatalf("%d statements still run on the server", n)
		}
	})
}

// A connection that has the deadline of the step may end before the step's context does. That is the timeout, too.
func TestTimeoutWhereTheConnectionEndsFirst(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		st := ticktest.Call("")
		st.Timeout = store.Duration(20 * time.Millisecond)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{st}}}})
		first := 0
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			deadline, _ := ctx.Deadline()
			for time.Now().Before(deadline) { // without a pause, as a connection's own timer may be the earlier one
			}
			if ctx.Err() == nil {
				first++
			}
			return executor.Result{}, os.ErrDeadlineExceeded
		})
		tk.Now = d.Clock.Now
		for try := 0; try < 50 && first < 1; try++ {
			ticktest.Request(t, d, "job")
			if r, err := tk.Run(t.Context()); err != nil || r.Failed != 1 || !strings.Contains(r.Runs[0].Error, "timeout after 20ms") {
				t.Fatalf("try %d: %v: %+v", try, err, r)
			}
		}
		if first == 0 {
			t.Error("the context was over first each time: nothing was shown")
		}
	})
}

// The timeout of a run covers all of its steps, whatever they would do next. A busy server may need all of a short one
// for the first step: then a longer one is tried.
func TestTimeoutOfARunEndsItsSteps(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		tries := store.Attempts(5)
		slow := ticktest.Step("slow", endless(d))
		slow.OnFailure = "next"
		for _, limit := range []time.Duration{700 * time.Millisecond, 5 * time.Second, time.Minute} {
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Timeout: store.Duration(limit), Retry: store.Retry{Attempts: &tries},
				Steps: []store.Step{ticktest.Step("one", "INSERT INTO effects VALUES (1)"), slow, ticktest.Step("three", "INSERT INTO effects VALUES (3)")}}}})
			d.Exec(t, "DELETE FROM effects")
			ticktest.Request(t, d, "job")
			r := ticktest.Run(t, d)
			if want := fmt.Sprintf("the run's timeout of %s is over", store.Duration(limit)); r.Failed != 1 || r.Waiting != 0 || !strings.Contains(r.Runs[0].Error, want) {
				t.Fatalf("%+v", r)
			}
			if n := stillRunning(t, d); n != 0 {
				t.Fatalf("%d statements still run on the server", n)
			}
			if len(ticktest.LastRun(t, d, "job").Tries) > 1 {
				break
			}
		}
		if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 1 {
			t.Errorf("effects: %d", n)
		}
	})
}

// It counts from the first delivery, and includes the waits between tries and later deliveries.
func TestTimeoutOfARunCountsFromItsFirstDelivery(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
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
			ticktest.Pass(t, tk)
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
		if executed["lost"] != 1 { // at 4 minutes; its failure is final
			t.Errorf("delivered %d times", executed["lost"])
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "retried"})
		if err != nil || runs[0].State != store.Failed || !strings.Contains(runs[0].Error, "no such luck; not tried again: the run's timeout of 10m would be over") {
			t.Fatalf("%v: %+v", err, runs)
		}
		// A run that is delivered after its timeout does not begin.
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

// The timeout of a run leaves no time for another try of a step, and its on_failure is followed as after the last one.
func TestTimeoutOfARunThatLeavesNoTry(t *testing.T) {
	for follows, want := range map[string]string{"step:alert": "fetch fetch alert failed", store.StepSucceed: "fetch fetch succeeded", store.StepFail: "fetch fetch failed"} {
		t.Run(follows, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				tries, wait, jitter := store.Attempts(5), store.Duration(6*time.Minute), 0
				fetch, merge, alert := ticktest.Call("fetch"), ticktest.Call("merge"), ticktest.Call("alert")
				fetch.OnFailure, merge.OnSuccess, alert.OnSuccess = follows, store.StepSucceed, store.StepFail
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Timeout: store.Duration(10 * time.Minute),
					Retry: store.Retry{Attempts: &tries, Backoff: &wait, MaxBackoff: &wait, Jitter: &jitter}, Steps: []store.Step{fetch, merge, alert}}}})
				var got []string
				tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
					step := r.Task.StepAt(r.Task.Run.Step).Name
					if got = append(got, step); step == "fetch" {
						return executor.Result{}, errors.New("no such luck")
					}
					return executor.Result{}, nil
				})
				tk.Now = d.Clock.Now
				ticktest.Request(t, d, "job")
				for range 2 { // at 0 and 6 minutes; at 12 it would be too late
					ticktest.Pass(t, tk)
					d.Clock.Add(6 * time.Minute)
				}
				r := ticktest.LastRun(t, d, "job")
				if got = append(got, r.State); strings.Join(got, " ") != want {
					t.Errorf("%q: %s", got, r.Error)
				}
				if said := "no such luck; not tried again: the run's timeout of 10m would be over"; !strings.Contains(r.Tries[1].Error, said) {
					t.Errorf("%s, want %s", r.Tries[1].Error, said)
				}
			})
		})
	}
}
