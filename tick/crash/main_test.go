package crash

import (
	"testing"

	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// TestMain lets the test binary be a tick in a process of its own, without some of its guards.
func TestMain(m *testing.M) {
	meddlers := map[string]ticktest.Meddler{}
	for _, g := range []guards{noLocks, lacking, optimistic, atCommit, noGuards} {
		meddlers[string(g)] = g.meddle
	}
	ticktest.Main(m, meddlers)
}
