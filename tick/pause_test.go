package tick_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

func pause(t testing.TB, d *storetest.DB, scope, name string, until time.Time) {
	t.Helper()
	if _, err := d.Pause(t.Context(), store.Subject{Scope: scope, Name: name}, until, store.Author{By: "ada", Reason: "inventory"}); err != nil {
		t.Fatal(err)
	}
}

func resume(t testing.TB, d *storetest.DB, scope, name string, missed bool) {
	t.Helper()
	if _, err := d.Resume(t.Context(), store.Subject{Scope: scope, Name: name}, missed, store.Author{By: "bob"}); err != nil {
		t.Fatal(err)
	}
}

// everyMinute ticks as a trigger does.
func everyMinute(t testing.TB, d *storetest.DB, minutes int) (made int) {
	t.Helper()
	for range minutes {
		d.Clock.Add(time.Minute)
		made += ticktest.Run(t, d).Made
	}
	return made
}

// Every scope, with the ticks of a trigger that goes on all the while: what fell due is a gap, or with missed it runs.
func TestAPauseOfEachScope(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		login, err := d.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "fives", Rule: "every 5m"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"fives"}, Tags: []string{"etl"}, Missed: "all", Overlap: "wait-all",
				Steps: []store.Step{ticktest.Step("", "SELECT 1")}}},
		})
		everyMinute(t, d, 4)
		subjects := []store.Subject{{Scope: store.ScopeJob, Name: "job"}, {Scope: store.ScopeSchedule, Name: "fives"},
			{Scope: store.ScopeTag, Name: "etl"}, {Scope: store.ScopeAll}}
		if login != "" {
			subjects = append(subjects, store.Subject{Scope: store.ScopeOwner, Name: login})
		}
		for _, on := range subjects {
			for _, missed := range []bool{false, true} {
				pause(t, d, on.Scope, on.Name, time.Time{})
				j, err := d.Job(t.Context(), "job")
				if err != nil || j.State != "paused" || j.Paused.By != "ada" || j.Paused.Reason != "inventory" {
					t.Errorf("%s: %v: %s, %+v", on, err, j.State, j.Paused)
				}
				if made := everyMinute(t, d, 20); made != 0 {
					t.Errorf("%s: %d runs made while paused", on, made)
				}
				resume(t, d, on.Scope, on.Name, missed)
				r := ticktest.Run(t, d)
				if want := map[bool]int{true: 4}[missed]; r.Made != want || r.Succeeded != want || r.Gaps[store.Paused] != 1-want/4 {
					t.Errorf("%s, resumed with missed %v: %+v", on, missed, r)
				}
				if made := everyMinute(t, d, 5); made != 1 {
					t.Errorf("%s: %d runs made afterwards", on, made)
				}
			}
		}
		list, err := d.Pauses(t.Context(), true, 100)
		if err != nil || len(list) != 2*len(subjects) {
			t.Fatalf("%v: %+v", err, list)
		}
		for _, p := range list {
			if p.ResumedBy != "bob" || p.ResumedAt.Sub(p.Since) != 20*time.Minute || p.Missed == (p.ID%2 == 1) {
				t.Errorf("%+v", p)
			}
		}
		if list, err := d.Pauses(t.Context(), false, 100); err != nil || len(list) != 0 {
			t.Errorf("%v: still paused: %+v", err, list)
		}
	})
}

// A pause that ends by itself, without anybody who resumes it.
func TestAPauseEndsByItself(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "hours", Rule: "every 1h"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"hours"}, MaxRuns: 1, Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
				{Name: "request", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}},
		})
		ticktest.Run(t, d)
		d.Clock.Add(time.Hour)
		tk := ticktest.New(t, d.Store)
		tk.Limit = -1
		if r, err := tk.Run(t.Context()); err != nil || r.Made != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		until := d.Clock.Now().Add(10 * time.Minute)
		pause(t, d, store.ScopeSchedule, "hours", until)
		pause(t, d, store.ScopeJob, "request", until)
		if _, err := d.RunNow(t.Context(), "request", store.Request{}); err != nil {
			t.Fatal(err)
		}
		for range 9 {
			d.Clock.Add(time.Minute)
			if r := ticktest.Run(t, d); r.Started != 0 {
				t.Fatalf("paused: %+v", r)
			}
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil || len(runs) != 2 || runs[0].HeldBy != "pause" || runs[1].HeldBy != "pause" {
			t.Fatalf("%v: %+v", err, runs)
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 2 {
			t.Fatalf("afterwards: %+v", r)
		}
	})
}

// One of two schedules is paused: the other's times go on, and so do the runs that it made.
func TestAPauseOfOneScheduleLeavesTheOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "fives", Rule: "every 5m"}, {Name: "sixes", Rule: "every 6m"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"fives", "sixes"}, Overlap: "allow", MaxRunning: 9,
				Steps: []store.Step{ticktest.Step("", "SELECT 1")}}},
		})
		ticktest.Run(t, d)
		tk := ticktest.New(t, d.Store)
		tk.Limit = -1
		for range 7 { // 08:05 and 08:06 are queued
			d.Clock.Add(time.Minute)
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		pause(t, d, store.ScopeSchedule, "fives", time.Time{})
		if r := ticktest.Run(t, d); r.Succeeded != 1 || !strings.Contains(r.Runs[0].Occurrence, "08:06") {
			t.Errorf("held: %+v", r)
		}
		if made := everyMinute(t, d, 23); made != 4 { // :12 :18 :24 :30, the last of which is of both
			t.Errorf("%d made by the other", made)
		}
		resume(t, d, store.ScopeSchedule, "fives", false)
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Errorf("resumed: %+v", r)
		}
	})
}

// While a pass works through its queue, a freeze stops it.
func TestAFreezeStopsTakingWithinAPass(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Overlap: "allow", MaxRunning: 9, Steps: []store.Step{ticktest.Call("")}}}})
			for range 5 {
				ticktest.Request(t, d, "job")
			}
			executed := 0
			tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
				if executed++; executed == 2 {
					pause(t, d, store.ScopeAll, "", time.Time{})
				}
				return executor.Result{}, nil
			})
			tk.Concurrency = 1
			if r, err := tk.Run(t.Context()); err != nil || r.Started != 2 {
				t.Fatalf("%v: %+v", err, r)
			}
			if r := ticktest.Run(t, d); !r.Frozen || r.Started != 0 {
				t.Fatalf("frozen: %+v", r)
			}
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
			if err != nil || len(runs) != 5 || runs[0].HeldBy != "pause" {
				t.Fatalf("%v: %+v", err, runs)
			}
			resume(t, d, store.ScopeAll, "", false)
			if r, err := tk.Run(t.Context()); err != nil || r.Started != 3 {
				t.Fatalf("%v: %+v", err, r)
			}
		})
	}
}

func TestWhatCannotBePaused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		pause(t, d, store.ScopeJob, "job", time.Time{})
		for _, c := range []struct {
			on   store.Subject
			at   time.Time
			want error // nil: a field is wrong
		}{
			{store.Subject{Scope: store.ScopeJob, Name: "job"}, time.Time{}, store.ErrExists},
			{store.Subject{Scope: store.ScopeJob, Name: "nobody"}, time.Time{}, store.ErrNotFound},
			{store.Subject{Scope: store.ScopeSchedule, Name: "nobody"}, time.Time{}, store.ErrNotFound},
			{store.Subject{Scope: store.ScopeTag, Name: "nobody"}, time.Time{}, store.ErrNotFound},
			{store.Subject{Scope: store.ScopeOwner, Name: "nobody"}, time.Time{}, store.ErrNotFound},
			{store.Subject{Scope: store.ScopeAll}, d.Clock.Now(), nil},
		} {
			_, err := d.Pause(t.Context(), c.on, c.at, store.Author{})
			var field *store.FieldError
			if c.want != nil && !errors.Is(err, c.want) || c.want == nil && !errors.As(err, &field) {
				t.Errorf("%s: %v", c.on, err)
			}
			if _, err := d.Resume(t.Context(), c.on, false, store.Author{}); !errors.Is(c.want, store.ErrExists) && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("resume %s: %v", c.on, err)
			}
		}
		for _, who := range []store.Author{{Reason: strings.Repeat("x", 1001)}, {Reason: "not utf-8 \xff"}, {By: strings.Repeat("x", 191)}} {
			var field *store.FieldError
			if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeAll}, time.Time{}, who); !errors.As(err, &field) {
				t.Errorf("%.20q: %v", who, err)
			}
		}
		if list, err := d.Pauses(t.Context(), true, 100); err != nil || len(list) != 1 {
			t.Errorf("%v: %+v", err, list)
		}
		// The longest that is taken is kept by every engine.
		who := store.Author{By: strings.Repeat("b", 190), Reason: strings.Repeat("r", 1000)}
		if p, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeAll}, time.Time{}, who); err != nil || p.By != who.By || p.Reason != who.Reason {
			t.Errorf("%v: %+v", err, p)
		}
	})
}
