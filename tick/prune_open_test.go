package tick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run has its number long before it ends, if many wait. What waits pushes nothing out of the history: a run that has failed stays on
// record, and can be retried, until as many newer ones have ended.
func TestPruneKeepsWhatEndsBeforeABacklog(t *testing.T) {
	const kept = 3
	sizes := []int{10, 260} // of more than 200, decisions read only some
	if prove.Whole() {
		sizes = append(sizes, 1200) // of more than 1,000, a sweep counts none
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Keep: store.Keep{Runs: kept}, Steps: []store.Step{ticktest.Step("", "SELECT * FROM later")}}}})
				first := ticktest.RunNow(t, d, "job", store.Request{})
				for range n - 1 {
					d.Clock.Add(time.Millisecond)
					ticktest.RunNow(t, d, "job", store.Request{})
				}
				tk := ticktest.New(t, d.Store)
				tk.Limit = 1
				pass := func(times int) {
					for range times {
						ticktest.Pass(t, tk)
					}
				}
				ended := func() int {
					return d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE settled_at IS NOT NULL")
				}
				pass(kept + 1)
				if got := ended(); got < kept {
					t.Errorf("%d ended runs are left of %d, want %d", got, kept+1, kept)
				}
				pass(kept)
				if got := ended(); got < kept || got > kept+1 { // the last one is settled, but its pass has not pruned after it
					t.Errorf("%d ended runs are left, want %d", got, kept)
				}
				if _, err := d.RetryRun(t.Context(), first.ID, "", store.Author{}); err == nil {
					t.Error("the first run is still there")
				}
			})
		})
	}
}
