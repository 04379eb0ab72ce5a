package main

import (
	"io"
	"net/http"
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

// TestNoPassInLessThanHalfOfTheBudget: a request that has waited for most of its time gets 429, try again. A run that began in
// the rest would be cut, and with max_deliveries: 1 be lost.
func TestNoPassInLessThanHalfOfTheBudget(t *testing.T) {
	t.Parallel()
	nowhere := t.TempDir() // no database: a pass that begins is refused
	for _, c := range []struct {
		budget string
		left   time.Duration
		want   int
	}{
		{left: 20 * time.Second, want: http.StatusTooManyRequests},
		{left: 50 * time.Second, want: http.StatusInternalServerError},
		{left: 20 * time.Second, want: http.StatusInternalServerError, budget: "30s"},
		{left: 10 * time.Second, want: http.StatusTooManyRequests, budget: "30s"},
	} {
		env := map[string]string{"XDG_DATA_HOME": nowhere, "HOME": nowhere, "DBJOBS_BUDGET": c.budget}
		h := &handler{timeout: time.Minute, ending: t.Context(), service: service{stderr: io.Discard,
			env: func(name string) (string, bool) { value := env[name]; return value, value != "" }}}
		if got := h.run(event{Command: "tick"}, time.Now().Add(c.left)); got.status != c.want {
			t.Errorf("%s left, budget %q: %d: %s; want %d", c.left, c.budget, got.status, got.body, c.want)
		}
	}
}
