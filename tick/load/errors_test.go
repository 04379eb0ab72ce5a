package load

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// What failed lately is found among a year of failed runs without a look at their attempts, and the runs under way among those that have ended. The errors of one job are found
// without a look at the attempts of its runs that went well, and how long runs take, without a look at old runs.
func TestQuestionsReadNoOldHistory(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			n := extent{200, 10_000, 10, 10, 50}
			const failed, waiting, recent = 200, 1000, 30 // of the runs of crowded, every fiftieth has failed
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			crowded(t, d, n)
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET job_id = 8, number = number * 1000 + job_id, error = CASE WHEN state = 'failed' THEN 'no' END WHERE job_id > 20")
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'waiting', held_by = 'predecessor', attempts = 0, finished_at = NULL, settled_at = NULL WHERE job_id <> 8 AND state = 'succeeded'")
			d.Exec(t, "UPDATE "+d.Table("plans")+" SET runs_made = (SELECT MAX(r.number) FROM "+d.Table("runs")+" r WHERE r.job_id = 8) WHERE job_id = 8")
			d.Analyze(t)
			for name, q := range map[string]struct {
				most int
				ask  func() error
			}{
				"errors": {failed + waiting + 50, func() error {
					_, err := d.Failures(t.Context(), store.FailureFilter{Since: d.Clock.Now().Add(-24 * time.Hour), Limit: 50})
					return err
				}},
				"errors of a job": {n.runs + 2*failed + 200, func() error {
					_, err := d.Failures(t.Context(), store.FailureFilter{Job: "job 8", Limit: 50})
					return err
				}},
				"runs under way": {2*waiting + 300, func() error {
					_, err := d.Runs(t.Context(), store.RunFilter{States: []string{store.Running}, Limit: 20})
					return err
				}},
				"durations": {n.jobs * (recent + 2), func() error { _, err := d.Durations(t.Context(), recent); return err }},
			} {
				c.Reset()
				if err := q.ask(); err != nil {
					t.Fatal(err)
				}
				for _, call := range c.All() {
					if !strings.HasPrefix(call.SQL, "SELECT") {
						continue
					}
					if e == "sqlite" { // it does not count
						if plan := explain(t, d, call); strings.Contains(call.SQL, "ORDER BY r.created_at") && unplanned(e, plan, "runs_open") != "" {
							t.Errorf("%s: %s", name, strings.Join(plan, "\n"))
						}
					}
					read := rowsRead(t, d, call)
					t.Logf("%s: %d rows read, at most %d", name, read, q.most)
					if read > q.most {
						t.Errorf("%s: %d rows are read, more than %d, by %s", name, read, q.most, call.SQL)
					}
				}
			}
		})
	}
}
