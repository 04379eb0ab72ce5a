package store_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// If jobs are alike, one of them is read whole, and of the others only the columns that may differ. An
// edit of any column is still seen, in the job that has it and in no other.
func TestApplySeesEachColumnOfJobsThatAreAlike(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		var defs store.Definitions
		for i := range 6 {
			j := store.Job{Name: fmt.Sprint("job ", i), Priority: i / 3, Description: "some", Tags: []string{"red"}, Schedules: []string{"nightly"},
				Own: &store.Schedule{Rule: "every 5m"}, Heartbeat: store.Heartbeat{URL: "https://example.org/1"},
				Steps: []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}}
			if i == 5 {
				j.After = []store.After{{Job: "job 4"}}
			}
			defs.Jobs = append(defs.Jobs, j)
		}
		defs.Schedules = []store.Schedule{{Name: "nightly", Rule: "0 2 * * *"}}
		apply := func(dry bool) []store.Change {
			t.Helper()
			changes, err := d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: "m", DryRun: dry})
			if err != nil {
				t.Fatal(err)
			}
			return changes
		}
		if changes := apply(false); len(changes) != 7 {
			t.Fatal(changes)
		}
		jobs := d.Table("jobs")
		for _, edit := range []string{
			"UPDATE " + jobs + " SET description = 'other' WHERE name = 'job %d'",
			"UPDATE " + jobs + " SET heartbeat_url = 'https://example.org/2' WHERE name = 'job %d'",
			"UPDATE " + jobs + " SET heartbeat_start = 'https://example.org/2' WHERE name = 'job %d'",
			"UPDATE " + jobs + " SET heartbeat_success = 'https://example.org/2' WHERE name = 'job %d'",
			"UPDATE " + jobs + " SET heartbeat_failure = 'https://example.org/2' WHERE name = 'job %d'",
			"UPDATE " + jobs + " SET manifest = NULL WHERE name = 'job %d'",
			"UPDATE " + jobs + " SET priority = 1 - priority WHERE name = 'job %d'", // as the others have it
			"UPDATE " + jobs + " SET tags = '[\"blue\"]' WHERE name = 'job %d'",
			"UPDATE " + d.Table("steps") + " SET name = 'other' WHERE job_id = (SELECT id FROM " + jobs + " WHERE name = 'job %d')",
			"UPDATE " + d.Table("schedules") + " SET rule = 'every 6m' WHERE job_id = (SELECT id FROM " + jobs + " WHERE name = 'job %d')",
			"DELETE FROM " + d.Table("job_schedules") + " WHERE job_id = (SELECT id FROM " + jobs + " WHERE name = 'job %d')" +
				" AND schedule_id = (SELECT id FROM " + d.Table("schedules") + " WHERE name = 'nightly')",
		} {
			for _, i := range []int{0, 1, 4, 5} {
				d.Exec(t, fmt.Sprintf(edit, i))
				for _, dry := range []bool{true, false} {
					changes := apply(dry)
					if len(changes) != 1 || changes[0].Action != "change" || changes[0].Kind != "job" || changes[0].Subject[len(changes[0].Subject)-5:] != fmt.Sprint("job ", i) {
						t.Fatalf("%s: %+v", fmt.Sprintf(edit, i), changes)
					}
				}
			}
		}
		if changes := apply(false); len(changes) != 0 {
			t.Error(changes)
		}
	})
}

// A file may have many jobs that run after jobs that are done. The memory that apply allocates grows as the file does.
// The test is not parallel: it counts what the process allocates.
func TestApplyOfManyFollowersOfDoneJobs(t *testing.T) {
	const n = 1000
	d := storetest.Open(t, "sqlite", store.Options{})
	var defs store.Definitions
	for i := range n {
		once := store.Job{Name: fmt.Sprint("once ", i), RemoveDone: true, Own: &store.Schedule{Rule: "at 2026-01-05T08:05:00Z"}, Steps: []store.Step{sqlStep("", "SELECT 1")}}
		follower := store.Job{Name: fmt.Sprint("follower ", i), After: []store.After{{Job: once.Name}}, Steps: once.Steps}
		defs.Jobs = append(defs.Jobs, once, follower)
	}
	o := store.ApplyOptions{Manifest: "m"}
	if _, err := d.Apply(t.Context(), defs, o); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, "UPDATE "+d.Table("jobs")+" SET removed_at = created_at, done_at = created_at WHERE name LIKE 'once %'")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	changes, err := d.Apply(t.Context(), defs, o)
	runtime.ReadMemStats(&after)
	if err != nil || len(changes) != n || changes[0].Action != "done" {
		t.Fatal(err, len(changes))
	}
	if each := (after.Mallocs - before.Mallocs) / n; each > n {
		t.Errorf("%d allocations for each of %d followers", each, n)
	}
}
