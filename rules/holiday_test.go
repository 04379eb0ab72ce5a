package rules

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseCalendar(t *testing.T) {
	c, err := ParseCalendar("de", "mo-fr", "\ufeff# holidays\r\n2026-12-25 Christmas Day\r\n\r\n2026-12-27..2026-12-31\tclosed # by the house\n01-01 New Year's Day\n02-29\n")
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[string]string{"2026-12-24": "-", "2026-12-25": "Christmas Day", "2026-12-26": "Saturday", "2026-12-27": "closed", "2026-12-31": "closed",
		"2027-01-01": "New Year's Day", "2400-01-01": "New Year's Day", "2028-02-29": "", "2026-03-01": "Sunday", "2026-03-02": "-"} {
		date, _ := time.Parse(time.DateOnly, day)
		name, is := c.Holiday(date)
		if !is {
			name = "-"
		}
		if name != want {
			t.Errorf("%s is %q, want %q", day, name, want)
		}
	}
	if last, ok := c.LastDay(); !ok || last.Format(time.DateOnly) != "2026-12-31" {
		t.Errorf("the last day is %v", last)
	}
	for text, want := range map[string]string{
		"2026-12-25\n25.12.2026":             "line 2: found \"25.12.2026\": a day is",
		"2026-02-29":                         "a day is",
		"02-30":                              "a day is",
		"2026-12-31..2026-12-01":             "a day is",
		"12-31..01-02":                       "a day is",
		"2026-01-01T10:00":                   "a day is",
		"2026-01-01..2039-01-01":             "more than ten years",
		"2026-01-01..2036-01-08\n2036-01-09": "have no working day",
		"01-01..12-31":                       "no working day is left",
		"2026-01-01..2035-12-31\n2040-01-01..2042-01-01": "at most 4000",
	} {
		if _, err := ParseCalendar("x", "", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, working := range []string{"MO-FX", "1-5", "MO-"} {
		if _, err := ParseCalendar("x", working, ""); err == nil || !strings.Contains(err.Error(), "working_days") {
			t.Errorf("%q: %v", working, err)
		}
	}
}

func calendarOf(t *testing.T, working, days string) *Calendar {
	t.Helper()
	c, err := ParseCalendar("de", working, days)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The description says which times a calendar removes and moves. It also says so if the calendar removes all times.
func TestHolidaysAreExplained(t *testing.T) {
	c := calendarOf(t, "MO-FR", "2026-12-25 Christmas Day\n2027-01-01 New Year's Day")
	at := time.Date(2026, 12, 20, 0, 0, 0, 0, time.UTC)
	for on, want := range map[string][]string{
		"skip":     {"2026-12-25 skipped: Christmas Day", "2027-01-01 skipped: New Year's Day"},
		"next":     {"2026-12-28 instead of 2026-12-25: Christmas Day"},
		"previous": {"2026-12-24 instead of 2026-12-25: Christmas Day", "2026-12-31 instead of 2027-01-01: New Year's Day"},
	} {
		e, err := Explain(mustParse(t, "0 6 * * *", Defaults{Zone: "Europe/Berlin", Calendar: c, OnHoliday: on}), at)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range append(want, "a day that is no working day of the calendar de") {
			if !strings.Contains(e.Text(), line) {
				t.Errorf("%s: %q is not in\n%s", on, line, e.Text())
			}
		}
		if strings.Contains(e.Text(), "Saturday") {
			t.Errorf("%s: each weekend is said:\n%s", on, e.Text())
		}
	}
	// The last working day of the month.
	r := mustParse(t, "monthly on the last weekday at 18:00", Defaults{Calendar: calendarOf(t, "MO-FR", "2026-07-31\n2026-12-31\n2026-12-30"), OnHoliday: "previous"})
	list, err := r.Between(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 0)
	got := fmt.Sprint(list)
	if err != nil || len(list) != 6 || !strings.Contains(got, "2026-07-30 18:00") || !strings.Contains(got, "2026-12-29 18:00") {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"0 6 * * SAT", "at 2026-12-25T08:00", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=26"} {
		_, err := Parse(text, Defaults{Calendar: calendarOf(t, "MO-FR", "12-25..12-26"), OnHoliday: "skip"})
		if !errors.Is(err, ErrNeverFires) || !strings.Contains(err.Error(), "calendar removes") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for want, d := range map[string]Defaults{`on_holiday is "later"`: {Calendar: c, OnHoliday: "later"}, "there is no calendar": {OnHoliday: "skip"}} {
		if _, err := Parse("@daily", d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A time that a change at midnight leaves out belongs to the day that the rule names, and not to the day on which it would
// run: in Nuuk, Saturday 23:30 is Sunday 00:30 in that night.
func TestHolidaysAtAGapBeforeMidnight(t *testing.T) {
	from, to := time.Date(2027, 3, 27, 0, 0, 0, 0, time.UTC), time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ rule, working, days, on, want, holidays string }{
		{"weekly on sat at 23:30", "MO-FR", "", "next", "Mon 2027-03-29 23:30:00 -01:00", "2027-03-29 instead of 2027-03-27: Saturday"},
		{"weekly on sat at 23:30", "MO-FR", "", "skip", "", ""},
		{"weekly on sat at 23:30", "SA", "", "skip", "Sun 2027-03-28 00:30:00 -01:00", ""},
		{"weekly on sat at 23:30", "MO-SA", "", "next", "Sun 2027-03-28 00:30:00 -01:00", ""},
		{"30 0,23 * * SAT,SUN", "MO-FR", "2027-03-27 fair\n2027-03-28 feast", "next", "Mon 2027-03-29 00:30:00 -01:00, Mon 2027-03-29 23:30:00 -01:00",
			"2027-03-29 instead of 2027-03-27: fair, 2027-03-29 instead of 2027-03-28: feast"},
		{"5,30 0,23 * * SAT,SUN", "MO-SA", "2027-03-28 feast", "next", "Sat 2027-03-27 00:05:00 -02:00, Sat 2027-03-27 00:30:00 -02:00, Sun 2027-03-28 00:05:00 -01:00, Sun 2027-03-28 00:30:00 -01:00, " +
			"Mon 2027-03-29 00:05:00 -01:00, Mon 2027-03-29 00:30:00 -01:00, Mon 2027-03-29 23:05:00 -01:00, Mon 2027-03-29 23:30:00 -01:00", "2027-03-29 instead of 2027-03-28: feast"},
		{"30 0,23 * * SAT,SUN", "", "2027-03-27 fair", "skip", "Sun 2027-03-28 00:30:00 -01:00, Sun 2027-03-28 23:30:00 -01:00", "2027-03-27 skipped: fair"},
	} {
		what := fmt.Sprintf("%s, working %s, days %q, %s", c.rule, c.working, c.days, c.on)
		r, err := Parse(c.rule, Defaults{Zone: "America/Nuuk", Calendar: calendarOf(t, c.working, c.days), OnHoliday: c.on})
		if errors.Is(err, ErrNeverFires) && c.want == "" {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		list, err := r.Between(from, to, 0)
		var got []string
		for _, at := range list {
			got = append(got, r.local(at.Unix()))
		}
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, %v; want %s", what, got, err, c.want)
		}
		holidays, err := r.Holidays(from, to, 10, nil)
		got = nil
		for _, h := range holidays {
			got = append(got, h.Text())
		}
		if err != nil || strings.Join(got, ", ") != c.holidays {
			t.Errorf("%s: %v, %v; want %s", what, got, err, c.holidays)
		}
	}
}

// EXDATE of a day takes a time of that day which the clock leaves out, also where another day has the same instant.
func TestExcludedDayAtAGapBeforeMidnight(t *testing.T) {
	const text = "DTSTART;TZID=America/Nuuk:20270301T000000\nRRULE:FREQ=WEEKLY;BYDAY=SA;BYHOUR=23;BYMINUTE=30;BYSECOND=0\n" +
		"RRULE:FREQ=WEEKLY;BYDAY=SU;BYHOUR=0;BYMINUTE=30;BYSECOND=0\nEXDATE;VALUE=DATE:20270327"
	from, to := time.Date(2027, 3, 26, 0, 0, 0, 0, time.UTC), time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	r := mustParse(t, text, Defaults{Calendar: calendarOf(t, "MO-FR", "2027-03-27 fair\n2027-03-28 feast"), OnHoliday: "next"})
	list, err := r.Between(from, to, 0)
	if err != nil || len(list) != 1 || r.local(list[0].Unix()) != "Mon 2027-03-29 00:30:00 -01:00" {
		t.Errorf("%v, %v", list, err)
	}
	holidays, err := r.Holidays(from, to, 10, nil)
	if err != nil || len(holidays) != 1 || holidays[0].Text() != "2027-03-29 instead of 2027-03-28: feast" {
		t.Errorf("%+v, %v", holidays, err)
	}
}

// A single time that a clock change leaves out is moved like that of a recurrence: it keeps the wall time that the text names,
// also in the canonical text.
func TestSingleTimesInAGapMove(t *testing.T) {
	for _, c := range []struct{ rule, zone, nonexistent, on, want string }{
		{"30 2 * * SUN", "Europe/Berlin", "", "next", "Mon 2027-03-29 02:30:00 +02:00"},
		{"at 2027-03-28T02:30", "Europe/Berlin", "", "next", "Mon 2027-03-29 02:30:00 +02:00"},
		{"at 2027-03-28T02:30, 2027-03-28T02:45, 2027-03-30T08:00", "Europe/Berlin", "skip", "previous",
			"Fri 2027-03-26 02:30:00 +01:00, Fri 2027-03-26 02:45:00 +01:00, Tue 2027-03-30 08:00:00 +02:00"},
		{"DTSTART;TZID=Europe/Berlin:20270328T023000", "", "", "next", "Mon 2027-03-29 02:30:00 +02:00"},
		{"DTSTART;TZID=Europe/Berlin:20270328T023000\nRDATE;TZID=Europe/Berlin:20270330T080000", "", "", "skip", "Tue 2027-03-30 08:00:00 +02:00"},
		{"at 2027-03-27T23:30, 2027-03-30T08:00", "America/Nuuk", "", "next", "Mon 2027-03-29 23:30:00 -01:00, Tue 2027-03-30 08:00:00 -01:00"},
		{"DTSTART;TZID=America/Nuuk:20270327T233000\nRDATE;TZID=America/Nuuk:20270330T080000\nEXDATE;VALUE=DATE:20270327", "", "", "", "Tue 2027-03-30 08:00:00 -01:00"},
		// Where an ordinary single time, or one of a recurrence, is the same instant, both wall times count.
		{"at 2027-03-28T02:30, 2027-03-28T03:30", "Europe/Berlin", "", "next", "Mon 2027-03-29 02:30:00 +02:00, Mon 2027-03-29 03:30:00 +02:00"},
		{"at 2027-03-28T02:30, 2027-03-28T01:30:00Z", "Europe/Berlin", "skip", "next", "Mon 2027-03-29 02:30:00 +02:00, Mon 2027-03-29 03:30:00 +02:00"},
		{"at 2027-03-27T23:30, 2027-03-28T00:30, 2027-03-30T08:00", "America/Nuuk", "", "skip MO-FR,SU", "Sun 2027-03-28 00:30:00 -01:00, Tue 2027-03-30 08:00:00 -01:00"},
		{"DTSTART;TZID=Europe/Berlin:20270328T013000\nRRULE:FREQ=HOURLY;COUNT=2\nRDATE;TZID=Europe/Berlin:20270328T023000", "", "", "next",
			"Mon 2027-03-29 01:30:00 +02:00, Mon 2027-03-29 02:30:00 +02:00, Mon 2027-03-29 03:30:00 +02:00"},
	} {
		d := Defaults{Zone: c.zone, Nonexistent: c.nonexistent, OnHoliday: c.on}
		if c.on != "" {
			on, working, _ := strings.Cut(c.on, " ")
			d.OnHoliday, d.Calendar = on, calendarOf(t, cmp.Or(working, "MO-FR"), "")
		}
		r := mustParse(t, c.rule, d)
		again := mustParse(t, r.String(), Defaults{})
		if again.String() != r.String() {
			t.Errorf("%s: canonical text\n%s\nis read as\n%s", c.rule, r, again)
		}
		for _, r := range []*Rule{r, again} {
			list, err := r.Between(time.Date(2027, 3, 25, 0, 0, 0, 0, time.UTC), time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC), 0)
			var got []string
			for _, at := range list {
				got = append(got, r.local(at.Unix()))
			}
			if err != nil || strings.Join(got, ", ") != c.want {
				t.Errorf("%s in %s, %s: %v, %v; want %s, by\n%s", c.rule, c.zone, c.on, got, err, c.want, r)
			}
		}
	}
}

// EXDATE by date removes the day, whatever the times.
func TestExcludedDays(t *testing.T) {
	for _, text := range []string{
		"DTSTART;TZID=Europe/Berlin:20261224T003000\nRRULE:FREQ=HOURLY;INTERVAL=12\nEXDATE;VALUE=DATE:20261225,20261227",
		"FREQ=DAILY;BYHOUR=0,12;BYMINUTE=30;BYSECOND=0\nEXDATE;VALUE=DATE:20261225\nEXDATE;VALUE=DATE:20261227",
	} {
		if strings.HasPrefix(text, "FREQ") {
			text = "RRULE:" + text
		}
		r := mustParse(t, text, Defaults{Zone: "Europe/Berlin"})
		for _, r := range []*Rule{r, mustParse(t, r.String(), Defaults{})} {
			list, err := r.Between(time.Date(2026, 12, 24, 1, 0, 0, 0, time.UTC), time.Date(2026, 12, 28, 0, 0, 0, 0, time.UTC), 0)
			var got []string
			for _, at := range list {
				got = append(got, at.Format("02T15:04"))
			}
			if want := "[24T11:30 25T23:30 26T11:30 27T23:30]"; err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s\n%v, %v; want %s", r, got, err, want)
			}
			if n, err := r.Count(time.Date(2026, 12, 24, 1, 0, 0, 0, time.UTC), time.Date(2026, 12, 28, 0, 0, 0, 0, time.UTC)); n != 4 || err != nil {
				t.Errorf("Count is %d, %v", n, err)
			}
		}
	}
}

// The days of EXDATE are those of the rule's clock, whatever the zone of the schedule. A calendar does not change that.
func TestExcludedDaysBesideACalendar(t *testing.T) {
	from, to := time.Date(2026, 12, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 28, 0, 0, 0, 0, time.UTC)
	for _, start := range []string{"DTSTART:20260101T233000Z", "DTSTART;TZID=America/New_York:20260101T193000"} {
		text := start + "\nRRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20261224"
		r := mustParse(t, text, Defaults{Zone: "Europe/Berlin"})
		want, err := r.Between(from, to, 0)
		if err != nil || len(want) != 7 {
			t.Fatal(want, err)
		}
		for on := range holidayNames {
			with := mustParse(t, text, Defaults{Zone: "Europe/Berlin", Calendar: calendarOf(t, "", "07-01"), OnHoliday: holidayNames[on]})
			for _, r := range []*Rule{with, mustParse(t, with.String(), Defaults{})} {
				if got, err := r.Between(from, to, 0); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s\n%v, %v; want %v", r, got, err, want)
				}
			}
		}
	}
}

// A calendar that moves the times of each second does not use up the budget of a search around a clock change.
func TestMovedSecondsAroundAClockChange(t *testing.T) {
	for _, c := range []struct {
		rule, zone, days, nonexistent, from string
		most                                int
	}{
		{"every 1s", "Europe/Berlin", "", "", "2027-03-25", 1000},
		{"every 1s", "Europe/Berlin", "2027-03-26 Good Friday\n2027-03-29 Easter Monday", "", "2027-03-25", 1000},
		{"every 1s", "Europe/Berlin", "", "", "2026-10-22", 1000},
		{"* * * * * *", "Europe/Berlin", "", "", "2027-03-25", 1000},
		{"* * * * * *", "Europe/Berlin", "", "skip", "2027-03-25", 1000},
		{"* * * * * *", "America/Nuuk", "", "", "2027-03-25", 1000},
		{"FREQ=SECONDLY;BYHOUR=0,1,2,3,4,5,23", "Europe/Berlin", "", "", "2027-03-25", 1000},
		{"FREQ=SECONDLY;BYHOUR=2", "Europe/Berlin", "", "", "2027-03-25", searchSteps / 4}, // each second of an hour belongs to one wall time of two
	} {
		for _, on := range holidayNames[1:] {
			d := Defaults{Zone: c.zone, Nonexistent: c.nonexistent, Calendar: calendarOf(t, "MO-FR", c.days), OnHoliday: on}
			r := mustParse(t, c.rule, d)
			from := instant(t, c.from+"T00:00:00Z")
			for at := from; at < from+6*secondsPerDay; at += 600 {
				for name, ask := range map[string]func(int64, *budget) (int64, bool){"next": r.next, "prev": r.prev} {
					b := budget{searchSteps}
					if _, ok := ask(at, &b); !ok || searchSteps-b.left > c.most {
						t.Fatalf("%s in %s, %s, %s of %s: found %t, %d steps", c.rule, c.zone, on, name, r.local(at), ok, searchSteps-b.left)
					}
				}
			}
		}
	}
}
