package lazyregexp

import "testing"

// TestAWrongExpressionStopsItsTests: an expression that does not compile is found where it stands,
// by any test of its package, although a process finds it at its use only.
func TestAWrongExpressionStopsItsTests(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing was found")
		}
	}()
	New(`(`)
}
