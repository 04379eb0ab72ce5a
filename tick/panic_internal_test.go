package tick

import (
	"log/slog"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A decision that panics parks its job, and changes none of its runs: those under way keep their places in the job's group.
func TestPanicOfADecisionKeepsThePlacesOfTheRuns(t *testing.T) {
	p := &pass{log: slog.New(slog.DiscardHandler)} // the decision finds no decider
	d := p.decideJob(time.Now(), &store.Snapshot{Runs: []store.Run{{State: store.Running}, {State: store.Waiting}, {State: store.Succeeded}}})
	if d.Plan.Parked == "" || d.UnderWay != 1 {
		t.Errorf("parked %q, %d runs under way", d.Plan.Parked, d.UnderWay)
	}
}
