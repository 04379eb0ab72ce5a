package away_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store/away"
)

// Where no answer comes, each caller waits as long as it can, and only one call hangs. Other things are asked meanwhile. When the
// answer can come, each caller that still waits gets one of its own.
func TestWithin(t *testing.T) {
	over := errors.New("no more time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	back, asks := make(chan struct{}), 0
	hangs := func() (int, error) {
		asks++ // one at a time
		<-back
		return asks, t.Context().Err()
	}
	for range 10 {
		n, err := away.Within(ctx, "hangs", hangs)
		if late, ok := errors.AsType[*away.LateError](err); n != 0 || !ok || late.What != "hangs" || !errors.Is(err, over) {
			t.Errorf("%d, %v; want that there was %v", n, err, over)
		}
	}
	no := errors.New("it is not there")
	if n, err := away.Within(t.Context(), "other", func() (int, error) { return 3, no }); n != 3 || !errors.Is(err, no) {
		t.Errorf("another one: %d, %v; want 3, %v", n, err, no)
	}
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if n, err := away.Within(t.Context(), "hangs", hangs); n < 2 || err != nil {
				t.Errorf("%d, %v; want a later answer", n, err)
			}
		})
	}
	close(back)
	group.Wait()
	if asks != 11 {
		t.Errorf("asked %d times, want 11", asks)
	}
}
