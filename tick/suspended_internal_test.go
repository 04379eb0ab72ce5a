package tick

import (
	"testing"
	"time"
	"unsafe"
)

// On a machine that was suspended, the monotonic clock stood still, and the wall clock went on.
func TestElapsedCountsWhileTheMachineIsSuspended(t *testing.T) {
	const asleep = 2 * time.Hour
	before := time.Now()
	after := before.Add(time.Minute)
	*(*uint64)(unsafe.Pointer(&after)) += uint64(asleep/time.Second) << 30 // the seconds of the wall clock, beside a monotonic reading
	if after.Sub(before) != time.Minute || after.Round(0).Sub(before.Round(0)) != asleep+time.Minute {
		t.Fatalf("the clocks do not disagree: %s, and %s by the wall clock", after.Sub(before), after.Round(0).Sub(before.Round(0)))
	}
	if d := elapsed(before, after); d != asleep+time.Minute {
		t.Errorf("%s have passed, want %s", d, asleep+time.Minute)
	}
	later := Tick{tried: before}
	if gap := later.apart(after, 0); gap != asleep+time.Minute {
		t.Errorf("a pass takes %s for the time since the pass before, want %s", gap, asleep+time.Minute)
	}
}
