package store_test

import (
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// If many clients request a run with one key at the same time, one of them makes it, and all others find that run.
func TestOneRunForAKey(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		jobs := []store.Job{{Name: "job", Steps: []store.Step{{Name: "a", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}}}
		jobs = append(jobs, store.Job{Name: "other", Steps: jobs[0].Steps})
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: jobs}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		const competitors = 8
		for round := range 5 {
			key := string(rune('a' + round))
			var answers [competitors]store.RequestedRun
			var errs [competitors]error
			var all sync.WaitGroup
			start := make(chan struct{})
			for i := range competitors {
				all.Go(func() {
					<-start
					answers[i], errs[i] = d.RunNow(t.Context(), "job", store.Request{Key: key})
				})
			}
			close(start)
			all.Wait()
			made := 0
			for i, r := range answers {
				if errs[i] != nil {
					t.Fatalf("round %d: %v", round, errs[i])
				}
				if !r.Existing {
					made++
				}
				if r.ID != answers[0].ID {
					t.Errorf("round %d: runs %s and %s", round, answers[0].ID, r.ID)
				}
			}
			if made != 1 {
				t.Errorf("round %d: %d made the run", round, made)
			}
			other, err := d.RunNow(t.Context(), "other", store.Request{Key: key})
			if err != nil || other.Existing {
				t.Errorf("round %d: another job shares the key: %v", round, err)
			}
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")); n != 10 {
			t.Errorf("%d runs, want one for each job and key", n)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes")+" WHERE action = 'run-now'"); n != 10 {
			t.Errorf("%d requests in the change log, want those that made a run", n)
		}
	})
}
