package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// The runs that tried a step are those with an attempt of it. Each of them is found once, whatever
// else selects the runs. Each engine has a statement of its own for this.
func TestRunsThatTriedAStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		var jobs []store.Job
		for _, name := range []string{"a", "b"} {
			jobs = append(jobs, store.Job{Name: name, Steps: []store.Step{sqlStep("", "SELECT 1")}})
		}
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: jobs}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if _, err := d.RunNow(t.Context(), jobs[i%2].Name, store.Request{Key: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		all, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil || len(all) != 12 {
			t.Fatalf("%d runs, %v", len(all), err)
		}
		tried := map[string][]string{} // what each run tried
		for i, r := range all {
			steps := [][]string{{}, {"load"}, {"load", "load"}, {"load", "check"}, {"Load"}, {"check", "load", "check"}}[i/2]
			for n, step := range steps {
				d.Exec(t, fmt.Sprintf("INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at) SELECT id, %d, %d, '%s', 1, 1, 'test', 'failed', created_at FROM %s WHERE id = '%s'",
					d.Table("attempts"), n+1, n+1, step, d.Table("runs"), r.ID))
			}
			tried[r.ID] = steps
		}
		for _, step := range []string{"load", "check", "Load", "loa", "never"} {
			for _, f := range []store.RunFilter{{}, {Job: "a"}, {Job: "a", States: []string{all[0].State}}, {States: []string{all[0].State}}, {States: []string{store.Lost}}, {States: []string{all[0].State, store.Lost, all[0].State}}, {Limit: 3}} {
				f.Step = step
				got, err := d.Runs(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, r := range all {
					if slices.Contains(tried[r.ID], step) && (f.Job == "" || r.Job == f.Job) && (f.States == nil || slices.Contains(f.States, r.State)) && (f.Limit == 0 || len(want) < f.Limit) {
						want = append(want, r.ID)
					}
				}
				if found := ids(got); !slices.Equal(found, want) {
					t.Errorf("%+v: found %v, want %v", f, found, want)
				}
			}
		}
	})
}

func ids(list []store.Run) (all []string) {
	for i := range list {
		all = append(all, list[i].ID)
	}
	return all
}
