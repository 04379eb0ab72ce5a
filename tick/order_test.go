package tick_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Runs that plain SQL asks for have ids that are no times, such as gen_random_uuid() and UUID() make: a queue is first in,
// first out all the same, a job's requests run in their order, and the list has the newest first.
func TestRunsGoByTimeWhateverTheirIDs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		one := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Overlap: "wait-all", Steps: one}, {Name: "b", Steps: one}, {Name: "c", Steps: one}}})
		ticktest.Run(t, d)
		var want []string // in the order in which they were asked for
		for i, ask := range []struct{ job, id string }{
			{"c", "f1"}, {"a", "b2"}, {"a", "a3"}, {"b", "04"}, {"a", "55"}, {"a", "06"},
		} {
			id := ask.id + "000000-0000-4000-8000-00000000000" + fmt.Sprint(i)
			d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, occurrence, ready_at, created_at) SELECT '%s', id, 'now:%d', %[4]s, %[4]s FROM %[5]s WHERE name = '%s'",
				d.Table("runs"), id, i, ticktest.Literal(d, d.Clock.Now()), d.Table("jobs"), ask.job))
			want = append(want, id)
			d.Clock.Add(time.Second)
		}
		tk := ticktest.New(t, d.Store)
		tk.Limit, tk.Concurrency = 1, 1
		var took []string
		for range want {
			r, err := tk.Run(t.Context())
			if err != nil || len(r.Runs) != 1 {
				t.Fatalf("%v: %+v", err, r)
			}
			took = append(took, r.Runs[0].ID)
		}
		// Of the job a, one runs at a time, and is asked for anew when it has ended.
		if !slices.Equal(took, want) {
			t.Errorf("taken in the order %v, want %v", took, want)
		}
		list, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil || len(list) != len(want) {
			t.Fatalf("%v: %+v", err, list)
		}
		var told []string
		for i := range list {
			told = append(told, list[i].ID)
		}
		slices.Reverse(told)
		if !slices.Equal(told, want) {
			t.Errorf("listed in the order %v, want %v, the newest first", told, want)
		}
	})
}
