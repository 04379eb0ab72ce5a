package main

import (
	"testing"
	"time"
)

// A time is read in the form in which people write it, in their zone.
func TestInstantsAreReadAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"2026-12-01T08:00:00Z":      "2026-12-01T08:00:00Z",
		"2026-12-01T08:00:00+09:00": "2026-11-30T23:00:00Z",
		"2026-12-01":                "2026-11-30T23:00:00Z",
		"2026-12-01 08:00":          "2026-12-01T07:00:00Z",
		"2026-12-01T08:00:30":       "2026-12-01T07:00:30Z",
		"today":                     "2026-02-28T23:00:00Z",
		"yesterday":                 "2026-02-27T23:00:00Z",
		"Tomorrow 08:00":            "2026-03-02T07:00:00Z",
		"now":                       "2026-02-28T23:30:00Z",
		"2h":                        "2026-03-01T01:30:00Z",
		"90 minutes":                "2026-03-01T01:00:00Z",
		"2h from now":               "2026-03-01T01:30:00Z",
	} {
		if got, ok := readInstant(text, now, ahead); !ok || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q is %s, %v; want %s", text, got.UTC().Format(time.RFC3339), ok, want)
		}
	}
	for _, text := range []string{"2h", "2h ago"} {
		if got, ok := readInstant(text, now, ago); !ok || !got.Equal(now.Add(-2*time.Hour)) {
			t.Errorf("%s is %s, %v", text, got, ok)
		}
	}
	for _, text := range []string{"soon", "08:00", "2026-13-01", "tomorrow at 8", "2026-12-01 25:00", "2 weeks", "2h ago", "from now"} {
		if got, ok := readInstant(text, now, ahead); ok {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}
