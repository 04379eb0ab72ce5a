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
func everyMinute(t testing.TB, d *storetest.DB, minutes int) {
	t.Helper()
	each(t, d, time.Minute, minutes)
}

// each is a trigger that comes at this interval, with its passes, and the runs that they made.
func each(t testing.TB, d *storetest.DB, period time.Duration, passes int) (made int) {
	t.Helper()
	for range passes {
		d.Clock.Add(period)
		made += ticktest.Run(t, d).Made
	}
	return made
}

// Every scope of a pause, with the ticks of a trigger that goes on all the time. The due times become gaps, or run with
// missed.
func TestPauseOfEachScope(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		login, err := d.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "fives", Rule: "every 5m"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"fives"}, Tags: []string{"etl"}, Missed: "all", Overlap: "wait-all",
				Steps: []store.Step{ticktest.Nop("")}}},
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
				if made := each(t, d, 5*time.Minute, 2); made != 0 {
					t.Errorf("%s: %d runs made while paused", on, made)
				}
				resume(t, d, on.Scope, on.Name, missed)
				r := ticktest.Run(t, d)
				if want := map[bool]int{true: 2}[missed]; r.Made != want || r.Succeeded != want || r.Gaps[store.Paused] != 1-want/2 {
					t.Errorf("%s, resumed with missed %v: %+v", on, missed, r)
				}
				if made := each(t, d, 5*time.Minute, 1); made != 1 {
					t.Errorf("%s: %d runs made afterwards", on, made)
				}
			}
		}
		list, err := d.Pauses(t.Context(), true, 100)
		if err != nil || len(list) != 2*len(subjects) {
			t.Fatalf("%v: %+v", err, list)
		}
		for _, p := range list {
			if p.ResumedBy != "bob" || p.ResumedAt.Sub(p.Since) != 10*time.Minute || p.Missed == (p.ID%2 == 1) {
				t.Errorf("%+v", p)
			}
		}
		if list, err := d.Pauses(t.Context(), false, 100); err != nil || len(list) != 0 {
			t.Errorf("%v: still paused: %+v", err, list)
		}
	})
}

// A pause that ends by itself, without a resume.
func TestPauseEndsByItself(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "hours", Rule: "every 1h"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"hours"}, MaxRuns: 1, Steps: []store.Step{ticktest.Nop("")}},
				{Name: "request", Steps: []store.Step{ticktest.Nop("")}}},
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
		ticktest.RunNow(t, d, "request", store.Request{})
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

// One of two schedules is paused. The times of the other one go on, and so do the runs that it made: a run that the pause holds
// is not in their way. 08:30 is a time of both.
func TestPauseOfOneScheduleLeavesTheOther(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Schedules: []store.Schedule{{Name: "fives", Rule: "every 5m"}, {Name: "sixes", Rule: "every 6m"}}}
		for _, overlap := range []string{"wait", "wait-all", "skip", "allow"} {
			j := store.Job{Name: overlap, Schedules: []string{"fives", "sixes"}, Overlap: overlap, Steps: []store.Step{ticktest.Nop("")}}
			if overlap == "allow" {
				j.MaxRunning = 9
			}
			defs.Jobs = append(defs.Jobs, j)
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		for range 7 { // 08:05 is queued, then comes 08:06
			d.Clock.Add(time.Minute)
			ticktest.DecideOnly(t, d)
		}
		pause(t, d, store.ScopeSchedule, "fives", time.Time{})
		everyMinute(t, d, 23)
		resume(t, d, store.ScopeSchedule, "fives", false)
		ticktest.Run(t, d)
		for _, j := range defs.Jobs {
			second := map[bool]string{true: "", false: "08:06 succeeded; "}[j.Overlap == "skip"] // 08:05 had not ended
			want := "08:05 succeeded; " + second + "08:12 succeeded; 08:18 succeeded; 08:24 succeeded; 08:30 succeeded; "
			if got := ticktest.ToldIn(t, d, j.Name, "15:04"); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s", j.Name, got)
			}
		}
	})
}

// While a pass works through its queue, a freeze stops it.
func TestPauseOfAllStopsTakingWithinAPass(t *testing.T) {
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

// A pause of a thing that does not exist, or until a time that is over, is refused.
func TestPauseOfWhatThereIsNotIsRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
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
		// Every engine keeps the longest reason that is accepted.
		who := store.Author{By: strings.Repeat("b", 190), Reason: strings.Repeat("r", 1000)}
		if p, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeAll}, time.Time{}, who); err != nil || p.By != who.By || p.Reason != who.Reason {
			t.Errorf("%v: %+v", err, p)
		}
	})
}

// While a job is paused, neither its times nor its requests run. Afterwards, the times are a gap.
func TestPauseHoldsAndIsAGap(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "job"}, time.Time{}, store.Author{Reason: "inventory"}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(12 * time.Minute)
		ticktest.RunNow(t, d, "job", store.Request{})
		if r := ticktest.Run(t, d); r.Made != 0 || r.Started != 0 {
			t.Fatalf("paused: %+v", r)
		}
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "job"}, false)
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

// A tag may have any characters, and SQL may write it with the escapes that other programs write: its pause holds the jobs that have it.
func TestPauseOfAnyTag(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		list, step := []string{"50%", "R&D", "a<b>c", "a_b|", `ü"x\`}, []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Tags: list, Steps: step},
			{Name: "other", Tags: []string{"r&d", "A<B>C", `Ü"x\`, "500", "axb|"}, Steps: step}}})
		place, call := "?", "CALL "
		if d.Engine == "postgres" {
			place, call = "$1", "SELECT "
		}
		for _, escaped := range []bool{false, true} {
			if escaped {
				d.Exec(t, "UPDATE "+d.Table("jobs")+" SET tags = "+place+" WHERE name = 'job'", `["50\u0025", "R\u0026D", "a\u003cb>c", "a_\u0062|", "\u00fc\"x\\"]`)
			}
			ticktest.Run(t, d)
			if j, err := d.Job(t.Context(), "job"); err != nil || !slices.Equal(j.Tags, list) {
				t.Errorf("tags %q, %v", j.Tags, err)
			}
			for _, tag := range list {
				on := store.Subject{Scope: store.ScopeTag, Name: tag}
				ticktest.Pause(t, d, on, time.Time{})
				if n, err := d.CountPaused(t.Context()); err != nil || n != 1 {
					t.Errorf("%s: %d jobs paused, %v", tag, n, err)
				}
				ticktest.RunNow(t, d, "job", store.Request{})
				if r := ticktest.Run(t, d); r.Started != 0 {
					t.Errorf("%s: not paused", tag)
				}
				ticktest.Resume(t, d, on, false)
				if r := ticktest.Run(t, d); r.Succeeded != 1 {
					t.Errorf("%s: not let go: %+v", tag, r)
				}
			}
		}
		for _, tag := range list {
			if d.Engine != "sqlite" { // it has no functions
				d.Exec(t, call+d.Table("pause")+"("+place+", 'tag', NULL, NULL)", tag)
			}
		}
	})
}

// The resume comes after the decision for the pause's job, and before the pause is marked.
func TestPauseResumedWithinAPass(t *testing.T) {
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
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
			ticktest.Request(t, d, "job")
			ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "job"}, time.Time{})
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

// A pause of a tag that plain SQL begins and ends holds and wakes the tag's jobs, and no others.
func TestPauseOfATagResumedWakesItsJobs(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j, idle := ticktest.Hourly("job"), store.Job{Name: "idle", Tags: []string{"nightly", "etl"}, Steps: []store.Step{ticktest.Nop("")}}
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

// A pause of a schedule holds the jobs that have no other schedule: the figure of paused jobs is the number of those in that state.
func TestPausedJobsAreThoseInThatState(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		step := []store.Step{ticktest.Nop("")}
		named := func(name string) store.Schedule { return store.Schedule{Name: name, Rule: "every 1d", Zone: "UTC"} }
		own := store.Schedule{Rule: "every 2d", Zone: "UTC"}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{named("a"), named("b")}, Jobs: []store.Job{
			{Name: "both", Schedules: []string{"a", "b"}, Steps: step}, {Name: "one", Schedules: []string{"a"}, Steps: step},
			{Name: "own", Schedules: []string{"a"}, Own: &own, Steps: step}, {Name: "none", Steps: step},
		}})
		ticktest.Run(t, d)
		for _, on := range []store.Subject{{Scope: store.ScopeSchedule, Name: "a"}, {Scope: store.ScopeSchedule, Name: "b"}, {Scope: store.ScopeJob, Name: "own"}} {
			pause(t, d, on.Scope, on.Name, time.Time{})
			list, err := d.Jobs(t.Context(), store.JobFilter{States: []string{store.JobPaused}})
			n, failed := d.CountPaused(t.Context())
			if err != nil || failed != nil || n != len(list) {
				t.Errorf("%s: %d jobs paused, %d in that state (%v, %v)", on, n, len(list), failed, err)
			}
		}
	})
}
