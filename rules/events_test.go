package rules

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const not13 = "BYMONTHDAY=1,2,3,4,5,6,7,8,9,10,11,12,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31;"

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
			"UTC 20260102T080000 FREQ=DAILY;" + not13 + "BYDAY=FR;BYHOUR=8;BYMINUTE=0;BYSECOND=0"},
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

// events returns the events of the year from an instant on, without some of the times, one on each line.
func events(t *testing.T, rule string, d Defaults, from time.Time, skips ...time.Time) string {
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
		for _, at := range skips {
			e.Skip(at)
		}
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

// Events that last for ever give each time once, also after the range in which all times are known.
func TestEventsGiveNoTimeTwice(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const two = "DTSTART;TZID=Europe/Berlin:20260101T080000\nRRULE:"
	for rule, ever := range map[string]bool{
		"0 8 13 * FRI": true, "0 8 L * FRI": true, "0 8 1,13 3,9 1-5": true, "0 8 13,L * FRI": false, "0 8 1-31 * FRI": false,
		two + "FREQ=DAILY\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=8,9":                          false,
		two + "FREQ=DAILY;BYMONTHDAY=29\nRRULE:FREQ=YEARLY;BYMONTH=2":                      false, // they meet in 2028
		two + "FREQ=WEEKLY;BYDAY=MO\nRRULE:FREQ=WEEKLY;BYDAY=TU":                           true,
		two + "FREQ=DAILY;BYHOUR=8\nRRULE:FREQ=WEEKLY;BYDAY=TU;BYHOUR=9":                   true,
		two + "FREQ=DAILY;BYMONTH=6\nRRULE:FREQ=WEEKLY;BYDAY=TU;BYMONTH=5":                 true,
		two + "FREQ=DAILY;BYMONTHDAY=13\nRRULE:FREQ=DAILY;UNTIL=20260601T000000Z;BYDAY=FR": false,
	} {
		r, err := Parse(rule, Defaults{Zone: "Europe/Berlin"})
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.Events(from, from.AddDate(1, 0, 0), time.Time{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		until := from.AddDate(10, 0, 0)
		for _, e := range list {
			if e.Until.IsZero() != ever {
				t.Errorf("%s: the event of %s agrees until %v", rule, e.RRule, e.Until)
			}
			if !e.Until.IsZero() {
				until = e.Until
			}
		}
		given := map[string]int{}
		for _, e := range list {
			own := mustParse(t, "DTSTART;TZID="+e.Zone+":"+e.Wall+"\nRRULE:"+e.RRule, Defaults{})
			for _, at := range append(mustBetween(t, own, from, until), e.Dates...) {
				if wall := stampText(own.zone.civil(at.Unix())); !slices.Contains(e.Except, wall) {
					given[at.String()]++
				}
			}
		}
		want := mustBetween(t, r, from, until)
		for _, at := range want {
			if given[at.String()] != 1 {
				t.Errorf("%s: %v is given %d times", rule, at, given[at.String()])
			}
		}
		if len(given) != len(want) {
			t.Errorf("%s: %d times are given, want %d", rule, len(given), len(want))
		}
	}
}

func mustBetween(t *testing.T, r *Rule, from, to time.Time) []time.Time {
	t.Helper()
	list, err := r.Between(from, to, 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
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
				"UTC 20260220T080000 FREQ=DAILY;" + not13 + "BYDAY=FR;BYHOUR=8;BYMINUTE=0;BYSECOND=0"},
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

// A time that a calendar moves is in the events also if the rule itself names no further time within the range.
func TestEventsHaveATimeBeforeTheirRecurrence(t *testing.T) {
	t.Parallel()
	days, err := ParseCalendar("de", "MO-FR", "2026-12-25")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	if got, want := events(t, "0 9 25 12 *", Defaults{Calendar: days, OnHoliday: "next"}, from), "UTC 20261228T090000 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// An event has no time that the calendar of the rule removes, also where the rule has no further time at all.
func TestEventsAfterTheLastTime(t *testing.T) {
	t.Parallel()
	days, err := ParseCalendar("de", "MO-FR", "2027-12-20..2028-01-31")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 12, 18, 0, 0, 0, 0, time.UTC)
	for rule, want := range map[string]string{
		"DTSTART:20280101T080000Z\nRRULE:FREQ=WEEKLY;COUNT=50\nRDATE:20261221T080000Z": "UTC 20261221T080000 ",
		"DTSTART:20261201T080000Z\nRRULE:FREQ=WEEKLY;UNTIL=20280120T080000Z":           "UTC 20261222T080000 FREQ=WEEKLY;UNTIL=20271218T000000Z",
	} {
		if got := events(t, rule, Defaults{Calendar: days}, from); got != want {
			t.Errorf("%s\n%q, want %q", rule, got, want)
		}
	}
}

// BYYEARDAY needs FREQ=YEARLY where the times are those of days: DAILY takes none (RFC 5545 §3.3.10).
func TestEventOfDaysOfTheYear(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 12, 18, 0, 0, 0, 0, time.UTC)
	got := events(t, "DTSTART;TZID=Europe/Berlin:20260101T001500\nRRULE:FREQ=HOURLY;BYYEARDAY=1", Defaults{}, from)
	const want = "Europe/Berlin 20270101T001500 FREQ=YEARLY;UNTIL=20271218T000000Z;BYYEARDAY=1;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=15;BYSECOND=0"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// An occurrence that is taken out of an event is no single date any more, or an exception on its wall time.
func TestEventWithoutAnOccurrence(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	const daily = "Europe/Berlin 20261023T023000 FREQ=DAILY;UNTIL=20271022T000000Z;BYHOUR=2;BYMINUTE=30;BYSECOND=0"
	for _, c := range []struct{ skip, want string }{
		{"2026-10-24T00:30:00Z", daily + " -20261024T023000 +20261025T013000"},
		{"2026-10-25T00:30:00Z", daily + " -20261025T023000 +20261025T013000"}, // the first 02:30 of two
		{"2026-10-25T01:30:00Z", daily},                                        // the second one
	} {
		got := events(t, "30 2 * * *", Defaults{Zone: "Europe/Berlin", Ambiguous: "both"}, at("2026-10-22T12:00:00Z"), at(c.skip))
		if got = strings.ReplaceAll(got, "UNTIL=20271022T120000Z", "UNTIL=20271022T000000Z"); got != c.want {
			t.Errorf("without %s:\n%s\nwant\n%s", c.skip, got, c.want)
		}
	}
	// The first single date is before the start.
	if got, want := events(t, "30 2 * * *", Defaults{Zone: "Europe/Berlin"}, at("2026-10-24T23:00:00Z"), at("2026-10-25T00:30:00Z")),
		"Europe/Berlin 20261026T023000 FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	e := Event{Zone: "Europe/Berlin", Start: at("2026-12-01T07:00:00Z"), Wall: "20261201T080000", Until: at("2026-12-09T07:00:00Z")}
	if e.Skip(at("2026-12-10T07:00:00Z")); e.Except != nil { // the event does not reach so far
		t.Errorf("except %v", e.Except)
	}
}
