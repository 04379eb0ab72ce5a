package tick_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A freeze that comes between a pass's look at the queue and its lock of the runs, where a process may stand still for a minute:
// none of the runs begins, and the freeze is over before they do.
func TestPauseOfAllBeforeTheRunsAreLocked(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "job")
		var looked, frozen atomic.Bool
		calls := &storetest.Calls{Before: func(call storetest.Call) (err error) {
			switch {
			case call.Kind == storetest.Query && strings.HasPrefix(call.SQL, "SELECT id FROM") && strings.Contains(call.SQL, "queue"):
				looked.Store(true)
			case call.Kind == storetest.Begin && looked.Load() && frozen.CompareAndSwap(false, true):
				_, err = d.Pause(t.Context(), store.Subject{Scope: store.ScopeAll}, time.Time{}, store.Author{})
			}
			return err
		}}
		s := ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap})
		r, err := ticktest.New(t, s).Run(t.Context())
		if err != nil || !frozen.Load() || r.Started != 0 {
			t.Errorf("%v: frozen %v: %d started", err, frozen.Load(), r.Started)
		}
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{store.Queued}) {
			t.Errorf("in the freeze, the run is %v", got)
		}
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
		if d.Engine != "sqlite" { // one that is not committed yet holds nobody up
			tx, err := d.SQL.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }() // that is its end
			if _, err := tx.Exec("INSERT INTO " + d.Table("pauses") + " (scope) VALUES ('all')"); err != nil {
				t.Fatal(err)
			}
		}
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Errorf("after it: %+v", r)
		}
	})
}
