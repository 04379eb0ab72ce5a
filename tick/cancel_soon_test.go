package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Who wants a run cancelled does not wait for a heartbeat: its statement of half a minute is stopped within seconds.
func TestACancelReachesAStatementSoon(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		long := map[string]string{"postgres": "SELECT pg_sleep(30)", "mariadb": "DO SLEEP(30)",
			"sqlite": "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000000000) SELECT count(*) FROM c"}[d.Engine]
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", long)}}}})
		ticktest.Request(t, d, "job")
		ticktest.DecideOnly(t, d)
		list, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(list) != 1 {
			t.Fatal(err, list)
		}
		asked := make(chan time.Time, 1)
		go func() {
			for {
				if r, err := d.Run(t.Context(), list[0].ID); err != nil || r.State == store.Running {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			asked <- time.Now()
			if _, err := d.CancelRun(t.Context(), list[0].ID, store.Author{}); err != nil {
				t.Error(err)
			}
		}()
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{})).Run(t.Context())
		took := time.Since(<-asked)
		if err != nil || r.Cancelled != 1 {
			t.Errorf("%v: %+v", err, r)
		}
		if t.Logf("after %s", took); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
