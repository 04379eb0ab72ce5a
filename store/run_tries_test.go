package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A run that is tried every second has tens of thousands of attempts after a day, each with its output. The newest are read, in their
// order, and none by a caller that wants none.
func TestRunReadsItsNewestAttempts(t *testing.T) {
	const tries, most = 1200, 1000
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{{Name: "load", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}}}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			r, err := d.RunNow(t.Context(), "job", store.Request{})
			if err != nil {
				t.Fatal(err)
			}
			d.Exec(t, fmt.Sprintf("INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at, output) SELECT r.id, i, 1, 'load', i, i, 'test', 'failed', r.created_at, 'text' FROM %s ORDER BY i",
				d.Table("attempts"), strings.Replace(storetest.Numbers(tries), "WHERE", "CROSS JOIN "+d.Table("runs")+" r WHERE", 1)))
			for want, read := range map[int]func() (store.RunDetail, error){
				most: func() (store.RunDetail, error) { return d.Run(t.Context(), r.ID) },
				1:    func() (store.RunDetail, error) { return d.RunWithTries(t.Context(), r.ID, 1) },
				0:    func() (store.RunDetail, error) { return d.RunWithTries(t.Context(), r.ID, 0) },
			} {
				c.Reset()
				got, err := read()
				if err != nil || len(got.Tries) != want {
					t.Fatalf("%v: %d attempts are read, want %d", err, len(got.Tries), want)
				}
				for i, a := range got.Tries {
					if a.Number != tries-want+1+i {
						t.Fatalf("attempt %d is number %d of %d", i, a.Number, want)
					}
				}
				for _, call := range c.All() {
					if want == 0 && strings.Contains(call.SQL, d.Table("attempts")) {
						t.Errorf("attempts are read: %s", call.SQL)
					}
				}
			}
		})
	}
}
