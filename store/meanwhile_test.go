package store_test

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// meanwhile opens a database, in which do happens as soon as the next transaction of the store is about to begin.
func meanwhile(t *testing.T, e string) (d *storetest.DB, next func(do func())) {
	var calls storetest.Calls
	var armed func()
	calls.Before = func(c storetest.Call) error {
		if do := armed; c.Kind == storetest.Begin && do != nil {
			armed = nil
			do()
		}
		return nil
	}
	d = storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
	return d, func(do func()) { armed = do }
}

// A command about a run looks it up first, and changes it then. What happens to the run in between is what the command says.
func TestARunThatIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d, next := meanwhile(t, e)
			steps := []store.Step{{Name: "a", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: steps}}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			r, err := d.RunNow(t.Context(), "job", store.Request{})
			if err != nil {
				t.Fatal(err)
			}
			becomes := func(state string) func() {
				return func() { d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = '"+state+"' WHERE id = '"+r.ID+"'") }
			}
			next(becomes("succeeded"))
			if _, err := d.CancelRun(t.Context(), r.ID, store.Author{}); err == nil || !strings.Contains(err.Error(), "has ended: succeeded") {
				t.Errorf("a run that has just succeeded is cancelled: %v", err)
			}
			becomes("failed")()
			next(becomes("running"))
			if _, err := d.RetryRun(t.Context(), r.ID, "", store.Author{}); err == nil || !strings.Contains(err.Error(), "is running: only a run that failed") {
				t.Errorf("a run that was just opened again is opened again: %v", err)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes")+" WHERE action IN ('cancel', 'retry')"); n != 0 {
				t.Errorf("%d changes are on record", n)
			}
		})
	}
}
