package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The next occurrence ends the tries of a step for which that is said: by the step, or by the job where the step says
// nothing else.
func TestTriesUntilTheNextOccurrence(t *testing.T) {
	for name, c := range map[string]struct {
		job, step *store.Attempts
		want      string
	}{
		"of the job":                     {new(store.Attempts(0)), nil, "01-05T08:05 failed; 01-05T08:10 waiting; next 01-05T08:15"},
		"of the step":                    {nil, new(store.Attempts(0)), "01-05T08:05 failed; 01-05T08:10 waiting; next 01-05T08:15"},
		"of the job, and not the step's": {new(store.Attempts(0)), new(store.Attempts(5)), "01-05T08:05 waiting; 01-05T08:10 waiting predecessor; next 01-05T08:15"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				fails := ticktest.Step("", "SELECT * FROM nowhere")
				fails.Retry.Attempts = c.step
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Retry: store.Retry{Attempts: c.job, Backoff: new(store.Duration(time.Hour))},
					Steps: []store.Step{fails}}}})
				ticktest.DecideOnly(t, d)
				var r tick.Report
				for range 2 {
					d.Clock.Add(5 * time.Minute)
					r = ticktest.Run(t, d)
				}
				if ended := r.Failed == 1 && len(r.Runs) == 2 && r.Runs[0].State == store.Failed && strings.HasSuffix(r.Runs[0].Job, "job"); ended != strings.Contains(c.want, "failed") {
					t.Errorf("what the pass tells of the run that it gave up: %+v", r)
				}
				if got := ticktest.Told(t, d, "job"); got != c.want {
					t.Errorf("%s\nwant %s", got, c.want)
				}
			})
		})
	}
}
