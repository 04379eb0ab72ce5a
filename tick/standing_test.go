package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// However many paused jobs would come first, the jobs that are not paused are found.
func TestStandingLooksPastPausedJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{ticktest.Hourly("free")}}
		for i := range 20 {
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprintf("held-%d", i), Own: ticktest.EveryFiveMinutes(), Tags: []string{"held"}, Steps: []store.Step{ticktest.Nop("")}})
		}
		ticktest.Apply(t, d, defs)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeTag, Name: "held"}, time.Time{})
		ticktest.Run(t, d)
		st, err := d.Standing(t.Context(), time.Minute, 2*time.Hour, 1)
		if err != nil || len(st.Coming) != 1 || st.Coming[0].Name != "free" || st.Overdue.Count != 0 {
			t.Errorf("%v: %d overdue, coming %+v", err, st.Overdue.Count, st.Coming)
		}
		d.Clock.Add(3 * time.Hour)
		st, err = d.Standing(t.Context(), time.Minute, 2*time.Hour, 1)
		if err != nil || len(st.Coming) != 0 || st.Overdue.Count != 1 || len(st.Overdue.First) != 1 || st.Overdue.First[0].Name != "free" {
			t.Errorf("%v: overdue %+v, coming %+v", err, st.Overdue, st.Coming)
		}
	})
}

// A job whose definition ticks cannot use, such as one whose step no run could execute, stays due in its plan. It is parked, and
// neither overdue nor coming: ticks come, and do decide for it.
func TestStandingOfAParkedJobThatStaysDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		grouped := ticktest.Hourly("grouped")
		grouped.Group = "few"
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "few", MaxRunning: 1}}, Jobs: []store.Job{grouped}})
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.ParkedJobs != 1 {
			t.Fatalf("%d jobs are parked", r.ParkedJobs)
		}
		for _, wait := range []time.Duration{0, time.Hour} {
			d.Clock.Add(wait)
			st, err := d.Standing(t.Context(), time.Minute, 2*time.Hour, 1)
			if err != nil || st.Parked.Count != 1 || st.Overdue.Count != 0 || len(st.Coming) != 0 {
				t.Errorf("after %s: %v: %d parked, %d overdue, coming %+v", wait, err, st.Parked.Count, st.Overdue.Count, st.Coming)
			}
		}
	})
}

// Nor is such a job late in the figures of a pass, by which alarms say that no pass gets through. A job that ticks can decide for is.
func TestAParkedJobThatStaysDueIsNotLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		grouped := ticktest.Hourly("grouped")
		grouped.Group = "few"
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "few", MaxRunning: 1}}, Jobs: []store.Job{grouped, ticktest.Hourly("free")}})
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		for hour := range 3 {
			due := d.Clock.Now().Truncate(time.Hour).Add(time.Hour)
			d.Clock.Set(due.Add(20 * time.Minute))
			if r := ticktest.Run(t, d); r.ParkedJobs != 1 || !r.OldestDue.Equal(due) {
				t.Errorf("hour %d: %d jobs are parked; the oldest is due since %v, want %v", hour, r.ParkedJobs, r.OldestDue, due)
			}
			if r := ticktest.Run(t, d); r.ParkedJobs != 1 || !r.OldestDue.IsZero() {
				t.Errorf("hour %d: %d jobs are parked; after a pass, one is due since %v", hour, r.ParkedJobs, r.OldestDue)
			}
		}
	})
}

// A job that is parked or failing, and that somebody has paused, is known trouble: a pass, status and job list do not count it, whatever
// the pause is of. One that has paused itself, or that runs by a schedule which is not paused, counts. A dry run counts the same, and a
// pass that has failed counts none.
func TestTroubleThatSomebodyHasPausedDoesNotCount(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		jobs := []store.Job{{Name: "free"}, {Name: "paused"}, {Name: "tagged", Tags: []string{"held"}}, {Name: "itself", PauseAfterFailures: 1},
			{Name: "scheduled", Schedules: []string{"idle"}}, {Name: "half", Schedules: []string{"idle", "busy"}},
			{Name: "own", Own: &store.Schedule{Rule: "every 1h"}, Schedules: []string{"idle"}}}
		for i := range jobs {
			jobs[i].Steps = []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}
		}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "idle", Rule: "every 1h"}, {Name: "busy", Rule: "every 1h"}}, Jobs: jobs})
		for _, j := range jobs {
			ticktest.Request(t, d, j.Name)
		}
		ticktest.Run(t, d)
		counts := func(want int, names string) {
			t.Helper()
			r := ticktest.Run(t, d)
			st, err := d.Standing(t.Context(), time.Hour, 0, 10)
			if err != nil || r.FailingJobs != want || st.Failing.Count != want || len(st.Failing.First) != want {
				t.Errorf("%v: the pass counts %d failing jobs, status %d and names %d, want %d", err, r.FailingJobs, st.Failing.Count, len(st.Failing.First), want)
			}
			list, err := d.Jobs(t.Context(), store.JobFilter{States: []string{store.JobFailing}})
			var listed []string
			for _, j := range list {
				listed = append(listed, j.Name)
			}
			if got := strings.Join(listed, " "); err != nil || got != names {
				t.Errorf("%v: job list has %s, want %s", err, got, names)
			}
			dry := ticktest.New(t, d.Store)
			dry.DryRun = true
			if n := ticktest.Pass(t, dry).FailingJobs; n != want {
				t.Errorf("a dry run counts %d failing jobs, want %d", n, want)
			}
			wrong := ticktest.New(t, d.Store)
			wrong.Instance = "elsewhere"
			if r, err := wrong.Run(t.Context()); err == nil || r.FailingJobs != 0 {
				t.Errorf("%v: a pass that has failed counts %d failing jobs, which it does not know", err, r.FailingJobs)
			}
		}
		counts(7, "free half itself own paused scheduled tagged")
		for _, s := range []store.Subject{{Scope: store.ScopeJob, Name: "paused"}, {Scope: store.ScopeTag, Name: "held"}, {Scope: store.ScopeSchedule, Name: "idle"}} {
			if _, err := d.Pause(t.Context(), s, time.Time{}, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		counts(4, "free half itself own")
		d.Exec(t, "UPDATE "+d.Table("plans")+" SET parked = 'broken', streak = 0")
		r := ticktest.Run(t, d)
		if st, err := d.Standing(t.Context(), time.Hour, 0, 10); err != nil || r.ParkedJobs != 4 || st.Parked.Count != 4 {
			t.Errorf("%v: the pass counts %d parked jobs, status %d, want 4", err, r.ParkedJobs, st.Parked.Count)
		}
	})
}
