package tick_test

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
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// max_runs bounds the runs of a job, whatever makes them: its rules, starts of the host, and runs of other jobs. A
// larger max_runs lets the job run again, but not for what came in the meantime. A request always has its run.
func TestMaxRunsBoundsEachKindOfRun(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		follows := func(jobs ...string) (list []store.After) {
			for _, j := range jobs {
				list = append(list, store.After{Job: j})
			}
			return list
		}
		jobs := func(most int64) store.Definitions {
			return store.Definitions{Jobs: []store.Job{
				{Name: "first", Own: ticktest.EveryFiveMinutes(), Steps: ok},
				{Name: "second", Own: ticktest.EveryFiveMinutes(), Steps: ok},
				{Name: "start", OnStartup: true, MaxRuns: most, Steps: ok},
				{Name: "rule", Own: ticktest.EveryFiveMinutes(), OnStartup: true, MaxRuns: most, Steps: ok},
				{Name: "after", After: follows("first"), MaxRuns: most, Steps: ok},
				{Name: "both", After: follows("first", "second"), MaxRuns: most, Steps: ok},
			}}
		}
		starts := 0
		run := func(starting bool) {
			t.Helper()
			d.Clock.Add(5 * time.Minute)
			tk := ticktest.New(t, d.Store)
			if starting {
				starts++
			}
			tk.StartupID = fmt.Sprint("boot-", starts)
			if r, err := tk.Run(t.Context()); err != nil || len(r.Parked) != 0 {
				t.Fatalf("%v: %+v", err, r)
			}
			if r, err := tk.Run(t.Context()); err != nil || r.Made+r.Decided != 0 {
				t.Errorf("the pass after it finds something to do: %v: %+v", err, r)
			}
		}
		have := func(want int) {
			t.Helper()
			for _, job := range []string{"start", "rule", "after", "both"} {
				if got := ticktest.States(t, d, job); len(got) != want {
					t.Errorf("%s has %q, want %d runs", job, got, want)
				}
			}
		}
		ticktest.Apply(t, d, jobs(2))
		ticktest.Run(t, d)
		for range 4 {
			run(true)
		}
		have(2)
		ticktest.Apply(t, d, jobs(3))
		run(false)
		if got := ticktest.States(t, d, "start"); len(got) != 2 {
			t.Errorf("a start that came before the change: %q", got)
		}
		run(true)
		have(3)
		ticktest.RunNow(t, d, "after", store.Request{})
		run(false)
		if got := ticktest.States(t, d, "after"); len(got) != 4 || got[3] != store.Succeeded {
			t.Errorf("on request: %q", got)
		}
	})
}

// Several runs of another job that end together do not exceed max_runs either: what is too much is cancelled.
func TestMaxRunsAfterRunsThatEndTogether(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Own: ticktest.EveryFiveMinutes(), Missed: "all", Overlap: "allow", MaxRunning: 4, Steps: ok},
			{Name: "after", After: []store.After{{Job: "first"}}, MaxRuns: 2, Steps: ok},
		}})
		ticktest.Run(t, d)
		d.Clock.Add(20 * time.Minute)
		ticktest.Run(t, d)
		ran := 0
		for _, s := range ticktest.States(t, d, "after") {
			if s == store.Succeeded {
				ran++
			} else if s != store.Cancelled {
				t.Errorf("a run is %s", s)
			}
		}
		if ran != 2 {
			t.Errorf("%d runs succeeded, want 2", ran)
		}
	})
}

// A job that has made all of its runs has no next occurrence while the last run is still tried: no time ends its tries, and
// none is missed.
func TestMaxRunsLeaveNoNextOccurrence(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "last", Own: ticktest.EveryFiveMinutes(), MaxRuns: 1, On: store.Hooks{Missed: "told"}, Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")},
				Retry: store.Retry{Attempts: new(store.Attempts(0)), Backoff: new(store.Duration(12 * time.Minute)), Jitter: new(0)}},
			{Name: "told", Steps: []store.Step{ticktest.Nop("")}},
		}})
		ticktest.DecideOnly(t, d)
		for range 20 {
			d.Clock.Add(time.Minute)
			ticktest.Run(t, d)
		}
		if got := standing(t, d); got != "last waiting" {
			t.Errorf("%s", got)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); n != 2 {
			t.Errorf("%d attempts", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("gaps")); n != 0 {
			t.Errorf("%d gaps", n)
		}
	})
}

// An edit of a schedule decides what came since the job had made all of its runs. No tick has missed these times.
func TestMaxRunsAreNotMissedAfterAnEdit(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		apply := func(rule string) {
			ticktest.Apply(t, d, store.Definitions{
				Schedules: []store.Schedule{{Name: "first", Rule: rule}, {Name: "second", Rule: "every 5m"}},
				Jobs: []store.Job{
					{Name: "last", Schedules: []string{"first", "second"}, MaxRuns: 1, On: store.Hooks{Missed: "told"}, Steps: []store.Step{ticktest.Nop("")}},
					{Name: "told", Steps: []store.Step{ticktest.Nop("")}},
				}})
		}
		apply("every 30m")
		for range 40 {
			ticktest.Run(t, d)
			d.Clock.Add(time.Minute)
		}
		apply("every 20m")
		ticktest.Run(t, d)
		if got := standing(t, d); got != "last succeeded" {
			t.Errorf("%s", got)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("gaps")+" WHERE reason = 'missed'"); n != 0 {
			t.Errorf("%d gaps say that times were missed", n)
		}
	})
}

// A forecast that begins later has the times at which passes run the job: the runs before it count for max_runs, too.
func TestMaxRunsCountBeforeALaterForecast(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		limited := func(name string, most int64, schedules ...string) store.Job {
			return store.Job{Name: name, Schedules: schedules, MaxRuns: most, Missed: store.MissedAll, MissedLimit: 100, Overlap: store.OverlapWaitAll, Steps: []store.Step{ticktest.Nop("")}}
		}
		later := limited("later", 8, "early")
		later.NotBefore = d.Clock.Now().AddDate(0, 0, 4)
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "early", Rule: "daily at 3:30"}, {Name: "late", Rule: "daily at 15:30"}, {Name: "both", Rule: "30 3,12 * * *"}},
			Jobs: []store.Job{limited("three", 3, "early"), limited("twelve", 12, "early"), limited("skips", 12, "early"),
				limited("two rules", 25, "early", "late"), limited("common", 24, "early", "both"), limited("held", 8, "early"), later},
		})
		ticktest.Run(t, d)
		if _, err := tick.SkipNext(t.Context(), d.Store, "skips", "", 2, store.Author{}); err != nil {
			t.Fatal(err)
		}
		pause(t, d, store.ScopeJob, "held", d.Clock.Now().AddDate(0, 0, 5))
		now := d.Clock.Now()
		from, to := now.AddDate(0, 0, 10), now.AddDate(0, 0, 20)
		jobs, err := d.Jobs(t.Context(), store.JobFilter{})
		if err != nil {
			t.Fatal(err)
		}
		u, err := tick.Upcoming(t.Context(), d.Store, jobs, from, to, 1000)
		if err != nil {
			t.Fatal(err)
		}
		each, err := tick.NextOfEach(t.Context(), d.Store, jobs, from, to, 1000, func(store.Job) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			d.Clock.Add(12 * time.Hour)
			ticktest.Run(t, d)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		count, forecast := map[string]int{}, map[string]int{}
		for i := range runs {
			if at := runs[i].ScheduledFor; !at.Before(from) && at.Before(to) {
				want = append(want, runs[i].Job+" "+at.Format(time.RFC3339))
				count[store.FullName(runs[i].Owner, runs[i].Job)]++
			}
		}
		for _, r := range u.Runs {
			got = append(got, r.Job[strings.Index(r.Job, "/")+1:]+" "+r.At.Format(time.RFC3339))
		}
		for _, r := range each.Runs {
			forecast[r.Job] = 1 + *r.Later
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) || len(count) != 6 {
			t.Errorf("the passes ran %d jobs:\n%q, and the forecast was\n%q", len(count), want, got)
		}
		if !maps.Equal(count, forecast) {
			t.Errorf("the passes made %v runs, and the forecast of each job is %v", count, forecast)
		}
	})
}
