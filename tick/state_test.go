package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job goes through all states. Different actions bring it into each of them.
func TestStatesOfAJob(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j := store.Job{Name: "job", Own: &store.Schedule{Rule: "every 5m"}, Steps: []store.Step{ticktest.Nop("")}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		is := func(want string) {
			t.Helper()
			v, err := d.Job(t.Context(), "job")
			if err != nil || v.State != want {
				t.Errorf("%v: it is %q, want %q: %+v", err, v.State, want, v)
			}
			list, err := d.Jobs(t.Context(), store.JobFilter{})
			if err != nil || len(list) != 1 || list[0].State != v.State {
				t.Errorf("%v: the list says %+v", err, list)
			}
		}
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		is(store.JobEnabled)
		ticktest.Run(t, d)
		is(store.JobSleeping)
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		is(store.JobSleeping) // with a run that nobody has taken
		h := store.Holder{Name: "h", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		do(err)
		is(store.JobRunning)
		do(d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h))
		ticktest.Run(t, d)
		pause(t, d, store.ScopeJob, "job", time.Time{})
		is(store.JobPaused)
		d.Clock.Add(time.Minute)
		resume(t, d, store.ScopeJob, "job", false)
		is(store.JobResumed)
		d.Clock.Add(4 * time.Minute)
		ticktest.Run(t, d)
		is(store.JobSleeping)
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET zone = 'Nowhere/Land'")
		ticktest.Run(t, d)
		is(store.JobParked)
		do(d.EnableJob(t.Context(), "job", false, store.Author{}))
		is(store.JobDisabled)
		do(d.EnableJob(t.Context(), "job", true, store.Author{}))
		_, err = d.AbortJob(t.Context(), "job", false, store.Author{})
		do(err)
		is(store.JobAborted)
		_, err = d.AbortJob(t.Context(), "job", true, store.Author{})
		do(err)
		is(store.JobAborted) // the state is the same, whatever happens to the runs
		j.Own.Rule, j.Disabled = "at 2026-01-05T08:30:00Z", false
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		is(store.JobSleeping)
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		is(store.JobFinished)
		j.Own.Rule = "every 5m" // it has further times, although no tick has planned them yet
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		is(store.JobEnabled)
		ticktest.Run(t, d)
		is(store.JobSleeping)
	})
}

// The outlook: how late the last run was, which times come next, and for how long no pass has looked.
func TestStatesAndOutlookOfAJob(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Jitter: store.Duration(2 * time.Minute), MaxRuns: 3,
			Steps: []store.Step{ticktest.Nop("")}}}})
		look := func() (store.JobStatus, decide.Forecast) {
			t.Helper()
			v, err := d.Job(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			o, err := tick.Forecast(t.Context(), d.Store, &v, 5)
			if err != nil {
				t.Fatal(err)
			}
			return v, o
		}
		at := func(minute int) time.Time { return time.Date(2026, 1, 5, 8, minute, 0, 0, time.UTC) }
		if _, o := look(); len(o.Next) != 3 || !o.Next[0].Equal(at(5)) || !o.Next[2].Equal(at(15)) {
			t.Errorf("before any tick: %+v", o)
		}
		ticktest.Run(t, d)
		d.Clock.Add(9 * time.Minute)
		if v, _ := look(); v.Overdue != store.Duration(4*time.Minute) {
			t.Errorf("overdue by %s", v.Overdue)
		}
		ticktest.Run(t, d)
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 1 {
			t.Fatal(err, runs)
		}
		v, o := look()
		if o.Late <= 2*time.Minute || o.Late > 4*time.Minute || v.Overdue != 0 || v.LastSuccess.IsZero() || v.Cycles != 1 {
			t.Errorf("late by %s, %+v", o.Late, v)
		}
		if len(o.Next) != 2 || !o.Next[0].Equal(at(10)) {
			t.Errorf("%+v", o)
		}
		pause(t, d, store.ScopeAll, "", at(15))
		if _, o := look(); len(o.Next) != 2 || !o.Next[0].Equal(at(15)) {
			t.Errorf("paused until 08:15: %+v", o)
		}
		pause(t, d, store.ScopeJob, "job", time.Time{})
		if _, o := look(); len(o.Next) != 0 {
			t.Errorf("paused: %+v", o)
		}
	})
}
