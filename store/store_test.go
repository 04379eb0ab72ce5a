package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

func sqlStep(name string, statements ...string) store.Step {
	b, err := json.Marshal(executor.SQLSpec{SQL: executor.Texts(statements...)})
	if err != nil {
		panic(err)
	}
	return store.Step{Name: name, Executor: "sql", Spec: b}
}

func TestApplyIsIdempotent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		v, err := d.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Log(v)
		defs := store.Definitions{
			Groups:    []store.Group{{Name: "etl", MaxRunning: 2}},
			Schedules: []store.Schedule{{Name: "nightly", Rule: "30 2 * * *", Zone: "Europe/Berlin"}},
			Jobs: []store.Job{
				// jsonb writes such numbers in another way
				{Name: "late", Steps: []store.Step{{Executor: "sql", Spec: []byte(`{"sql": [{"args": [1e3, -0.0, 2.5E-1, 1.50], "text": "SELECT 1"}]}`)}}},
				{Name: "rollup", Schedules: []string{"nightly"}, Tags: []string{"b", "a"},
					Own: &store.Schedule{Rule: "every 5m"}, Steps: []store.Step{sqlStep("load", "SELECT 1"), sqlStep("tell", "SELECT 2")}},
			},
		}
		changes, err := d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: "jobs"})
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) != 4 {
			t.Fatalf("changes: %+v", changes)
		}
		for range 2 {
			if changes, err = d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: "jobs"}); err != nil || len(changes) != 0 {
				t.Fatalf("again: %v, %+v", err, changes)
			}
		}
		defs.Jobs[1].Steps = defs.Jobs[1].Steps[:1]
		defs.Jobs[1].Schedules = nil
		changes, err = d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: "jobs"})
		if err != nil || len(changes) != 1 || len(changes[0].Fields) != 2 {
			t.Fatalf("change: %v, %+v", err, changes)
		}
		defs.Jobs = defs.Jobs[1:]
		defs.Schedules = nil
		changes, err = d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: "jobs", Prune: true})
		if err != nil || len(changes) != 2 {
			t.Fatalf("prune: %v, %+v", err, changes)
		}
	})
}

// A job, its schedule and the link between them begin at one instant, by the database's own clock. A
// nominal time between two of their instants would belong to nobody.
func TestAJobBeginsAtOneInstant(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		s, err := store.Open(t.Context(), d.URL, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		defs := store.Definitions{Schedules: []store.Schedule{{Name: "shared", Rule: "every 1s"}}}
		for i := range 50 { // SQLite's clock has milliseconds
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(i), Own: &store.Schedule{Rule: "every 1s"}, Schedules: []string{"shared"},
				Steps: []store.Step{sqlStep("", "SELECT 1")}})
		}
		if _, err := s.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		instants := d.Int(t, "SELECT count(*) FROM (SELECT created_at FROM "+d.Table("jobs")+" UNION SELECT changed_at FROM "+d.Table("jobs")+
			" UNION SELECT created_at FROM "+d.Table("schedules")+" UNION SELECT changed_at FROM "+d.Table("schedules")+
			" UNION SELECT created_at FROM "+d.Table("job_schedules")+" UNION SELECT changed_at FROM "+d.Table("changes")+") AS instants")
		if instants != 1 {
			t.Errorf("%d instants", instants)
		}
	})
}
