package tick_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run is requested at the moment at which a pass removes its job as done. Then there is no such job any more. Otherwise the
// request would succeed, and the next pass would cancel its run.
func TestRunRequestedWhileItsJobIsRemoved(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue // one transaction at a time
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var request func()
			calls.Before = func(c storetest.Call) error {
				if do := request; do != nil && strings.Contains(c.SQL, "done_at =") {
					request = nil
					do()
				}
				return nil
			}
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			beside, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer beside.Close()
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{once()}})
			c := &course{DB: d}
			c.follow(t, "08:00 tick; 08:05 tick take")
			answers := make(chan error, 3)
			request = func() {
				day := store.Interval{Start: d.Clock.Now().Add(-24 * time.Hour), End: d.Clock.Now()}
				go func() {
					_, err := beside.RunNow(t.Context(), "job", store.Request{})
					answers <- err
				}()
				go func() {
					_, err := beside.Backfill(t.Context(), "job", day, false, store.Author{}, func(store.BackfillInput) ([]store.Interval, error) {
						return []store.Interval{{End: day.Start.Add(time.Hour)}}, nil
					})
					answers <- err
				}()
				go func() {
					_, err := d.SQL.ExecContext(t.Context(), map[string]string{"postgres": "SELECT dbjobs.run_now('job')", "mariadb": "CALL dbjobs_run_now('job', NULL, NULL, NULL, NULL)"}[d.Engine])
					if err != nil && strings.Contains(err.Error(), "job job: not found") {
						err = store.ErrNotFound
					}
					answers <- err
				}()
				select { // all of them wait for the pass; without that, they are done here
				case err := <-answers:
					answers <- err
				case <-time.After(500 * time.Millisecond):
				}
			}
			c.follow(t, "08:06 end=succeeded tick; 08:07 tick")
			for range 3 {
				if err := <-answers; !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%v, want that there is no such job", err)
				}
			}
			if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")); n != 1 {
				t.Errorf("%d runs, want the one that was due", n)
			}
		})
	}
}
