package executor

import (
	"context"
	"errors"
	"testing"
	"time"
)

// An attempt that waits while another one asks for the login ends with its own time. Later ones ask again.
func TestOnceWaitsNoLongerThanItsContext(t *testing.T) {
	asked, ended := make(chan bool), make(chan bool)
	asks := 0
	login := once(func(ctx context.Context) (string, error) {
		if asks++; asks > 1 {
			return "jobs", nil
		}
		close(asked)
		<-ctx.Done()
		return "", ctx.Err()
	})
	first, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	go func() {
		defer close(ended)
		_, _ = login(first) // it ends with its context
	}()
	<-asked
	why := errors.New("its time is over")
	brief, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer cancel()
	if _, err := login(brief); !errors.Is(err, why) || first.Err() != nil {
		t.Errorf("it waited for the first: %v; %v", first.Err(), err)
	}
	end()
	<-ended
	if answer, err := login(t.Context()); answer != "jobs" || err != nil || asks != 2 {
		t.Errorf("%q, %v, asked %d times", answer, err, asks)
	}
}
