package tick_test

import (
	"context"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Nobody waits for the record of a success. A run that was delivered again meanwhile is reported as delivered again,
// not as succeeded. It does not stop the other ends that are recorded with it.
func TestSuccessesRecordedLater(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 6)
		again := make(chan string, 1)
		again <- ""
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			if <-again == "" {
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET fence = fence + 1 WHERE id = '"+r.Task.Run.ID+"'")
			}
			again <- r.Task.Run.ID
			return executor.Result{}, nil
		})
		tk.Concurrency, tk.Queues = 2, []string{"others"}
		r, err := tk.Work(t.Context())
		if err != nil || r.Started != 6 || r.Succeeded != 5 || r.Outdated != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = '"+store.Succeeded+"'"); n != 5 {
			t.Errorf("%d runs have succeeded", n)
		}
	})
}
