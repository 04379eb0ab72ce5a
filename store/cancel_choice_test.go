package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A run that a process takes while its open runs are looked for is one of them, at whatever call: the one that waits behind it is
// not cancelled in its place.
func TestARunThatIsTakenWhileOneIsChosen(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var asked func()
			calls.Before = func(c storetest.Call) error {
				if c.Kind == storetest.Query && asked != nil {
					asked()
				}
				return nil
			}
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			steps := []store.Step{{Name: "a", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: steps}}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			var requested [2]string
			for i := range requested {
				r, err := d.RunNow(t.Context(), "job", store.Request{Key: strings.Repeat("k", i+1)})
				if err != nil {
					t.Fatal(err)
				}
				requested[i] = r.ID
			}
			becomes := func(state string) {
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = '"+state+"' WHERE id = '"+requested[0]+"'")
			}
			for at, taken := 1, true; taken; at++ {
				becomes("queued")
				n := 0
				taken = false
				asked = func() {
					if n++; n == at {
						taken = true
						becomes("running")
					}
				}
				_, err := d.CancelRun(t.Context(), "job", store.Author{})
				asked = nil
				if refused := new(store.FieldError); !errors.As(err, &refused) || !strings.Contains(err.Error(), "several runs") {
					t.Fatalf("taken before query %d: %v", at, err)
				}
			}
		})
	}
}
