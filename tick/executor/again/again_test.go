package again

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

// TestATryThatHangsLeavesTimeForOthers: where there is time for several tries. A short time is all for one, which may need it.
func TestATryThatHangsLeavesTimeForOthers(t *testing.T) {
	for patience, want := range map[time.Duration][]time.Duration{
		10 * time.Second:        {10 * time.Second / 3, 3233 * time.Millisecond, 2833 * time.Millisecond},
		30 * time.Second:        {10 * time.Second, 9900 * time.Millisecond, 9500 * time.Millisecond},
		4 * time.Second:         {3 * time.Second, 800 * time.Millisecond},
		1500 * time.Millisecond: {1500 * time.Millisecond},
	} {
		bubble.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var took []time.Duration
			err := Until(ctx, func(ctx context.Context) (bool, error) {
				began := time.Now()
				<-ctx.Done()
				took = append(took, time.Since(began))
				return true, ctx.Err()
			})
			same := func(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond }
			if !errors.Is(err, context.DeadlineExceeded) || !slices.EqualFunc(took, want, same) {
				t.Errorf("%s: the tries took %v, want %v; %v", patience, took, want, err)
			}
		})
	}
}
