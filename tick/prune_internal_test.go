package tick

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// What a pass keeps about the history to delete grows with the jobs, and not with their runs. Of each job, what the last run says
// counts.
func TestKeptDoesNotGrowWithTheRuns(t *testing.T) {
	p := &pass{t: &Tick{Now: time.Now}, probe: &store.Probe{}}
	p.init(1)
	const runs, jobs = 3 * mostKept, 100
	most := 0
	for n := range int64(runs) {
		h := &held{stop: func(error) {}}
		h.Settled, h.Settlement = true, &store.Settlement{JobID: n % jobs, Below: n}
		p.settle(&result{held: h})
		most = max(most, len(p.kept))
	}
	if most > mostKept {
		t.Errorf("%d of %d runs are kept", most, runs)
	}
	for _, k := range latest(p.kept) {
		if k.Below < runs-jobs {
			t.Errorf("of job %d, a run up to %d counts", k.JobID, k.Below)
		}
	}
}
