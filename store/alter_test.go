package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

func oneJob(t *testing.T, d *storetest.DB) {
	t.Helper()
	step := store.Step{Name: "a", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}
	if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{step}}}}, store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}

// If two people edit a job at the same time, the later edit works on the result of the earlier one.
func TestEditorsLoseNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		oneJob(t, d)
		const editors, edits = 4, 5
		var all sync.WaitGroup
		errs := make(chan error, editors)
		for e := range editors {
			all.Go(func() {
				for i := range edits {
					_, err := d.AlterJob(t.Context(), "job", store.AlterOptions{}, func(j store.Job) (store.Job, error) {
						j.Tags = append(j.Tags[:len(j.Tags):len(j.Tags)], fmt.Sprintf("%d-%d", e, i))
						j.Priority++
						return j, nil
					})
					if err != nil {
						errs <- err
						return
					}
				}
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			t.Fatal(err)
		}
		j, err := d.Job(t.Context(), "job")
		if err != nil || j.Priority != editors*edits || len(j.Tags) != editors*edits {
			t.Errorf("%v: %d of %d edits, %d tags", err, j.Priority, editors*edits, len(j.Tags))
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes")+" WHERE action = 'change'"); n != editors*edits {
			t.Errorf("%d changes in the log, want %d", n, editors*edits)
		}
	})
}

// While somebody edits a job, plain SQL or a command such as job disable may change the row of the
// job. That change is not lost: it waits for the edit.
func TestAnEditKeepsWhatComesMeanwhile(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("one writer at a time")
		}
		oneJob(t, d)
		disabled := make(chan error, 1)
		tries := 0
		_, err := d.AlterJob(t.Context(), "job", store.AlterOptions{}, func(j store.Job) (store.Job, error) {
			if tries++; tries == 1 {
				go func() { disabled <- d.EnableJob(t.Context(), "job", false, store.Author{}) }()
				select { // without the lock, the change is done at once, and then lost
				case err := <-disabled:
					disabled <- err
				case <-time.After(500 * time.Millisecond):
				}
			}
			j.Priority = 7
			return j, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-disabled; err != nil {
			t.Fatal(err)
		}
		if j, err := d.Job(t.Context(), "job"); err != nil || !j.Disabled || j.Priority != 7 {
			t.Errorf("%v: disabled %t, priority %d; want both edits", err, j.Disabled, j.Priority)
		}
	})
}

// A dry run writes nothing, and says the same as the change itself.
func TestDryRunOfAnEdit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		oneJob(t, d)
		for _, dry := range []bool{true, false, false} {
			r, err := d.AlterJob(t.Context(), "job", store.AlterOptions{DryRun: dry}, func(j store.Job) (store.Job, error) {
				j.Name, j.Owner, j.Manifest, j.Priority = "other", "somebody", "theirs", 7
				return j, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if was := r.Before.Priority; was == 0 && (len(r.Changes) != 1 || len(r.Changes[0].Fields) != 1 || r.Changes[0].Fields[0].Field != "priority") || was == 7 && len(r.Changes) != 0 {
				t.Errorf("dry %t, priority %d before: %+v", dry, was, r.Changes)
			}
			if n := d.Int(t, "SELECT priority FROM "+d.Table("jobs")+" WHERE name = 'job'"); dry && n != 0 || !dry && n != 7 {
				t.Errorf("dry %t: priority %d", dry, n)
			}
		}
	})
}
