package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/decide/model"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The model doubles a back-off in its own way. Without jitter, both agree, also far above the cap.
func TestBackoffIsThatOfTheModel(t *testing.T) {
	none := 0
	for _, first := range []time.Duration{0, time.Millisecond, time.Minute, 7 * time.Minute, 3 * time.Hour} {
		for _, most := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
			wait, limit := store.Duration(first), store.Duration(most)
			r := store.Retry{Backoff: &wait, MaxBackoff: &limit, Jitter: &none}
			for attempt := 1; attempt <= 16; attempt++ {
				if got, want := decide.Backoff(r, attempt), model.Backoff(r, attempt); got != want {
					t.Errorf("%s up to %s, attempt %d: %s, want %s", first, most, attempt, got, want)
				}
			}
		}
	}
}

// A back-off that doubles beyond what a duration holds would be negative, and the step tried again at once.
func TestBackoffOfCenturiesIsBounded(t *testing.T) {
	const year = 365 * 24 * time.Hour
	wait, limit := store.Duration(90*year), store.Duration(290*year)
	for attempt := 1; attempt <= 4; attempt++ {
		if got := decide.Backoff(store.Retry{Backoff: &wait, MaxBackoff: &limit}, attempt); got < 90*year || got > 100*year {
			t.Errorf("attempt %d: %s", attempt, got)
		}
	}
}

// A step that is tried without a bound, and without a back-off, waits a second: it would keep its pass busy otherwise.
func TestTriesWithoutABoundWaitASecond(t *testing.T) {
	for attempts, want := range map[store.Attempts]time.Duration{0: time.Second, 5: 0} {
		j := store.Job{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")},
			Retry: store.Retry{Attempts: &attempts, Backoff: new(store.Duration(0)), Jitter: new(0)}}
		j.Normalize()
		end := decide.AfterFailure(&store.Task{Job: j, Run: store.Run{Step: 1, Attempt: 1}}, &j.Steps[0], true, nil)
		if !end.Retry || end.Backoff != want {
			t.Errorf("%d attempts: %+v, want a retry after %s", attempts, end, want)
		}
	}
}
