// Package again repeats a request to a platform that does not take it at once, as the platforms ask their callers to do.
package again

import (
	"context"
	"net/http"
	"time"
)

// How often a request is sent, and the first wait, which doubles.
const (
	tries      = 3
	firstPause = 200 * time.Millisecond
)

// Until calls try until it succeeds, says that its failure stays, or was called three times. It returns the last failure.
func Until(ctx context.Context, try func() (passes bool, err error)) error {
	for n := 1; ; n++ {
		passes, err := try()
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

// Passes reports whether a request that was answered with a status may be accepted later.
func Passes(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}
