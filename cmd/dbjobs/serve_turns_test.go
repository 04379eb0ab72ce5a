package main

import (
	"sync"
	"testing"
	"time"
)

// TestPassHasTheTimeOfTheNewestRequest: of the requests that wait for a pass, the oldest has little time left after a long pass.
// A run that needs more than that would be cut in each pass.
func TestPassHasTheTimeOfTheNewestRequest(t *testing.T) {
	t.Parallel()
	var passes sync.WaitGroup
	var all turns
	now := time.Now()
	given := make(chan time.Time, 2)
	run := func(deadline time.Time) *reply {
		given <- deadline
		return busy()
	}
	e := event{Command: "tick"}
	all.running.Lock() // a pass runs
	first := all.join(e, now.Add(time.Minute), &passes, run)
	for _, more := range []time.Duration{3 * time.Minute, 2 * time.Minute} { // requests may overtake each other
		if all.join(e, now.Add(more), &passes, run) != first {
			t.Error("a request that came while one waited got a pass of its own")
		}
	}
	all.running.Unlock()
	passes.Wait()
	if got := <-given; len(given) > 0 || got.Sub(now) != 3*time.Minute {
		t.Errorf("the pass ends after %s, and %d more came", got.Sub(now), len(given))
	}
}
