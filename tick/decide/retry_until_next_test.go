package decide

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Another pass has decided the next occurrence while the run executed. The run is not tried after that, and the next run
// does not wait for tries.
func TestTriesEndIfTheNextOccurrenceCameMeanwhile(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse("15:04:05", text)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 1, 5, v.Hour(), v.Minute(), v.Second(), 0, time.UTC)
	}
	for name, c := range map[string]struct {
		started string // when the run was first delivered
		next    string // the time of the run behind it; empty: the time became a gap
		want    string // the state of the run
	}{
		"it came while the run executed":     {"08:00:10", "09:00:00", store.Failed},
		"both were due when the run started": {"09:00:10", "09:00:00", store.Queued},
		"it became a gap":                    {"08:00:10", "", store.Queued},
	} {
		j := store.Job{ID: 1, Name: "job", Missed: store.MissedAll, Retry: store.Retry{Attempts: new(store.Attempts(0))}, CreatedAt: at("00:00:00"), Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		hourly := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"}
		first := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: store.OccurrenceAt(at("08:00:00")), ScheduledFor: at("08:00:00"), State: store.Waiting, Fence: 1, StartedAt: at(c.started), ReadyAt: at("09:02:00")}
		runs := []store.Run{first}
		if c.next != "" {
			runs = append(runs, store.Run{ID: "2", JobID: 1, Number: 2, Occurrence: store.OccurrenceAt(at(c.next)), ScheduledFor: at(c.next), State: store.Waiting, HeldBy: store.HeldByPredecessor, ReadyAt: at(c.next)})
		}
		plan := store.Plan{JobID: 1, DecidedThrough: at("09:00:20"), NextRun: at("10:00:00"), RunsMade: 2}
		d := Job(at("09:02:00"), &store.Snapshot{Plan: plan, Job: j, Rules: []store.Rule{hourly}, Runs: runs}, testPass(""))
		got := map[string]string{"1": store.Waiting, "2": store.Waiting}
		for _, u := range d.Updates {
			got[u.Run.ID] = u.Run.State
		}
		if got["1"] != c.want {
			t.Errorf("%s: the run is %s", name, got["1"])
		}
		if (got["2"] == store.Queued) != (c.want == store.Failed) {
			t.Errorf("%s: the next run is %s", name, got["2"])
		}
	}
}
