package decide

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A time was skipped, it came while no pass did, and then the job was changed. Somebody had decided about that time: it is
// skipped, and only the others end with the change.
func TestASkippedTimeStaysSkippedOverAChange(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 30, 0, 0, time.UTC)
	at := func(hour int) time.Time { return time.Date(2026, 1, 5, hour, 0, 0, 0, time.UTC) }
	hourly := "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"
	for name, c := range map[string]struct {
		change func(*store.Snapshot)
		want   string
	}{
		"edited":              {func(s *store.Snapshot) { s.Rules[0].NewInput, s.Rules[0].Schedule.Rule = "b", "every 1d" }, store.Edited},
		"taken away":          {func(s *store.Snapshot) { s.Rules[0].Linked = false }, store.Edited},
		"disabled":            {func(s *store.Snapshot) { s.Stale, s.Job.Disabled = true, true }, store.Disabled},
		"was disabled":        {func(s *store.Snapshot) { s.Stale, s.Planned = true, store.PlannedPolicies{Known: true, Disabled: true} }, store.Disabled},
		"its row was deleted": {func(s *store.Snapshot) { s.Job.ID = 0 }, store.Edited},
	} {
		j := store.Job{ID: 1, Name: "job", CreatedAt: at(0), Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		s := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: at(5), RunsMade: 1}, Job: j,
			Rules: []store.Rule{{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: at(0), Input: "a", NewInput: "a", Text: hourly}}}
		s.Plan.SetSkips([]store.Skip{{At: at(7)}})
		c.change(s)
		d := Job(now, s, testPass(""))
		got := map[string][]int{}
		for _, g := range d.Gaps {
			for h := 6; h <= 8; h++ {
				if at(h).After(g.From) && !at(h).After(g.Through) {
					got[g.Reason] = append(got[g.Reason], h)
				}
			}
		}
		if d.Plan.Parked != "" || !slices.Equal(got[store.Skipped], []int{7}) || !slices.Equal(got[c.want], []int{6, 8}) {
			t.Errorf("%s: %v, not only 7 skipped (%s)", name, got, d.Plan.Parked)
		}
	}
}
