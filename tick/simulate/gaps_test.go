package simulate_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/simulate"
)

// A nominal time that two rules of a job give does not run once, and not twice.
func TestATimeOfTwoRulesIsOneTime(t *testing.T) {
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	in, err := simulate.Of(store.Definitions{Schedules: []store.Schedule{{Name: "a", Rule: "every 1h"}, {Name: "b", Rule: "every 2h"}}, Jobs: []store.Job{
		{Name: "job", Schedules: []string{"a", "b"}, Missed: store.MissedSkip, Steps: []store.Step{{Name: "step 1", Executor: "sql"}}}}}, simulate.Shared{}, start)
	if err != nil {
		t.Fatal(err)
	}
	down := simulate.Outage{From: start.Add(time.Minute), To: start.Add(5*time.Hour + 30*time.Minute)}
	r, err := simulate.Run(t.Context(), in, simulate.Options{From: start, To: start.Add(5*time.Hour + 45*time.Minute), Down: []simulate.Outage{down}, Keep: 10})
	if err != nil || r.NotRun != 5 || r.Jobs[0].NotRun[store.Missed] != 5 {
		t.Errorf("%v: %d times did not run: %+v", err, r.NotRun, r.Gaps)
	}
}
