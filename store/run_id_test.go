package store_test

import (
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// SQL may give a run an id of its own: what finds runs finds it by that id. PostgreSQL has UUIDs only.
func TestRunWithAnIDOfItsOwn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{sqlStep("", "SELECT 1")}}}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		list := []string{"0f1e2d3c-4b5a-4968-8776-655443322110"}
		if d.Engine != "postgres" {
			list = append(list, "9f3c2d1e0f1e2d3c4b5a69788796a5b4", "0F1E2D3C-4B5A-4968-8776-655443322111", "abcd", "by-hand.7")
		}
		for _, id := range list {
			d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence) SELECT '"+id+"', id, 'key:"+id+"' FROM "+d.Table("jobs"))
			for _, name := range []string{id, "job#" + id} {
				if r, err := d.Run(t.Context(), name); err != nil || r.ID != id {
					t.Errorf("run %s: found %q, %v", name, r.ID, err)
				}
			}
			if r, err := d.RunNow(t.Context(), "job", store.Request{Key: id}); err != nil || !r.Existing || r.ID != id {
				t.Errorf("key %s: made %q, known %t, %v", id, r.ID, r.Existing, err)
			}
			if _, err := d.CancelRun(t.Context(), "job#"+id, store.Author{}); err != nil {
				t.Errorf("cancel %s: %v", id, err)
			}
		}
	})
}

// JOB#NUMBER is a run of the job that has the name now. The name that a list gives a run always finds that run, whether its job was
// removed, made again, or removed again.
func TestRunOfAJobWhoseNameAnotherHas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		remove := func(job string) {
			t.Helper()
			if err := d.RemoveJob(t.Context(), job, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		for made := 1; made <= 4; made++ {
			jobs := []store.Job{{Name: "again", Steps: []store.Step{sqlStep("", "SELECT 1")}}, {Name: "once", Steps: []store.Step{sqlStep("", "SELECT 1")}}}
			if made > 1 {
				remove("again")
				jobs = jobs[:1]
			}
			if made < 4 {
				if _, err := d.Apply(t.Context(), store.Definitions{Jobs: jobs}, store.ApplyOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, j := range jobs {
				if made < 4 {
					if _, err := d.RunNow(t.Context(), j.Name, store.Request{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if d.Exec(t, "UPDATE "+d.Table("runs")+" SET number = 1"); made == 1 {
				remove("once")
			}
			runs, err := d.Runs(t.Context(), store.RunFilter{})
			if err != nil || len(runs) != min(made, 3)+1 {
				t.Fatalf("%d runs, %v", len(runs), err)
			}
			numbered := 0
			for _, r := range runs {
				if r.Label() == r.FullJob()+"#1" {
					numbered++
				}
				if found, err := d.Run(t.Context(), r.Label()); err != nil || found.ID != r.ID || found.Label() != r.Label() {
					t.Errorf("made %d times: run %s is named %s, which finds %q, %v", made, r.ID, r.Label(), found.ID, err)
				}
			}
			if want := map[bool]int{true: 1}[made < 4]; numbered != want {
				t.Errorf("made %d times: %d runs are named by their numbers, want %d", made, numbered, want)
			}
		}
	})
}
