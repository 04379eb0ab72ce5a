package store_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// Whatever removes a job or a schedule ends its pause: nobody can name it afterwards to resume it. Other pauses go on.
func TestAPauseEndsWithItsSubject(t *testing.T) {
	who := store.Author{By: "ada"}
	apply := func(t *testing.T, d *storetest.DB, defs store.Definitions) {
		t.Helper()
		if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{Author: who, Manifest: "m", Prune: true}); err != nil {
			t.Fatal(err)
		}
	}
	steps := []store.Step{sqlStep("", "SELECT 1")}
	stays := store.Definitions{Schedules: []store.Schedule{{Name: "stays", Rule: "every 5m"}}, Jobs: []store.Job{{Name: "stays", Steps: steps}}}
	ways := map[string]func(t *testing.T, d *storetest.DB) error{
		"remove": func(t *testing.T, d *storetest.DB) error {
			if err := d.RemoveJob(t.Context(), "goes", who); err != nil {
				return err
			}
			_, err := d.RemoveSchedule(t.Context(), "goes", false, store.AlterOptions{Author: who})
			return err
		},
		"detach": func(t *testing.T, d *storetest.DB) error {
			if _, err := d.RemoveSchedule(t.Context(), "goes", true, store.AlterOptions{Author: who}); err != nil {
				return err
			}
			return d.RemoveJob(t.Context(), "goes", who)
		},
		"prune": func(t *testing.T, d *storetest.DB) error {
			apply(t, d, stays)
			return nil
		},
	}
	for name, remove := range ways {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				apply(t, d, store.Definitions{Schedules: append([]store.Schedule{{Name: "goes", Rule: "every 1h"}}, stays.Schedules...),
					Jobs: append([]store.Job{{Name: "goes", Schedules: []string{"goes"}, Steps: steps}}, stays.Jobs...)})
				for _, scope := range []string{store.ScopeJob, store.ScopeSchedule} {
					for _, subject := range []string{"goes", "stays"} {
						if _, err := d.Pause(t.Context(), store.Subject{Scope: scope, Name: subject}, time.Time{}, store.Author{By: "bob"}); err != nil {
							t.Fatal(err)
						}
					}
				}
				d.Clock.Add(time.Minute)
				if err := remove(t, d); err != nil {
					t.Fatal(err)
				}
				all, err := d.Pauses(t.Context(), true, 10)
				if err != nil || len(all) != 4 {
					t.Fatalf("%v: %+v", err, all)
				}
				ended := 0
				for _, p := range all {
					if p.ResumedAt.Equal(d.Clock.Now()) && p.ResumedBy == "ada" && !p.Missed {
						ended++
					}
				}
				held, err := d.Pauses(t.Context(), false, 10)
				if err != nil || ended != 2 || len(held) != 2 || held[0].Scope == held[1].Scope {
					t.Errorf("%v: %d have ended; these hold: %+v", err, ended, held)
				}
			})
		})
	}
}
