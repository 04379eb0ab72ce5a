package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/tick"
)

// A quiet pass that had no time to read the states of the jobs says so when it would name the jobs: if that happens to each pass, nobody
// hears of a job that is parked or failing.
func TestQuietPassSaysThatItHasNotSeenTheStates(t *testing.T) {
	const why = "the last look took too long"
	for _, c := range []struct {
		r    tick.Report
		want bool
	}{
		{tick.Report{Unseen: true, Remind: true, CutShort: why}, true},
		{tick.Report{Unseen: true, CutShort: why}, false},
		{tick.Report{States: true, Remind: true, CutShort: why}, false},
	} {
		var said bytes.Buffer
		cli := newCLI(nil, &bytes.Buffer{}, &said, onlyHome(t.TempDir()))
		cli.tellReport(&c.r, &tickFlags{quiet: true})
		if got := strings.Contains(said.String(), "parked or failing is not known: "+why); got != c.want {
			t.Errorf("unseen: %t, to remind: %t: said %q", c.r.Unseen, c.r.Remind, &said)
		}
	}
}
