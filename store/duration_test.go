package store

import (
	"testing"
	"time"
)

func TestDurationIsReadInUnitsAndInWords(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1.5h": 90 * time.Minute, "0s": 0,
		"2 minutes": 2 * time.Minute, "1 hour 30 min": 90 * time.Minute, "10 Seconds": 10 * time.Second, "1 day 2 h": 26 * time.Hour,
		"500 ms": 500 * time.Millisecond, "1day": 24 * time.Hour, "0d": 0,
		"1.5ms": time.Millisecond, "90.0009s": 90 * time.Second, // as the database has it, so that a second apply changes nothing
	} {
		if d, err := ParseDuration(text); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v, %v; want %v", text, time.Duration(d), err, want)
		}
	}
	for _, text := range []string{"", "90", "minutes", "2 months", "3M", "1h 30 M", "2  minutes", "1 hour,30 minutes", "-2 minutes", "2 minutes 5", "-1d", "1d-5s", "d"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q was read as %v", text, time.Duration(d))
		}
	}
}
