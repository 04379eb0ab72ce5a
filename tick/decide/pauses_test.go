package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A job that has got another owner was paused with the jobs of the old one up to that edit, and with those of the new one since.
func TestAPauseOfTheOwnerBeforeAnEdit(t *testing.T) {
	at := func(hour, minute int) time.Time { return time.Date(2026, 1, 5, hour, minute, 0, 0, time.UTC) }
	j := store.Job{ID: 1, Name: "job", Owner: "bob", Missed: "all", Overlap: "wait-all", CreatedAt: at(0, 0), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	hourly := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"}
	for owner, want := range map[string]string{
		"alice": "(08:29:59.999999, 10:30:00] [11:00 12:00]",
		"bob":   "(10:30:00, 12:30:00] [09:00 10:00]",
	} {
		c := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: at(8, 15)}, Job: j, Rules: []store.Rule{hourly}, Stale: true, ChangedAt: at(10, 30),
			Planned: store.PlannedPolicies{Known: true, Owner: "alice"}}
		p := store.Pause{Scope: store.ScopeOwner, Subject: owner, Since: at(8, 30)}
		if !p.Covers(c) {
			t.Errorf("a pause of %s is not about the job", owner)
		}
		c.Pauses = []store.Pause{p}
		d := Job(at(12, 30), c, testPass(""))
		var runs []string
		for _, r := range d.Made {
			runs = append(runs, r.ScheduledFor.Format("15:04"))
		}
		got := ""
		for _, g := range d.Gaps {
			got += fmt.Sprintf("(%s, %s] ", g.From.Format("15:04:05.999999"), g.Through.Format("15:04:05.999999"))
		}
		if got += fmt.Sprint(runs); got != want {
			t.Errorf("pause of %s: %s, want %s", owner, got, want)
		}
	}
}
