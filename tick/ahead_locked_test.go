package tick_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

// A step may write to an SQLite file for longer than the pass tries to return the runs behind it. They stay with the pass, and are
// returned when the lock is gone, however long the run goes on that executes: no other pass takes them for lost as long as this
// process lives. A pass that is asked to stop meanwhile returns them, too, if the lock is gone before it has to end.
func TestTakenAheadIsGivenBackAfterALongWrite(t *testing.T) {
	storetest.Needs(t, "sqlite") // it is about a file
	for name, stops := range map[string]bool{"goes on": false, "is asked to stop": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { // minutes take no time
				d := storetest.Open(t, "sqlite", store.Options{})
				queued(t, d, 5)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				tk, executed := aheadOf(t, d, func(context.Context) {
					tx, err := d.SQL.BeginTx(t.Context(), nil) // immediate: it holds the lock for writing
					if err != nil {
						t.Error(err)
						return
					}
					d.Clock.Add(time.Minute)
					time.Sleep(10 * time.Minute)
					if stops {
						stop()
						time.Sleep(10 * time.Minute)
					}
					if err := tx.Rollback(); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Minute)
					if n := d.Int(t, "SELECT count(*) FROM dbjobs_runs WHERE state = 'running'"); n != 1 {
						t.Errorf("%d runs are held", n)
					}
				})
				tk.Grace = time.Hour
				r, err := tk.Work(ctx)
				const once, back, again = "succeeded fence 1 losses 0 tries 1 of 1 started true", "queued fence 1 losses 0 tries 0 of 0 started false\n",
					"\nsucceeded fence 2 losses 0 tries 1 of 1 started true"
				want, runs := once+"\n"+once+again+again+again, 5
				if stops {
					want, runs = back+back+back+once+"\n"+once, 2
				}
				if stops != (err != nil) || *executed != runs || r.Started != runs || r.Succeeded != runs {
					t.Errorf("%v: executed %d: %+v", err, *executed, r)
				}
				if got := states(t, d); got != want {
					t.Error(got)
				}
			})
		})
	}
}
