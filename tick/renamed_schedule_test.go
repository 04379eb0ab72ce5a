package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A schedule gets another name, by a command or by a file: the state of each of its jobs, and why it has that, stay.
func TestRenamedScheduleKeepsTheStatesOfItsJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Schedules: []store.Schedule{{Name: "at", Rule: once().Own.Rule}}}
		for _, name := range []string{"aborted", "disabled", "resumed", "sleeping"} {
			j := once()
			j.Name, j.Own, j.Schedules = name, nil, []string{"at"}
			defs.Jobs = append(defs.Jobs, j)
		}
		o := store.ApplyOptions{Manifest: "jobs"}
		brought(t, d, defs, o)
		ticktest.Run(t, d)
		if _, err := d.AbortJob(t.Context(), "aborted", false, store.Author{Reason: "vendor broken"}); err != nil {
			t.Fatal(err)
		}
		if err := d.EnableJob(t.Context(), "disabled", false, store.Author{Reason: "not needed"}); err != nil {
			t.Fatal(err)
		}
		resumed := store.Subject{Scope: store.ScopeJob, Name: "resumed"}
		ticktest.Pause(t, d, resumed, time.Time{})
		ticktest.Resume(t, d, resumed, false)
		standing := func() (list []string) {
			for i := range defs.Jobs {
				v, err := d.Job(t.Context(), defs.Jobs[i].Name)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, v.State)
			}
			return append(list, seen(t, d, "v_jobs", "name, state, why", "ORDER BY name")...)
		}
		before := standing()
		if want := []string{"aborted", "disabled", "resumed", "sleeping"}; !slices.Equal(before[:4], want) {
			t.Fatalf("the jobs are %q, want %q", before, want)
		}
		if _, err := d.RenameSchedule(t.Context(), "at", "then", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := standing(); !slices.Equal(got, before) {
			t.Errorf("after a rename by a command: %q, want %q", got, before)
		}
		defs.Schedules[0].Name, defs.Renames = "last", []store.Rename{{Kind: "schedule", From: "then", To: "last"}}
		for i := range defs.Jobs {
			defs.Jobs[i].Schedules = []string{"last"}
			defs.Jobs[i].Disabled = i < 2
		}
		brought(t, d, defs, o)
		if got := standing(); !slices.Equal(got, before) {
			t.Errorf("after a rename by a file: %q, want %q", got, before)
		}
	})
}
