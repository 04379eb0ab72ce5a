package load

import (
	"fmt"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A batch has up to a thousand jobs: new, unchanged, changed and removed ones. It is read, compared
// and written by a number of calls that does not depend on how many jobs it holds.
func TestRoundTripsOfApply(t *testing.T) {
	t.Parallel()
	const few, many = 10, 300
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			calls := map[string]string{}
			for _, n := range []int{few, many} {
				var c storetest.Calls
				d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
				apply := func(what string, to store.Definitions, action string, want int) {
					t.Helper()
					c.Reset()
					progress := 0
					changes, err := d.Apply(t.Context(), to, store.ApplyOptions{Manifest: "test", Prune: true, Progress: func(done, of int) { progress = done - of }})
					if err != nil {
						t.Fatalf("%s of %d: %v", what, n, err)
					}
					found := 0
					for _, change := range changes {
						if change.Kind == "job" && change.Action == action {
							found++
						}
					}
					if found != want || progress != 0 {
						t.Errorf("%s of %d: %d of %d jobs, progress %d: %v", what, n, found, want, progress, changes)
					}
					made := ticktest.Kinds(&c)
					if first, ok := calls[what]; !ok {
						t.Logf("%s: %s", what, made)
						calls[what] = made
					} else if first != made {
						t.Errorf("%s: %s for %d jobs, %s for %d", what, first, few, made, n)
					}
				}
				apply("new", bunch(n, 1), "create", n)
				apply("unchanged", bunch(n, 1), "create", 0)
				apply("changed", bunch(n, 2), "change", n)
				apply("other rules", bunch(n, 3), "change", n)
				half := bunch(n, 3)
				half.Jobs = half.Jobs[:n/2]
				apply("half removed", half, "remove", n-n/2)
				for table, want := range map[string]int{"steps": 2 * n, "job_schedules": n / 2, "changes": 3*n + n - n/2 + 3} {
					if got := d.Int(t, "SELECT COUNT(*) FROM "+d.Table(table)); got != want {
						t.Errorf("%d jobs: %d rows of %s, want %d", n, got, table, want)
					}
				}
			}
		})
	}
}

// bunch returns jobs in several versions. Some share schedules, some have a schedule of their own,
// some run after others.
func bunch(n, version int) store.Definitions {
	d := store.Definitions{Groups: []store.Group{{Name: "few", MaxRunning: 3}}}
	for i := range 2 {
		d.Schedules = append(d.Schedules, store.Schedule{Name: fmt.Sprint("shared ", i), Rule: "every 5m"})
	}
	for i := range n {
		j := store.Job{Name: fmt.Sprintf("job %03d", i), Tags: []string{"<a>"}, Group: "few",
			Steps: []store.Step{ticktest.Step("one", fmt.Sprint("SELECT ", version)), ticktest.Step("two", "SELECT 'ß\\n\"'")}}
		switch (i + version/3) % 3 { // the third version gives each job another kind of schedule
		case 0:
			j.Own = &store.Schedule{Rule: "every 7m", Description: fmt.Sprint("version ", version)}
		case 1:
			j.Schedules = []string{fmt.Sprint("shared ", version%2)}
		case 2:
			j.After = []store.After{{Job: fmt.Sprintf("job %03d", (i+3)%n/3*3)}}
			if version == 3 {
				j.After = nil
				j.Schedules = []string{"shared 0"}
			}
		}
		d.Jobs = append(d.Jobs, j)
	}
	return d
}
