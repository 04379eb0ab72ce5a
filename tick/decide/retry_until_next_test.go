package decide

import (
	"strings"
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

// A request waits behind a run that is tried until the next occurrence, which comes and is a gap because of the request. The
// tries end, and the request goes.
func TestTriesEndForARequestThatWaits(t *testing.T) {
	ten := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Overlap: store.OverlapSkip, Retry: store.Retry{Attempts: new(store.Attempts(0))}, CreatedAt: ten.Add(-time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	hourly := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"}
	now := ten.Add(time.Hour)
	runs := []store.Run{
		{ID: "1", JobID: 1, Number: 1, Occurrence: store.OccurrenceAt(ten), ScheduledFor: ten, State: store.Waiting, Fence: 1, StartedAt: ten, ReadyAt: now.Add(time.Minute)},
		{ID: "2", JobID: 1, Number: 2, Occurrence: "now:2", State: store.Waiting, HeldBy: store.HeldByPredecessor, ReadyAt: ten.Add(time.Minute)},
	}
	plan := store.Plan{JobID: 1, DecidedThrough: ten, NextRun: now, LastScheduledFor: ten, RunsMade: 2}
	d := Job(now, &store.Snapshot{Plan: plan, Job: j, Rules: []store.Rule{hourly}, Runs: runs}, testPass(""))
	got := map[string]string{}
	for _, u := range d.Updates {
		got[u.Run.ID] = u.Run.State
	}
	if got["1"] != store.Failed || got["2"] != store.Queued || len(d.Made) != 0 || len(d.Gaps) != 1 || d.Gaps[0].Reason != store.Overlap {
		t.Errorf("%v, made %d, gaps %+v", got, len(d.Made), d.Gaps)
	}
}

// A worker or a tick dies that has a run which is tried until the next occurrence. The run is delivered again, but not once that
// occurrence has come: then it has failed, and the run of the occurrence goes.
func TestTriesEndForARunWhoseHolderDied(t *testing.T) {
	ten := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for minutes, want := range map[int]string{59: store.Queued, 60: store.Failed} {
		j := store.Job{ID: 1, Name: "job", Retry: store.Retry{Attempts: new(store.Attempts(0))}, CreatedAt: ten.Add(-time.Hour), Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		hourly := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"}
		run := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: store.OccurrenceAt(ten), ScheduledFor: ten, State: store.Running, Fence: 1, Holder: "post/1", StartedAt: ten, ReadyAt: ten, LeaseUntil: ten.Add(10 * time.Minute)}
		plan := store.Plan{JobID: 1, DecidedThrough: ten, NextRun: ten.Add(time.Hour), LastScheduledFor: ten, RunsMade: 1}
		d := Job(ten.Add(time.Duration(minutes)*time.Minute), &store.Snapshot{Plan: plan, Job: j, Rules: []store.Rule{hourly}, Runs: []store.Run{run}}, testPass(""))
		if len(d.Updates) != 1 || d.Updates[0].Run.State != want || !strings.HasPrefix(d.Updates[0].Run.Error, "post/1 sent no heartbeat") {
			t.Errorf("after %d minutes: %+v, want %s", minutes, d.Updates, want)
		}
		if made := want == store.Failed; (len(d.Made) == 1 && d.Made[0].State == store.Queued) != made {
			t.Errorf("after %d minutes: %+v is made", minutes, d.Made)
		}
	}
}
