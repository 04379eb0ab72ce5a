package load

import (
	"testing"

	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// TestMain lets the test binary be a tick in a process of its own.
func TestMain(m *testing.M) {
	ticktest.Main(m, map[string]ticktest.Meddler{"waits": watchWaits})
}
