package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

func TestARecreatedPredecessorIsFollowedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{
			{Name: "load", Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
			{Name: "tell", After: "load", Steps: []store.Step{ticktest.Step("", "SELECT 2")}},
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

func TestARunWithOneHandoutThatIsCutExecutesOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 1, Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		executed := 0
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
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
		if got := ticktest.States(t, d, "job"); executed != 1 || !slices.Equal(got, []string{store.Lost}) {
			t.Fatalf("executed %d times: %v", executed, got)
		}
	})
}

func TestEnablingShortlyBeforeTheTimeKeepsTheOccurrence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := ticktest.Hourly("job")
		j.Disabled = true
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		d.Clock.Add(2*time.Hour - 10*time.Second)
		j.Disabled = false
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		d.Clock.Add(20 * time.Second)
		if r := ticktest.Run(t, d); r.Made != 1 || r.Gaps[store.Disabled] != 1 {
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
				Steps: []store.Step{ticktest.Step("", "SELECT 1")}}},
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Clock.Add(24*time.Hour + 5*time.Minute)
		defs.Jobs[0].Disabled, defs.Jobs[0].Schedules = false, []string{"hours"}
		ticktest.Apply(t, d, defs)
		if r := ticktest.Run(t, d); r.Made != 0 || r.Gaps[store.Missed] != 0 || r.Gaps[store.Disabled] != 1 {
			t.Fatalf("fired back: %+v", r)
		}
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Made != 1 {
			t.Fatalf("afterwards: %+v", r)
		}
	})
}

func TestAnExtendedNotAfterFiresNothingBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := ticktest.Hourly("job")
		j.Missed, j.NotAfter = "all", d.Clock.Now().Add(90*time.Minute)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		made := 0
		for range 4 {
			made += ticktest.Run(t, d).Made
			d.Clock.Add(time.Hour)
		}
		d.Clock.Add(10*24*time.Hour + 30*time.Minute)
		j.NotAfter = d.Clock.Now().Add(1000 * time.Hour)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		if r := ticktest.Run(t, d); made != 1 || r.Made != 0 {
			t.Fatalf("%d before, and back: %+v", made, r)
		}
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Made != 1 {
			t.Fatalf("afterwards: %+v", r)
		}
	})
}

// The resume comes when the pause's job was decided for and its pause is not marked yet.
func TestAResumeWithinAPassIsNotSwallowed(t *testing.T) {
	t.Parallel()
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
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
			ticktest.Request(t, d, "job")
			if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "job"}, time.Time{}, store.Author{}); err != nil {
				t.Fatal(err)
			}
			armed = true
			if r := ticktest.Run(t, d); r.Decided == 0 || r.Started != 0 || armed {
				t.Fatalf("paused: %+v", r)
			}
			if r := ticktest.Run(t, d); r.Succeeded != 1 {
				t.Fatalf("resumed: %+v", r)
			}
		})
	}
}

func TestATagPauseThatIsResumedWakesItsJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j, idle := ticktest.Hourly("job"), store.Job{Name: "idle", Tags: []string{"nightly", "etl"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		j.Tags = []string{"etl"}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j, idle, ticktest.Hourly("untagged")}})
		ticktest.Request(t, d, "idle")
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (scope, subject, since) VALUES ('tag', 'etl', %s)", d.Table("pauses"), ticktest.Literal(d, d.Clock.Now())))
		d.Clock.Add(61 * time.Minute)
		if r := ticktest.Run(t, d); r.Made != 1 || r.Succeeded != 1 {
			t.Fatalf("paused: %+v", r)
		}
		d.Exec(t, fmt.Sprintf("UPDATE %s SET resumed_at = %s", d.Table("pauses"), ticktest.Literal(d, d.Clock.Now())))
		if r := ticktest.Run(t, d); r.Made != 0 || r.Succeeded != 1 || r.Gaps[store.Paused] != 1 {
			t.Fatalf("resumed: %+v", r)
		}
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Made != 2 {
			t.Fatalf("an hour later: %+v", r)
		}
	})
}

func TestAUsedUpBudgetIsToldAndNoError(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
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
