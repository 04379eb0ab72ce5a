package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Where several pauses hold a job, one of somebody is enough for its trouble to be known, whichever pause ends last: a pass, status,
// check, job list and v_jobs count the same jobs. A job that has paused itself counts again once nobody else holds it, and a freeze
// hides nothing that counts without it, and shows nothing that does not.
func TestTroubleUnderSeveralPauses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		jobs := []store.Job{{Name: "itself", PauseAfterFailures: 1}, {Name: "itself tagged", PauseAfterFailures: 1, Tags: []string{"held"}},
			{Name: "itself by schedule", PauseAfterFailures: 1, Schedules: []string{"idle"}}, {Name: "paused"}, {Name: "paused tagged", Tags: []string{"held"}},
			{Name: "itself and own", PauseAfterFailures: 1, Own: &store.Schedule{Rule: "every 1h"}, Schedules: []string{"idle"}}, {Name: "free"}}
		for i := range jobs {
			jobs[i].Steps = []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}
		}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "idle", Rule: "every 1h"}}, Jobs: jobs})
		for _, j := range jobs {
			ticktest.Request(t, d, j.Name)
		}
		ticktest.Run(t, d)
		far := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) // also by the clock of the views; a job that has paused itself is held longer
		agree(t, d, "free|itself|itself and own|itself by schedule|itself tagged|paused|paused tagged", 4)
		for _, on := range []store.Subject{{Scope: store.ScopeJob, Name: "paused"}, {Scope: store.ScopeTag, Name: "held"}, {Scope: store.ScopeSchedule, Name: "idle"}} {
			ticktest.Pause(t, d, on, far)
		}
		agree(t, d, "free|itself|itself and own", 2)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{}) // ends last
		agree(t, d, "free|itself|itself and own", 2)
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeTag, Name: "held"}, false)
		agree(t, d, "free|itself|itself and own|itself tagged|paused tagged", 3)
	})
}

// agree holds all that counts jobs in trouble against the names of those that should count, and of which some have paused themselves:
// first as failing jobs, then as parked ones.
func agree(t *testing.T, d *storetest.DB, names string, itself int) {
	t.Helper()
	want := strings.Split(names, "|")
	st, err := d.Standing(t.Context(), time.Hour, 0, 10)
	tr, failed := d.Trouble(t.Context(), 10)
	if err != nil || failed != nil || st.Failing.Count != len(want) || len(st.Failing.First) != len(want) || tr.FailingJobs != len(want) {
		t.Errorf("%v, %v: status counts %d failing jobs and names %d, a pass counts %d, want %d", err, failed, st.Failing.Count, len(st.Failing.First), tr.FailingJobs, len(want))
	}
	if got := listed(t, d, store.JobFailing); got != names {
		t.Errorf("job list has the failing jobs %s, want %s", got, names)
	}
	if got := strings.Join(seen(t, d, "v_jobs", "name", "WHERE failing = 1"), "|"); got != names {
		t.Errorf("v_jobs has the failing jobs %s, want %s", got, names)
	}
	if n, first, err := d.PausedItself(t.Context()); err != nil || n != itself || !strings.Contains(first, "itself") {
		t.Errorf("%v: %d jobs have paused themselves, such as %q, want %d", err, n, first, itself)
	}
	plans := d.Table("plans")
	d.Exec(t, "UPDATE "+plans+" SET parked = 'broken', streak = 0")
	st, err = d.Standing(t.Context(), time.Hour, 0, 10)
	tr, failed = d.Trouble(t.Context(), 10)
	if err != nil || failed != nil || st.Parked.Count != len(want) || len(st.Parked.First) != len(want) || tr.ParkedJobs != len(want) {
		t.Errorf("%v, %v: status counts %d parked jobs and names %d, a pass counts %d, want %d", err, failed, st.Parked.Count, len(st.Parked.First), tr.ParkedJobs, len(want))
	}
	if got := listed(t, d, store.JobParked); got != names {
		t.Errorf("job list has the parked jobs %s, want %s", got, names)
	}
	d.Exec(t, "UPDATE "+plans+" SET parked = NULL, streak = 1")
}

// listed are the names of the jobs that job list shows for a state.
func listed(t *testing.T, d *storetest.DB, state string) string {
	t.Helper()
	list, err := d.Jobs(t.Context(), store.JobFilter{States: []string{state}})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return strings.Join(names, "|")
}
