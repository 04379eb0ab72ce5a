package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/decide/model"
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
