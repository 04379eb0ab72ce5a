package tick_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A standby takes over that has not got the last transaction of the old server, although that one had confirmed its COMMIT: the
// effect of an atomic step is gone, and the record of its attempt with it. The run has not succeeded then. It executes again.
func TestAtomicStepWhoseCommitIsGoneExecutesAgain(t *testing.T) {
	for _, jobs := range []int{1, 4} { // the end of one run, and of several together
		t.Run(fmt.Sprint(jobs), func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				d.Exec(t, "CREATE TABLE effects (n int)")
				var defs store.Definitions
				for n := range jobs {
					defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job", n), MaxDeliveries: 1, Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)")}})
				}
				ticktest.Apply(t, d, defs)
				for _, j := range defs.Jobs {
					ticktest.Request(t, d, j.Name)
				}
				tk := ticktest.New(t, d.Store)
				steps := tk.Executors["sql"]
				tk.Executors["sql"] = ticktest.Doing(func(ctx context.Context, r executor.Request) (executor.Result, error) {
					res, err := steps.Execute(ctx, r)
					if err == nil && res.Ended {
						d.Exec(t, "DELETE FROM effects")
						d.Exec(t, "UPDATE "+d.Table("attempts")+" SET state = 'running', finished_at = NULL WHERE run_id = '"+r.Task.Run.ID+"'")
					}
					return res, err
				})
				if r, err := tk.Run(t.Context()); err != nil || r.Waiting != jobs || r.Succeeded > 0 || !strings.Contains(r.Runs[0].Error, "took over") {
					t.Fatalf("%v: %+v", err, r)
				}
				d.Clock.Add(time.Minute)
				if r := ticktest.Run(t, d); r.Succeeded != jobs {
					t.Errorf("%+v", r)
				}
				if n := d.Int(t, "SELECT count(*) FROM effects"); n != jobs {
					t.Errorf("%d effects of %d runs", n, jobs)
				}
			})
		})
	}
}
