package manifest

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A rule needs a zone if it means other times in another zone. A value that the name chooses does not change that, nor
// does the moment at which the file is read; the days of a calendar do.
func TestZoneless(t *testing.T) {
	for rule, want := range map[string]bool{
		"~ * * * *":                         false,
		"~/15 * * * *":                      false,
		"every 5m":                          false,
		"0 * * * *":                         false,
		"at 2027-01-05T08:00 Europe/Berlin": false,
		"~ ~ * * *":                         true,
		"0 */5 * * *":                       true,
		"0 8 * * *":                         true,
		"FREQ=DAILY":                        true, // it takes its time of day from the moment, and keeps it when a clock changes
		"FREQ=DAILY;BYHOUR=8":               true,
		"FREQ=HOURLY":                       false,
		"FREQ=HOURLY;INTERVAL=5":            false,
		"I 7:00":                            false,
		"{rule: every 5m, calendar: de}":    true,
		"{rule: 0 * * * *, calendar: de}":   true,
	} {
		for hour := range 24 {
			now := time.Date(2026, 11, 22, hour, 1, 0, 0, time.UTC)
			text := "calendars:\n  de: {days: [2026-12-25]}\njobs:\n  tidy: {rule: " + rule + ", sql: SELECT 1}\n"
			if !strings.HasPrefix(rule, "{") {
				text = strings.Replace(text, rule, `"`+rule+`"`, 1)
			}
			m, err := Read([]Input{{Path: "it", In: strings.NewReader(text)}}, Options{Now: now, Env: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(m.Zoneless, "job tidy"); got != want {
				t.Errorf("%s, read at %d o'clock: needs a zone %v, want %v", rule, hour, got, want)
				break
			}
		}
	}
}
