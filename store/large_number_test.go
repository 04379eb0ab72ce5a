package store_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A number that a statement compares with zero may be larger than 32 bits: milliseconds are so after 24.8 days, and ids are so where a
// server does not count them up from one.
func TestLargeNumbers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const month = 30 * 24 * time.Hour
		d.Exec(t, "INSERT INTO "+d.Table("schedules")+" (id, name, rule) VALUES (3000000000, 'large', 'every 1d')")
		j := store.Job{Name: "job", Schedules: []string{"large"}, Steps: []store.Step{sqlStep("one", "SELECT 1"), sqlStep("two", "SELECT 1")}}
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RunNow(t.Context(), "job", store.Request{}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'queued'")
		if runs, err := d.Runs(t.Context(), store.RunFilter{Schedule: "large"}); err != nil || len(runs) != 1 {
			t.Errorf("%d runs of the schedule, %v", len(runs), err)
		}
		h := store.Holder{Name: "here", Lease: time.Minute, Until: d.Clock.Now(), Within: month, Timed: true}
		if tasks, err := d.Take(t.Context(), "tick", 1, h); err != nil || len(tasks) != 0 {
			t.Errorf("%d runs without a timeout taken, %v", len(tasks), err)
		}
		h.Timed = false
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%d runs taken, %v", len(tasks), err)
		}
		tasks[0].Waited = month
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, NextStep: 2}, h); err != nil {
			t.Error(err)
		}
	})
}
