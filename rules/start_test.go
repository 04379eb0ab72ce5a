package rules

import "testing"

// TestDependsOnStart: only a rule that fires from no start is refused whatever its start is.
func TestDependsOnStart(t *testing.T) {
	for text, want := range map[string]bool{
		"FREQ=DAILY;UNTIL=20210101T000000Z":                             true,
		"FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29":                true,
		"FREQ=DAILY;INTERVAL=7;BYDAY=MO":                                true,
		"FREQ=HOURLY;INTERVAL=24;BYHOUR=5":                              true,
		"FREQ=MONTHLY;BYMONTH=2":                                        true,
		"FREQ=YEARLY;INTERVAL=4;BYMONTH=2":                              true,
		"FREQ=WEEKLY;BYMONTH=2;UNTIL=20210101":                          true,
		"RRULE:FREQ=DAILY;COUNT=1\nEXDATE:20210101T000000Z":             true,
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30":                           false,
		"FREQ=MONTHLY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=30":               false,
		"FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31;UNTIL=20210101T000000Z":    false,
		"FREQ=DAILY;BYHOUR=1;BYSETPOS=5":                                false,
		"FREQ=YEARLY;BYMONTH=1;BYYEARDAY=60":                            false,
		"FREQ=DAILY;UNTIL=20210101T000000Z;DTSTART=20220101T000000Z":    false,
		"DTSTART:20220101T000000Z\nRRULE:FREQ=DAILY;UNTIL=20210101T00Z": false,
		"0 0 30 2 *": false,
	} {
		if got := DependsOnStart(text); got != want {
			t.Errorf("%q: found %t, want %t", text, got, want)
		}
	}
}
