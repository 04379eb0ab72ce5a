package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// decideOnly is a pass that starts nothing.
func decideOnly(t testing.TB, d *storetest.DB) {
	t.Helper()
	tk := newTick(t, d.Store)
	tk.Limit = -1
	if _, err := tk.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A run that is opened again waits behind what is active, like every request, and makes no gap of an occurrence.
func TestARetriedRunWaitsItsTurn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: everyFiveMinutes(), Steps: []store.Step{step("", "INSERT INTO effects VALUES (1)")}}}})
		run(t, d)
		d.Clock.Add(5 * time.Minute)
		failed := run(t, d).Runs[0].ID
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Clock.Add(5 * time.Minute)
		decideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		r, err := d.RetryRun(t.Context(), failed, "", store.Author{})
		if err != nil || r.State != store.Waiting || r.ScheduledFor.Minute() != 5 || r.IntervalEnd.Minute() != 5 {
			t.Fatalf("%v: %+v", err, r)
		}
		decideOnly(t, d)
		if got := states(t, d, "job"); !slices.Equal(got, []string{store.Waiting, store.Running}) {
			t.Fatalf("beside what is active: %v", got)
		}
		d.Clock.Add(5 * time.Minute)
		decideOnly(t, d) // 08:15 becomes a run: the opened one is no occurrence that waits
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
			t.Fatal(err)
		}
		if r := run(t, d); r.Succeeded != 2 {
			t.Fatalf("%+v", r)
		}
		if got := states(t, d, "job"); !slices.Equal(got, []string{store.Succeeded, store.Succeeded, store.Succeeded}) {
			t.Fatalf("%v", got)
		}
		j, err := d.Job(t.Context(), "job")
		if err != nil || j.Streak != 0 || j.RunsOpen != 0 {
			t.Errorf("%v: %+v", err, j)
		}
	})
}

// A lost run has its hand-outs again; who lost it can finish nothing of it.
func TestALostRunThatIsRetried(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Handouts: 1, Steps: []store.Step{step("", "SELECT 1")}}}})
		request(t, d, "job")
		decideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		d.Clock.Add(time.Hour)
		run(t, d)
		if got := states(t, d, "job"); !slices.Equal(got, []string{store.Lost}) {
			t.Fatal(got)
		}
		if _, err := d.RetryRun(t.Context(), tasks[0].Run.ID, "", store.Author{}); err != nil {
			t.Fatal(err)
		}
		if r := run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Failed, Final: store.Failed}, h); err == nil {
			t.Error("the old holder finished it")
		}
	})
}
