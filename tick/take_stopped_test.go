package tick_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A pass that is asked to stop while it takes runs gives them back: none of them begins, and none loses a delivery. It makes no
// difference whether the request comes right after the COMMIT of the take, or while the server still commits.
func TestTakeBesideAStop(t *testing.T) {
	stopped := func(t *testing.T, d *storetest.DB, grace time.Duration, hook func(c *storetest.Calls, stop func())) {
		t.Helper()
		const runs = 3
		ids := queued(t, d, runs)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var calls storetest.Calls
		hook(&calls, stop)
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			t.Error("a run began")
			return executor.Result{}, nil
		})
		tk.Store, tk.Grace = ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}), grace
		if r, err := tk.Work(ctx); !errors.Is(err, context.Canceled) || r.Started != 0 {
			t.Errorf("%v: %+v", err, r)
		}
		time.Sleep(500 * time.Millisecond) // for a COMMIT that nobody waits for any more
		for _, id := range ids {
			if r, err := d.Run(t.Context(), id); err != nil || r.State != store.Queued || r.Losses != 0 || len(r.Tries) != 0 {
				t.Errorf("%v: %s, %d losses, %d attempts", err, r.State, r.Losses, len(r.Tries))
			}
		}
	}
	begins := func(c storetest.Call) bool {
		return c.Kind == storetest.Exec && strings.HasPrefix(c.SQL, "INSERT INTO") && strings.Contains(c.SQL, "attempts")
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		for _, grace := range []time.Duration{0, time.Second} {
			stopped(t, d, grace, func(calls *storetest.Calls, stop func()) {
				begun := false
				calls.After = func(c storetest.Call) error {
					if begun = begun || begins(c); begun && c.Kind == storetest.Commit {
						stop()
					}
					return nil
				}
			})
			d.Exec(t, "DELETE FROM "+d.Table("runs"))
		}
		if d.Engine != "postgres" { // elsewhere no COMMIT can be made to last
			return
		}
		d.Exec(t, "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "+
			"'BEGIN BEGIN PERFORM pg_sleep(0.1); EXCEPTION WHEN query_canceled THEN NULL; END; RETURN NULL; END'")
		d.Exec(t, "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON dbjobs.attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()")
		stopped(t, d, 0, func(calls *storetest.Calls, stop func()) {
			calls.After = func(c storetest.Call) error {
				if begins(c) {
					time.AfterFunc(150*time.Millisecond, stop)
				}
				return nil
			}
		})
	})
}
