package tick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// How long the oldest run of any queue has been ready, whatever its priority.
func TestOldestQueuedRun(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		now := d.Clock.Now()
		oldest := func(want time.Time) {
			t.Helper()
			tk := ticktest.New(t, d.Store)
			tk.Gauges, tk.Limit = true, -1
			r, err := tk.Run(t.Context())
			if err != nil || !r.OldestQueued.Equal(want) {
				t.Errorf("%v: %s, want %s", err, r.OldestQueued, want)
			}
		}
		oldest(time.Time{})
		for i, r := range []struct {
			queue    string
			priority int
			hours    int
			state    string
		}{{"b", 0, 3, "queued"}, {"a", 7, 2, "queued"}, {"a", -1, 4, "queued"}, {"a", 7, 1, "queued"}, {"c", 1, 2, "queued"}, {"c", 1, 9, "succeeded"}} {
			d.Exec(t, fmt.Sprintf(`INSERT INTO %s (id, job_id, occurrence, state, queue, priority, ready_at, created_at, settled_at)
				VALUES ('00000000-0000-7000-9000-00000000000%d', 1, 'now:%d', '%s', '%s', %d, %s, %s, %s)`, d.Table("runs"), i, i, r.state, r.queue, r.priority,
				ticktest.Literal(d, now.Add(-time.Duration(r.hours)*time.Hour)), ticktest.Literal(d, now), map[bool]string{true: ticktest.Literal(d, now), false: "NULL"}[r.state == "succeeded"]))
		}
		oldest(now.Add(-4 * time.Hour))
		d.Exec(t, "DELETE FROM "+d.Table("runs")+" WHERE queue = 'a'")
		oldest(now.Add(-3 * time.Hour))
	})
}
