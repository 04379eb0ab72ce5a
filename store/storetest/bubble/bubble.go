//go:build !race

// Package bubble runs tests in simulated time.
package bubble

import (
	"testing"
	"testing/synctest"
)

// Test runs fn in a bubble of its own, in which an hour takes no time once all goroutines wait: see synctest. Of the
// databases, only SQLite works there, as a server answers from outside. A program with the race detector skips the test.
func Test(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, fn)
}
