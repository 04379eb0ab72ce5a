package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// While a schedule of a job is paused, and another one is not, a forecast has the times at which passes run the job.
func TestForecastsLeavePausedSchedulesOut(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"for ever": 0, "until": 5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				job := store.Job{Name: "job", Schedules: []string{"often", "rare"}, Steps: []store.Step{ticktest.Nop("")}}
				limited := job
				limited.Name, limited.MaxRuns = "limited", 3
				ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "often", Rule: "every 1h"}, {Name: "rare", Rule: "daily at 10:30"}}, Jobs: []store.Job{job, limited}})
				ticktest.Run(t, d)
				now := d.Clock.Now()
				var until time.Time
				if lasts > 0 {
					until = now.Add(lasts)
				}
				pause(t, d, store.ScopeSchedule, "often", until)
				jobs, err := d.Jobs(t.Context(), store.JobFilter{})
				if err != nil {
					t.Fatal(err)
				}
				u, err := tick.Upcoming(t.Context(), d.Store, jobs, now, now.Add(30*time.Hour), 1000)
				if err != nil {
					t.Fatal(err)
				}
				if err := tick.NextOutsidePauses(t.Context(), d.Store, jobs); err != nil {
					t.Fatal(err)
				}
				for i := range jobs {
					first := slices.IndexFunc(u.Runs, func(r tick.UpcomingRow) bool { return r.Job == jobs[i].FullName() })
					if next := jobs[i].NextRun; !next.Equal(u.Runs[first].At) {
						t.Errorf("the next run of %s is at %s, and the forecast begins at %s", jobs[i].Name, next, u.Runs[first].At)
					}
				}
				var want, got []string
				for _, r := range u.Runs {
					want = append(want, r.Job[len(r.Job)-3:]+" "+r.At.Format(time.RFC3339))
				}
				feed, _, err := tick.Feed(t.Context(), d.Store, jobs[:1], now, now.Add(30*time.Hour), 100)
				if rules := map[bool]int{true: 2, false: 1}[lasts > 0]; err != nil || len(feed) != rules || feed[0].Events[0].Start.Before(until) {
					t.Errorf("%v: the feed has %+v, want %d schedules that begin at %s", err, feed, rules, until)
				}
				for range 59 { // the end of the forecast is not in it
					d.Clock.Add(30 * time.Minute)
					ticktest.Run(t, d)
				}
				runs, err := d.Runs(t.Context(), store.RunFilter{Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				for i := range runs {
					got = append(got, runs[i].Job[len(runs[i].Job)-3:]+" "+runs[i].ScheduledFor.Format(time.RFC3339))
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(want, got) || len(got) < 4 {
					t.Errorf("the passes ran\n%q, and the forecast was\n%q", got, want)
				}
			})
		})
	}
}

// The next time that is skipped is one that would run, and not one of a schedule that is paused.
func TestSkipNextLeavesPausedSchedulesOut(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		job := store.Job{Name: "job", Schedules: []string{"often", "rare"}, Steps: []store.Step{ticktest.Nop("")}}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "often", Rule: "every 1h"}, {Name: "rare", Rule: "daily at 10:30"}}, Jobs: []store.Job{job}})
		ticktest.Run(t, d)
		pause(t, d, store.ScopeSchedule, "often", time.Time{})
		list, err := tick.SkipNext(t.Context(), d.Store, "job", "", 1, store.Author{})
		if err != nil || len(list) != 1 || list[0].At.Format("15:04") != "10:30" {
			t.Errorf("%v: %+v", err, list)
		}
		if _, err := tick.SkipNext(t.Context(), d.Store, "job", "often", 1, store.Author{}); err == nil {
			t.Error("a time of a schedule that is paused for ever was skipped")
		}
	})
}

// After a pause with an end was ended by hand, its end is the next run of no job, also before a pass has seen that.
func TestNextRunAfterAPauseWasEnded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		step := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "rare", Rule: "daily at 3:30"}}, Jobs: []store.Job{
			{Name: "own", Own: &store.Schedule{Rule: "daily at 3:30"}, Steps: step}, {Name: "shared", Schedules: []string{"rare"}, Steps: step},
			{Name: "red", Schedules: []string{"rare"}, Tags: []string{"red"}, Steps: step}}})
		ticktest.Run(t, d)
		until := d.Clock.Now().Add(time.Hour)
		next := func(want string) {
			t.Helper()
			jobs, err := d.Jobs(t.Context(), store.JobFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				if jobs[i].NextRun.Equal(until) {
					t.Errorf("%s: the next run of %s is at the end of a pause that was ended", want, jobs[i].Name)
				}
			}
			if list := seen(t, d, "v_jobs", "next_run", ""); slices.Contains(list, instantOf(until)) {
				t.Errorf("%s: v_jobs has the next runs %q, one at the end of a pause that was ended", want, list)
			}
			if err := tick.NextOutsidePauses(t.Context(), d.Store, jobs); err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				if at := jobs[i].NextRun.UTC().Format("15:04"); at != "03:30" {
					t.Errorf("%s: the next run of %s is at %s", want, jobs[i].Name, at)
				}
			}
		}
		for _, on := range []store.Subject{{Scope: store.ScopeJob, Name: "own"}, {Scope: store.ScopeTag, Name: "red"}, {Scope: store.ScopeSchedule, Name: "rare"}, {Scope: store.ScopeAll}} {
			pause(t, d, on.Scope, on.Name, until)
			ticktest.Run(t, d)
			d.Clock.Add(time.Minute)
			resume(t, d, on.Scope, on.Name, false)
			next("after a pause of " + on.Scope)
			ticktest.Run(t, d)
			next("after the pass that has seen it")
		}
	})
}
