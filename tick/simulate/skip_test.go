package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/simulate"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A nominal time that somebody skipped does not run in a simulation either.
func TestSkipsAreSimulated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		if _, err := tick.SkipNext(t.Context(), d.Store, "job", "", 2, store.Author{}); err != nil {
			t.Fatal(err)
		}
		now := d.Clock.Now()
		in, _, err := simulate.Read(t.Context(), d.Store, now, now)
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(t.Context(), in, simulate.Options{From: now, To: now.Add(time.Hour), Keep: 100})
		if err != nil || r.Runs != 9 || r.NotRun != 2 || len(r.Gaps) == 0 || r.Gaps[0].Reason != store.Skipped || r.Gaps[0].Because != simulate.BecauseSkipped {
			t.Errorf("%v: %+v", err, r)
		}
	})
}

// What was decided by hand since the last pass counts for the first pass of a simulation: a skip of a time that has come
// meanwhile, a pause that is over, and a schedule that the job no longer has. Each is a gap when its time has come, not later.
func TestChangesSinceTheLastPassAreSimulated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name string) store.Job {
			return store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Missed: store.MissedAll, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		}
		left := job("left")
		left.Own, left.Schedules = nil, []string{"often"}
		often := *ticktest.EveryFiveMinutes()
		often.Name = "often"
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{often}, Jobs: []store.Job{job("skipped"), job("paused"), left}})
		ticktest.Run(t, d) // 08:00
		if _, err := tick.SkipNext(t.Context(), d.Store, "skipped", "", 3, store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "paused"}, time.Time{})
		d.Clock.Add(6 * time.Minute)
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "paused"}, false)
		left.Schedules = nil
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{left}})
		now := d.Clock.Now() // 08:06
		in, _, err := simulate.Read(t.Context(), d.Store, now, now)
		if err != nil {
			t.Fatal(err)
		}
		var runs, gaps []string
		o := simulate.Options{From: now, To: now.Add(5 * time.Minute),
			Run: func(r store.Run) {
				runs = append(runs, r.Job[strings.LastIndex(r.Job, "/")+1:]+" "+r.ScheduledFor.Format("15:04"))
			},
			Gap: func(g store.Gap) {
				for i := range in.Jobs {
					if j := &in.Jobs[i]; j.ID == g.JobID {
						gaps = append(gaps, j.Name+" "+g.Reason+" "+g.Through.Format("15:04"))
					}
				}
			}}
		if _, err := simulate.Run(t.Context(), in, o); err != nil {
			t.Fatal(err)
		}
		slices.Sort(gaps)
		if want := []string{"left edited 08:06", "paused paused 08:05", "skipped skipped 08:05", "skipped skipped 08:10"}; !slices.Equal(gaps, want) {
			t.Errorf("gaps %q, want %q", gaps, want)
		}
		if want := []string{"paused 08:10"}; !slices.Equal(runs, want) {
			t.Errorf("runs %q, want %q", runs, want)
		}
	})
}

// While one of the schedules of a job is paused, a simulation has the times of the others, also those after a skipped one.
func TestPausesOfOneScheduleAreSimulated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "tens", Rule: "every 10m"}, {Name: "fives", Rule: "every 5m"}},
			Jobs: []store.Job{
				{Name: "one", Schedules: []string{"tens", "fives"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
				{Name: "two", Schedules: []string{"tens", "fives"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}},
			}})
		ticktest.Run(t, d) // 08:00
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeSchedule, Name: "fives"}, time.Time{})
		if _, err := tick.SkipNext(t.Context(), d.Store, "two", "", 1, store.Author{}); err != nil {
			t.Fatal(err)
		}
		now := d.Clock.Now()
		in, _, err := simulate.Read(t.Context(), d.Store, now, now)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := simulate.Run(t.Context(), in, simulate.Options{From: now, To: now.Add(61 * time.Minute)}); err != nil || r.Runs != 6+5 {
			t.Errorf("%v: %d runs, want 11", err, r.Runs)
		}
	})
}

// A job without runs says why: it stays parked or paused, or is disabled.
func TestJobsThatCannotRunAreSimulated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name string, off bool) store.Job {
			return store.Job{Name: name, Own: &store.Schedule{Rule: "every 10m"}, Disabled: off, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		}
		spoiled := job("spoiled", false)
		spoiled.Own, spoiled.Schedules = nil, []string{"tens"}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "tens", Rule: "every 10m"}}, Jobs: []store.Job{spoiled, job("held", false), job("off", true), job("on", false)}})
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'sometime' WHERE name = 'tens'")
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "held"}, time.Time{})
		ticktest.Run(t, d)
		now := d.Clock.Now()
		in, _, err := simulate.Read(t.Context(), d.Store, now, now)
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(t.Context(), in, simulate.Options{From: now, To: now.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"held false true false", "off false false true", "on false false false", "spoiled true false false"} {
			f := r.Jobs[i]
			name := f.Job[strings.LastIndex(f.Job, "/")+1:]
			if fmt.Sprintf("%s %t %t %t", name, f.Parked != "", f.Paused, f.Disabled) != want || (f.Runs > 0) != (name == "on") {
				t.Errorf("%s parked %q, paused %t, disabled %t, %d runs; want %s", name, f.Parked, f.Paused, f.Disabled, f.Runs, want)
			}
		}
	})
}

// A request to cancel counts from the beginning: the run under way is stopped at once, and the one that waits does not run.
func TestRequestsToCancelAreSimulated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := ticktest.Hourly("job")
		j.Queue, j.Overlap = "worker", store.OverlapWaitAll
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		if _, err := d.Take(t.Context(), "worker", 1, store.Holder{Name: "here", Lease: time.Hour, Until: d.Clock.Now().Add(24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		runs, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil || len(runs) != 2 {
			t.Fatalf("%v: %+v", err, runs)
		}
		for i := range runs {
			if _, err := d.CancelRun(t.Context(), runs[i].ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		now := d.Clock.Now()
		in, _, err := simulate.Read(t.Context(), d.Store, now, now)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in.Jobs {
			in.Jobs[i].Took.Length = store.Duration(10 * time.Hour)
		}
		ended := map[string]time.Time{}
		o := simulate.Options{From: now, To: now.Add(30 * time.Minute), Run: func(r store.Run) { ended[r.ID] = r.FinishedAt }}
		if _, err := simulate.Run(t.Context(), in, o); err != nil {
			t.Fatal(err)
		}
		for i := range runs {
			if at := ended[runs[i].ID]; at.IsZero() || at.After(now.Add(time.Minute)) {
				t.Errorf("%s: its end is %v, want at once: %v", runs[i].State, at, now)
			}
		}
	})
}

// An edit that no pass has seen is decided like everything else before a simulation that begins later: its first instant is a
// time of the jobs as they are now.
func TestEditsBeforeALaterBegin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name, rule string) store.Job {
			return store.Job{Name: name, Own: &store.Schedule{Rule: rule}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		}
		defs := store.Definitions{Jobs: []store.Job{job("enabled", "0 0 * * *"), job("valid", "0 0 * * *"), job("rule", "0 0,12 * * *")}}
		defs.Jobs[0].Disabled, defs.Jobs[1].NotAfter = true, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Clock.Add(time.Minute)
		defs.Jobs[0].Disabled, defs.Jobs[1].NotAfter, defs.Jobs[2].Own.Rule = false, time.Time{}, "0 0,13 * * *"
		ticktest.Apply(t, d, defs)
		from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		in, _, err := simulate.Read(t.Context(), d.Store, from, d.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(t.Context(), in, simulate.Options{From: from, To: from.AddDate(0, 0, 7), Keep: 100})
		if err != nil || r.Runs != 7+7+14 || r.NotRun != 0 {
			t.Errorf("%v: %d runs, %d times do not run: %+v", err, r.Runs, r.NotRun, r.Gaps)
		}
	})
}

// A pass that sees the edit of a calendar keeps the values of ~, also after a rename of the schedule. So does a begin after
// the edit. The two names choose two minutes.
func TestCalendarEditBeforeALaterBegin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Calendars: []store.Calendar{{Name: "days"}}, Schedules: []store.Schedule{{Name: "before", Rule: "~ * * * *", Calendar: "days"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"before"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		v, err := d.Job(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		defs.Renames = []store.Rename{{Kind: "schedule", From: "before", To: "other"}}
		defs.Schedules[0].Name, defs.Jobs[0].Schedules[0], defs.Calendars[0].Days = "other", "other", []string{"2026-12-02"}
		ticktest.Apply(t, d, defs)
		from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		in, _, err := simulate.Read(t.Context(), d.Store, from, d.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		minutes := map[int]int{}
		o := simulate.Options{From: from, To: from.AddDate(0, 0, 3), Run: func(r store.Run) { minutes[r.ScheduledFor.Minute()]++ }}
		r, err := simulate.Run(t.Context(), in, o)
		if want := map[int]int{v.NextRun.Minute(): 48}; err != nil || !maps.Equal(minutes, want) || r.NotRun != 0 {
			t.Errorf("%v: runs by minute %v, want %v; %d times do not run", err, minutes, want, r.NotRun)
		}
	})
}
