package tick_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A request for a later time still waits for that time, whether it was made before the clock was ahead, meanwhile or after it.
func TestReplanKeepsRequestsForALaterTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("job")}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		at := right.AddDate(0, 0, 7)
		ask := func(at time.Time) {
			t.Helper()
			ticktest.RunNow(t, d, "job", store.Request{At: at})
		}
		ask(at)
		d.Clock.Set(right.AddDate(0, 0, 1))
		decideAnd(t, d)
		ask(at.Add(time.Minute))
		ask(time.Time{})
		d.Clock.Set(right.Add(time.Minute))
		ask(at.Add(2 * time.Minute))
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		for range 3 { // the run that was made ahead, and the request for no time
			ticktest.Run(t, d)
		}
		if got := ticktest.States(t, d, "job"); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"succeeded", "succeeded", "waiting", "waiting", "waiting"}) {
			t.Fatal(got)
		}
		d.Clock.Set(at.Add(2 * time.Minute))
		for range 5 {
			ticktest.Run(t, d)
		}
		if got := ticktest.States(t, d, "job"); slices.Contains(got, "waiting") {
			t.Fatal(got)
		}
	})
}

// Times to come that somebody has skipped do not run after a replan either, although the wrong clock has let them come.
func TestReplanKeepsSkips(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
		ticktest.DecideOnly(t, d)
		if _, err := tick.SkipNext(t.Context(), d.Store, "job", "", 3, store.Author{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		right := d.Clock.Now()
		d.Clock.Set(right.Add(150 * time.Minute)) // two of them come
		decideAnd(t, d)
		d.Clock.Set(right.Add(time.Minute))
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{By: "bob"}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		v, err := d.Job(t.Context(), "job")
		if err != nil || len(v.Skips) != 3 || !v.Skips[0].At.Equal(right.Add(time.Hour)) || v.Skips[0].By != "bob" || v.Skips[2].By != "ada" {
			t.Fatalf("%v: %+v", err, v.Skips)
		}
		for hour := range 5 {
			d.Clock.Set(right.Add(time.Duration(hour) * time.Hour))
			ticktest.Run(t, d)
		}
		if got := yearly(t, d, "job"); got != "2026-01-05T12:00 succeeded; "+
			"skipped (2026-01-05T08:59:59.999999, 2026-01-05T09:00:00]; skipped (2026-01-05T09:59:59.999999, 2026-01-05T10:00:00]; "+
			"skipped (2026-01-05T10:59:59.999999, 2026-01-05T11:00:00]; next 2026-01-05T13:00" {
			t.Error(got)
		}
	})
}

// A run that began while the clock was ahead, and whose process has died or which waits for another try, does not wait until
// that time, although no pass has decided anything about its job meanwhile.
func TestReplanOfRunsThatBeganAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("dead"), fiveMinutely("tried"), fiveMinutely("asked")}})
		ticktest.DecideOnly(t, d)
		for _, name := range []string{"dead", "tried"} {
			ticktest.RunNow(t, d, name, store.Request{})
		}
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(0, 0, 1))
		h := store.Holder{Name: "h", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "tick", 2, h)
		if err != nil || len(tasks) != 2 {
			t.Fatal(err, tasks)
		}
		for i := range tasks {
			if tasks[i].Job.Name == "tried" {
				if err := d.EndStep(t.Context(), &tasks[i], store.StepEnd{State: store.Failed, Retry: true, Backoff: time.Minute}, h); err != nil {
					t.Fatal(err)
				}
			}
		}
		ticktest.RunNow(t, d, "asked", store.Request{})
		d.Clock.Set(right.Add(time.Minute))
		if r := decideAnd(t, d); r.Made != 0 {
			t.Fatalf("%+v", r)
		}
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 3 {
			t.Fatalf("%+v, %v", n, err)
		}
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 0 {
			t.Fatalf("again: %+v, %v", n, err)
		}
		d.Clock.Add(time.Minute) // a lease that has just ended might still be extended
		for range 2 {
			ticktest.Run(t, d)
		}
		for _, name := range []string{"dead", "tried", "asked"} {
			if got := ticktest.States(t, d, name); !slices.Equal(got, []string{"succeeded"}) {
				t.Errorf("%s: %v", name, got)
			}
		}
		// The job was not decided ahead: its next time is not lost.
		d.Clock.Set(right.Add(5 * time.Minute))
		if r := ticktest.Run(t, d); r.Made != 3 || r.Gaps[store.Missed] != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A run that was tried by the wrong clock, and again by the right one, waits for its next try by the right one.
func TestReplanLeavesAWaitOfTheRightClock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "tried", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "tried")
		ticktest.DecideOnly(t, d)
		h, right := store.Holder{Name: "h", Lease: time.Minute}, d.Clock.Now()
		try := func(want int) {
			t.Helper()
			tasks, err := d.Take(t.Context(), "tick", 1, h)
			if err != nil || len(tasks) != 1 {
				t.Fatal(err, tasks)
			}
			if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Failed, Retry: true, Backoff: time.Hour}, h); err != nil {
				t.Fatal(err)
			}
			d.Clock.Set(right.Add(time.Minute))
			if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != want {
				t.Fatalf("%+v, %v, want %d", n, err, want)
			}
			decideAnd(t, d)
		}
		d.Clock.Add(24 * time.Hour)
		try(1)
		try(0)
	})
}

// fiveMinutely is a job whose runs a tick executes.
func fiveMinutely(name string) store.Job {
	return store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}
}

// A pause that was ended while the clock was ahead has ended: its end does not hold the job until that instant.
func TestReplanOfPausesThatEndedAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("job")}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		subjects := []store.Subject{{Scope: store.ScopeAll}, {Scope: store.ScopeJob, Name: "job"}}
		for _, on := range subjects {
			ticktest.Pause(t, d, on, time.Time{})
		}
		d.Clock.Set(right.AddDate(1, 0, 0))
		ticktest.DecideOnly(t, d) // while everything is frozen, it decides nothing
		for _, on := range subjects {
			ticktest.Resume(t, d, on, false)
		}
		d.Clock.Set(right.Add(time.Minute))
		if r := decideAnd(t, d); r.Ahead != 1 || !r.AheadUntil.Equal(right.AddDate(1, 0, 0)) {
			t.Errorf("%d jobs sleep until %v", r.Ahead, r.AheadUntil)
		}
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{By: "ada"}); err != nil || n.Jobs != 0 || len(n.Pauses) != 2 {
			t.Fatalf("%+v, %v", n, err)
		}
		changes, err := d.Changes(t.Context(), "pause", "", 1)
		if err != nil || len(changes) != 1 || changes[0].Action != "replan" || changes[0].By != "ada" {
			t.Errorf("%v, %+v", err, changes)
		}
		d.Clock.Set(right.Add(10 * time.Minute))
		if r := ticktest.Run(t, d); r.Succeeded != 1 || r.Ahead != 0 {
			t.Errorf("%+v", r)
		}
		if got := yearly(t, d, "job"); got != "2026-01-05T08:10 succeeded; missed (2026-01-05T08:00:59.999999, 2026-01-05T08:09:59.999999]; next 2026-01-05T08:15" {
			t.Error(got)
		}
	})
}

// A pause that began while the clock was ahead holds the times from the correction on: they become its gap, and no runs that
// wait for its end.
func TestReplanOfPausesThatBeganAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		all, one := store.Subject{Scope: store.ScopeAll}, store.Subject{Scope: store.ScopeJob, Name: "one"}
		var jobs []store.Job
		for _, name := range []string{"one", "other"} {
			j := fiveMinutely(name)
			j.Overlap, j.Missed, j.MissedLimit = store.OverlapWaitAll, "all", 10
			jobs = append(jobs, j)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		ticktest.Pause(t, d, one, time.Time{})
		d.Clock.Set(right)
		if n, err := d.Replan(t.Context(), "other", decide.Start, store.Author{}); err != nil || n.Jobs+len(n.Pauses) != 0 {
			t.Fatalf("of the other job: %+v, %v", n, err)
		}
		if n, err := d.Replan(t.Context(), "one", decide.Start, store.Author{}); err != nil || n.Jobs != 0 || len(n.Pauses) != 1 {
			t.Fatalf("of the job: %+v, %v", n, err)
		}
		for range 3 {
			d.Clock.Add(5 * time.Minute)
			ticktest.DecideOnly(t, d)
		}
		ticktest.Resume(t, d, one, false)
		d.Clock.Add(time.Minute)
		ticktest.DecideOnly(t, d)
		if got := yearly(t, d, "one"); got != "2026-01-05T08:15 queued; paused (2026-01-05T08:00:00, 2026-01-05T08:14:59.999999]; next 2026-01-05T08:20" {
			t.Error(got)
		}

		right = d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		ticktest.Pause(t, d, all, time.Time{})
		d.Clock.Set(right)
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 0 || len(n.Pauses) != 1 {
			t.Fatalf("of all: %+v, %v", n, err)
		}
		d.Clock.Add(10 * time.Minute)
		ticktest.DecideOnly(t, d)
		ticktest.Resume(t, d, all, false)
		d.Clock.Add(time.Minute)
		ticktest.DecideOnly(t, d)
		if got := yearly(t, d, "other"); got != "2026-01-05T08:05 queued; 2026-01-05T08:10 waiting predecessor; 2026-01-05T08:15 waiting predecessor; "+
			"paused (2026-01-05T08:15:59.999999, 2026-01-05T08:25:59.999999]; next 2026-01-05T08:30" {
			t.Error(got)
		}
	})
}

// A pause for a length that began while the clock was ahead holds its jobs from the correction on for that length.
func TestReplanOfPausesThatWouldEndAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("job")}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		ahead := right.AddDate(1, 0, 0)
		d.Clock.Set(ahead)
		for _, on := range []store.Subject{{Scope: store.ScopeAll}, {Scope: store.ScopeJob, Name: "job"}} {
			if _, err := d.PauseUntil(t.Context(), on, ahead.Add(2*time.Hour), store.UntilLength, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		d.Clock.Set(right.Add(time.Minute))
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 0 || len(n.Pauses) != 2 {
			t.Fatalf("%+v, %v", n, err)
		}
		for _, want := range []int{0, 1} {
			d.Clock.Add(119 * time.Minute)
			if r := ticktest.Run(t, d); r.Succeeded != want {
				t.Errorf("at %v: %+v", d.Clock.Now(), r)
			}
			d.Clock.Add(6 * time.Minute)
		}
	})
}

// What was created while the clock was ahead counts from the correction, whether a pass has planned it or not, and by which clock.
func TestReplanOfWhatWasCreatedAhead(t *testing.T) {
	for _, planned := range []string{"not", "ahead", "since"} {
		t.Run("planned "+planned, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				job := func(name, rule string, with store.Job) store.Job {
					with.Name, with.Steps = name, []store.Step{ticktest.Nop("")}
					if rule != "" {
						with.Own = &store.Schedule{Rule: rule}
					}
					return with
				}
				jobs := []store.Job{job("interval", "I 0:05", store.Job{}), job("rrule", "RRULE:FREQ=MINUTELY;INTERVAL=5", store.Job{}),
					job("again", "", store.Job{RepeatAfter: store.Duration(10 * time.Minute)}), job("shared", "", store.Job{Schedules: []string{"often"}}),
					job("start", "every 5m", store.Job{Start: "daily at 08:30"})}
				right := d.Clock.Now()
				d.Clock.Set(right.AddDate(1, 0, 0).Add(123 * time.Millisecond)) // nominal times have whole seconds
				ticktest.DecideOnly(t, d)
				defs := store.Definitions{Jobs: jobs, Schedules: []store.Schedule{{Name: "often", Rule: "I 0:05"}}}
				if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{Start: decide.Start}); err != nil {
					t.Fatal(err)
				}
				if planned == "ahead" {
					ticktest.DecideOnly(t, d)
				}
				d.Clock.Set(right)
				if planned != "not" {
					if r := decideAnd(t, d); r.Ahead != len(jobs) || r.AheadUntil.Before(right.AddDate(1, 0, 0)) {
						t.Errorf("%d jobs sleep until %v", r.Ahead, r.AheadUntil)
					}
				}
				if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != len(jobs) {
					t.Fatalf("%+v, %v", n, err)
				}
				if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 0 {
					t.Fatalf("again: %+v, %v", n, err)
				}
				for range 4 {
					ticktest.Run(t, d)
					d.Clock.Add(7 * time.Minute)
				}
				for _, j := range jobs {
					if got := ticktest.States(t, d, j.Name); (len(got) > 0) == (j.Name == "start") {
						t.Errorf("%s: %v", j.Name, got)
					}
				}
				d.Clock.Add(7 * time.Minute)
				ticktest.Run(t, d)
				if got := ticktest.States(t, d, "start"); len(got) != 1 {
					t.Errorf("start: %v", got)
				}
			})
		})
	}
}

// The timeout of a run that was taken by the wrong clock counts from the correction, at the latest.
func TestReplanOfRunsWithATimeout(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "tried", Timeout: store.Duration(time.Hour), Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "tried")
		ticktest.DecideOnly(t, d)
		h, right := store.Holder{Name: "h", Lease: time.Minute}, d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Failed, Retry: true, Backoff: time.Minute}, h); err != nil {
			t.Fatal(err)
		}
		d.Clock.Set(right.Add(time.Minute))
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			if end, ok := ctx.Deadline(); !ok || end.After(time.Now().Add(time.Hour)) {
				t.Errorf("it may execute until %v", end)
			}
			return executor.Result{}, nil
		})
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 {
			t.Errorf("%+v", r)
		}
		if run := ticktest.LastRun(t, d, "tried"); !run.StartedAt.Equal(right.Add(time.Minute)) {
			t.Errorf("it started at %v", run.StartedAt)
		}
	})
}
