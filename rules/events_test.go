package rules

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The form of rules for readers of calendars, which understand only some of RFC 5545. A test of cmd/internal/ical shows
// for all forms that the times are right.
func TestEvents(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ rule, zone, ambiguous, want string }{
		{"30 2 * * *", "Europe/Berlin", "", "Europe/Berlin 20260101T023000 FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0"},
		{"0 2,3 * * *", "Europe/Berlin", "", "Europe/Berlin 20260101T020000 FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0;BYSECOND=0"},
		{"30 2 * * *", "Europe/Berlin", "last", "Europe/Berlin 20260101T023000 FREQ=DAILY;UNTIL=20270101T000000Z;BYHOUR=2;BYMINUTE=30;BYSECOND=0 -20261025T023000 +20261025T013000"},
		{"every 90m", "Europe/Berlin", "", "UTC 20260101T000000 FREQ=MINUTELY;INTERVAL=90"},
		{"*/15 * * * *", "Asia/Kathmandu", "", "UTC 20260101T000000 FREQ=HOURLY;BYMINUTE=0,15,30,45;BYSECOND=0"},
		{"10 * * * *", "Asia/Kolkata", "", "UTC 20260101T004000 FREQ=HOURLY;BYMINUTE=40;BYSECOND=0"},
		{"0 8 13 * FRI", "UTC", "", "UTC 20260113T080000 FREQ=DAILY;BYMONTHDAY=13;BYHOUR=8;BYMINUTE=0;BYSECOND=0\n" +
			"UTC 20260102T080000 FREQ=DAILY;BYDAY=FR;BYHOUR=8;BYMINUTE=0;BYSECOND=0 -20260213T080000 -20260313T080000 -20261113T080000"},
		{"0 0 29 2 *", "UTC", "", "UTC 20280229T000000 FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=0;BYMINUTE=0;BYSECOND=0"},
		{"DTSTART:20250101T120000Z\nRRULE:FREQ=MONTHLY;COUNT=14", "UTC", "", "UTC 20260101T120000 FREQ=MONTHLY;UNTIL=20260201T120000Z"},
		{"DTSTART:20250101T120000Z\nRRULE:FREQ=MONTHLY;COUNT=2", "UTC", "", ""},
		{"at 2026-03-01T08:00, 2026-05-01T08:00", "Europe/Berlin", "", "UTC 20260301T070000  +20260501T060000"},
	} {
		if got := events(t, c.rule, Defaults{Zone: c.zone, Ambiguous: c.ambiguous}, from); got != c.want {
			t.Errorf("%q in %s:\n%s\nwant\n%s", c.rule, c.zone, got, c.want)
		}
	}
}

// events returns the events of the year from an instant on, one on each line.
func events(t *testing.T, rule string, d Defaults, from time.Time) string {
	t.Helper()
	r, err := Parse(rule, d)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.Events(from, from.AddDate(1, 0, 0), time.Time{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range list {
		line := e.Zone + " " + e.Wall + " " + e.RRule
		for _, x := range e.Except {
			line += " -" + x
		}
		for _, d := range e.Dates {
			line += " +" + d.Format("20060102T150405")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// An event begins at a time that its rule gives, that the clock shows once, and that no other event has. Readers do not
// agree about any other time.
func TestEventsBegin(t *testing.T) {
	t.Parallel()
	const daily = "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0"
	for _, c := range []struct{ why, rule, zone, from, want string }{
		{"02:30 is there twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", "Europe/Berlin 20261026T023000 " + daily + " +20261025T003000"},
		{"02:30 is passed over, and runs at 03:30", "30 2 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", "Europe/Berlin 20260330T023000 " + daily + " +20260329T013000"},
		{"the first Friday is a 13th, which the other event has", "0 8 13 * FRI", "UTC", "2026-02-13T00:00:00Z",
			"UTC 20260213T080000 FREQ=DAILY;BYMONTHDAY=13;BYHOUR=8;BYMINUTE=0;BYSECOND=0\n" +
				"UTC 20260220T080000 FREQ=DAILY;BYDAY=FR;BYHOUR=8;BYMINUTE=0;BYSECOND=0 -20260313T080000 -20261113T080000"},
	} {
		from, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		if got := events(t, c.rule, Defaults{Zone: c.zone}, from); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.why, got, c.want)
		}
	}
}

// An occurrence that is taken out of an event is an exception on its wall time, and no single date.
func TestEventWithoutAnOccurrence(t *testing.T) {
	t.Parallel()
	at := func(day int) time.Time { return time.Date(2026, 12, day, 7, 0, 0, 0, time.UTC) }
	e := Event{Zone: "Europe/Berlin", Start: at(1), Wall: "20261201T080000", Dates: []time.Time{at(2), at(4)}, Until: at(9)}
	for _, day := range []int{2, 10} { // the event does not reach to the 10th
		e.Skip(at(day))
	}
	if !slices.Equal(e.Dates, []time.Time{at(4)}) || !slices.Equal(e.Except, []string{"20261202T080000"}) {
		t.Errorf("dates %v, except %v", e.Dates, e.Except)
	}
}
