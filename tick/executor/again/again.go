// Package again repeats a request to a platform that does not take it at once, as the platforms ask their callers to do.
package again

import (
	"context"
	"net/http"
	"time"
)

// How often a request is sent, the first wait, which doubles, and the least time of a try.
const (
	tries      = 3
	firstPause = 200 * time.Millisecond
	leastTry   = 3 * time.Second // or all that is left
)

// Until calls try until it succeeds, says that its failure stays, or was called three times. It returns the last failure. Each
// try gets a part of the time that is left, so that one that hangs leaves time for others.
func Until(ctx context.Context, try func(ctx context.Context) (passes bool, err error)) error {
	for n := 1; ; n++ {
		passes, err := once(ctx, tries-n+1, try)
		if err == nil || !passes || n == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(firstPause << (n - 1)):
		}
	}
}

// once calls try with an equal part of the time that is left.
func once(ctx context.Context, parts int, try func(ctx context.Context) (passes bool, err error)) (passes bool, err error) {
	if deadline, bounded := ctx.Deadline(); bounded {
		left := time.Until(deadline) //nolint:forbidigo // the deadline of a context is one of the host's clock
		within, cancel := context.WithTimeout(ctx, max(left/time.Duration(parts), leastTry))
		defer cancel()
		ctx = within
	}
	return try(ctx)
}

// Passes reports whether a request that was answered with a status may be accepted later.
func Passes(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}
