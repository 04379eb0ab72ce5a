package tick_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// doing is an executor that does what the test wants; its steps are those of call.
type doing func(context.Context, executor.Request) (executor.Result, error)

func (f doing) Execute(ctx context.Context, r executor.Request) (executor.Result, error) {
	return f(ctx, r)
}

func call(name string) store.Step {
	return store.Step{Name: name, Executor: "doing", Spec: json.RawMessage("{}")}
}

// newDoing is a tick that has the executor beside that of SQL.
func newDoing(t testing.TB, d *storetest.DB, f doing) *tick.Tick {
	t.Helper()
	tk := newTick(t, d.Store)
	tk.Executors["doing"] = f
	return tk
}

// request plans what there is, executes nothing, and asks for a run of the job.
func request(t testing.TB, d *storetest.DB, job string) {
	t.Helper()
	tk := newTick(t, d.Store)
	tk.Limit = -1
	if _, err := tk.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.RunNow(t.Context(), job, store.Request{}); err != nil {
		t.Fatal(err)
	}
}

// states are those of the job's runs, oldest first.
func states(t testing.TB, d *storetest.DB, job string) []string {
	t.Helper()
	runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, 0, len(runs))
	for _, r := range runs {
		list = append(list, r.State)
	}
	slices.Reverse(list)
	return list
}

// literal is an instant as plain SQL has it.
func literal(d *storetest.DB, at time.Time) string {
	if d.Engine == "mariadb" {
		return at.UTC().Format("'2006-01-02 15:04:05.000000'")
	}
	return at.UTC().Format("'2006-01-02T15:04:05.000000Z'")
}

func hourly(name string) store.Job {
	return store.Job{Name: name, Own: &store.Schedule{Rule: "every 1h"}, Steps: []store.Step{step("", "SELECT 1")}}
}

func TestARecreatedPredecessorIsFollowedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{
			{Name: "load", Steps: []store.Step{step("", "SELECT 1")}},
			{Name: "tell", After: "load", Steps: []store.Step{step("", "SELECT 2")}},
		}}
		apply(t, d, defs)
		run(t, d)
		// No command removes a job that others run after.
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET removed_at = "+literal(d, d.Clock.Now())+" WHERE name = 'load'")
		apply(t, d, defs)
		request(t, d, "load")
		if r := run(t, d); r.Succeeded != 2 {
			t.Fatalf("%+v", r)
		}
	})
}

func TestARunWithOneHandoutThatIsCutExecutesOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 1, Steps: []store.Step{call("")}}}})
		request(t, d, "job")
		executed := 0
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := newDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
				executed++
				cancel()
				<-ctx.Done()
				return executor.Result{}, ctx.Err()
			}).Run(ctx)
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			d.Clock.Add(5 * time.Minute)
		}
		if got := states(t, d, "job"); executed != 1 || !slices.Equal(got, []string{store.Lost}) {
			t.Fatalf("executed %d times: %v", executed, got)
		}
	})
}

func TestEnablingShortlyBeforeTheTimeKeepsTheOccurrence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := hourly("job")
		j.Disabled = true
		apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		run(t, d)
		d.Clock.Add(2*time.Hour - 10*time.Second)
		j.Disabled = false
		apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		d.Clock.Add(20 * time.Second)
		if r := run(t, d); r.Made != 1 || r.Gaps[store.Disabled] != 1 {
			t.Fatalf("%+v", r)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 1 || !runs[0].ScheduledFor.Equal(time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)) {
			t.Fatalf("%v: %+v", err, runs)
		}
	})
}

func TestEnablingAndUnlinkingAtOnceFiresNothingBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{
			Schedules: []store.Schedule{{Name: "hours", Rule: "every 1h"}, {Name: "other", Rule: "every 2h"}},
			Jobs: []store.Job{{Name: "job", Missed: "all", Disabled: true, Schedules: []string{"hours", "other"},
				Steps: []store.Step{step("", "SELECT 1")}}},
		}
		apply(t, d, defs)
		run(t, d)
		d.Clock.Add(24*time.Hour + 5*time.Minute)
		defs.Jobs[0].Disabled, defs.Jobs[0].Schedules = false, []string{"hours"}
		apply(t, d, defs)
		if r := run(t, d); r.Made != 0 || r.Gaps[store.Missed] != 0 || r.Gaps[store.Disabled] != 1 {
			t.Fatalf("fired back: %+v", r)
		}
		d.Clock.Add(time.Hour)
		if r := run(t, d); r.Made != 1 {
			t.Fatalf("afterwards: %+v", r)
		}
	})
}

func TestAnExtendedNotAfterFiresNothingBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := hourly("job")
		j.Missed, j.NotAfter = "all", d.Clock.Now().Add(90*time.Minute)
		apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		made := 0
		for range 4 {
			made += run(t, d).Made
			d.Clock.Add(time.Hour)
		}
		d.Clock.Add(10*24*time.Hour + 30*time.Minute)
		j.NotAfter = d.Clock.Now().Add(1000 * time.Hour)
		apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		if r := run(t, d); made != 1 || r.Made != 0 {
			t.Fatalf("%d before, and back: %+v", made, r)
		}
		d.Clock.Add(time.Hour)
		if r := run(t, d); r.Made != 1 {
			t.Fatalf("afterwards: %+v", r)
		}
	})
}

// The resume comes when the pause's job was decided for and its pause is not marked yet.
func TestAResumeWithinAPassIsNotSwallowed(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var d *storetest.DB
			armed := false
			calls.After = func(c storetest.Call) error {
				if !armed || c.Kind != storetest.Commit {
					return nil
				}
				armed = false
				d.Clock.Add(time.Second)
				_, err := d.Resume(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "job"}, false, store.Author{})
				return err
			}
			d = storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{step("", "SELECT 1")}}}})
			request(t, d, "job")
			if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "job"}, time.Time{}, store.Author{}); err != nil {
				t.Fatal(err)
			}
			armed = true
			if r := run(t, d); r.Decided == 0 || r.Started != 0 || armed {
				t.Fatalf("paused: %+v", r)
			}
			if r := run(t, d); r.Succeeded != 1 {
				t.Fatalf("resumed: %+v", r)
			}
		})
	}
}

func TestATagPauseThatIsResumedWakesItsJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j, idle := hourly("job"), store.Job{Name: "idle", Tags: []string{"nightly", "etl"}, Steps: []store.Step{step("", "SELECT 1")}}
		j.Tags = []string{"etl"}
		apply(t, d, store.Definitions{Jobs: []store.Job{j, idle, hourly("untagged")}})
		request(t, d, "idle")
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (scope, subject, since) VALUES ('tag', 'etl', %s)", d.Table("pauses"), literal(d, d.Clock.Now())))
		d.Clock.Add(61 * time.Minute)
		if r := run(t, d); r.Made != 1 || r.Succeeded != 1 {
			t.Fatalf("paused: %+v", r)
		}
		d.Exec(t, fmt.Sprintf("UPDATE %s SET resumed_at = %s", d.Table("pauses"), literal(d, d.Clock.Now())))
		if r := run(t, d); r.Made != 0 || r.Succeeded != 1 || r.Gaps[store.Paused] != 1 {
			t.Fatalf("resumed: %+v", r)
		}
		d.Clock.Add(time.Hour)
		if r := run(t, d); r.Made != 2 {
			t.Fatalf("an hour later: %+v", r)
		}
	})
}

func TestAUsedUpBudgetIsToldAndNoError(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{call("")}}}})
		request(t, d, "job")
		tk := newDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{}, ctx.Err()
		})
		tk.Budget = time.Second
		r, err := tk.Run(t.Context())
		if err != nil || r.CutShort == "" || r.Failed != 0 || r.Waiting != r.Started {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

func TestUntilNextEndsAtTheNextOccurrence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		attempts, wait, share := store.Attempts(0), store.Duration(time.Minute), 0
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: everyFiveMinutes(), Steps: []store.Step{step("", "INSERT INTO nowhere VALUES (1)")},
			Retry: store.Retry{Attempts: &attempts, Backoff: &wait, MaxBackoff: &wait, Jitter: &share}}}})
		run(t, d)
		for range 12 {
			d.Clock.Add(time.Minute)
			run(t, d)
		}
		if got := states(t, d, "job"); !slices.Equal(got, []string{store.Failed, store.Waiting}) {
			t.Fatalf("%v", got)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); n != 8 { // at :05 to :09, and at :10 to :12
			t.Errorf("%d attempts", n)
		}
	})
}
