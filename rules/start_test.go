package rules

import (
	"strings"
	"testing"
	"time"
)

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

// The dates of RDATE without an RRULE and a DTSTART are all times of the rule: the moment at which it was made is none.
func TestSingleDatesHaveNoOtherStart(t *testing.T) {
	for _, c := range []struct{ text, zone, ambiguous, want string }{
		{"RDATE:20270101T090000Z", "", "", "20270101T090000Z"},
		{"RDATE:20270301T090000Z\nRDATE:20270101T090000Z,20270201T090000Z", "Europe/Berlin", "", "20270101T090000Z 20270201T090000Z 20270301T090000Z"},
		{"RDATE;VALUE=DATE:20270101", "Europe/Berlin", "", "20261231T230000Z"},
		{"RDATE:20261001T090000Z", "", "", "20261001T090000Z"},              // before it was made
		{"RDATE:20271031T013000Z", "Europe/Berlin", "", "20271031T013000Z"}, // 02:30 for the second time
		{"RDATE:20271031T003000Z", "Europe/Berlin", "last", "20271031T003000Z"},
		{"RDATE;TZID=Europe/Berlin:20271031T023000", "Europe/Berlin", "both", "20271031T003000Z 20271031T013000Z"},
		{"RDATE;TZID=Europe/Berlin:20270328T023000", "Europe/Berlin", "", "20270328T013000Z"},
		{"RDATE:20270101T090000Z,20270102T090000Z\nEXDATE:20270101T090000Z", "", "", "20270102T090000Z"},
		{"RDATE;TZID=America/New_York:20270101T090000", "Europe/Berlin", "", "20270101T140000Z"},
	} {
		r := mustParse(t, c.text, Defaults{Zone: c.zone, Ambiguous: c.ambiguous, Start: now})
		again := mustParse(t, r.String(), Defaults{})
		if again.String() != r.String() {
			t.Errorf("%s: canonical text\n%s\nis read as\n%s", c.text, r, again)
		}
		for _, r := range []*Rule{r, again} {
			list, err := r.Between(First, Last, 0)
			var got []string
			for _, at := range list {
				got = append(got, at.Format("20060102T150405Z"))
			}
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%s in %q: %v, %v; want %s, by\n%s", c.text, c.zone, got, err, c.want, r)
			}
		}
	}
}

// With nonexistent: skip, an EXDATE of a time that the clock leaves out removes no other time.
func TestExceptionOfASkippedTime(t *testing.T) {
	const gap, moved = "TZID=Europe/Berlin:20270328T023000", "2027-03-28T01:30:00Z" // 03:30
	const daily = "DTSTART;TZID=Europe/Berlin:20270101T023000\nRRULE:FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30;BYSECOND=0\n"
	for _, c := range []struct {
		text, nonexistent string
		has               bool
	}{
		{daily + "EXDATE;" + gap, "skip", true},
		{daily + "EXDATE;" + gap, "forward", false},
		{daily + "EXDATE;TZID=Europe/Berlin:20270328T033000", "skip", false},
		// A single time is never skipped, so its exception is none, either.
		{"DTSTART;TZID=Europe/Berlin:20270101T010000\nRRULE:FREQ=DAILY\nRDATE;" + gap + "\nEXDATE;" + gap, "skip", false},
		{"DTSTART;" + gap + "\nRDATE;TZID=Europe/Berlin:20270401T080000\nEXDATE;" + gap, "skip", false},
	} {
		r := mustParse(t, c.text, Defaults{Nonexistent: c.nonexistent})
		for _, r := range []*Rule{r, mustParse(t, r.String(), Defaults{})} {
			next, err := r.Next(time.Unix(instant(t, moved)-1, 0))
			if err != nil || (next.Unix() == instant(t, moved)) != c.has {
				t.Errorf("%s, %s: %s, %v; want 03:30 to be a time: %t", c.text, c.nonexistent, r.local(next.Unix()), err, c.has)
			}
		}
	}
}

// COUNT of a rule that names no start counts the times after the moment at which it was made: that moment is no time of a job.
func TestCountWithoutAStart(t *testing.T) {
	const last = "Europe/Berlin, whose folds are read as last"
	for _, c := range []struct {
		rule, zone, made, canonical string
		want                        []string
	}{
		{"FREQ=HOURLY;COUNT=3", "", "2026-12-01T12:00:00Z", "COUNT=4", []string{"2026-12-01T13:00:00Z", "2026-12-01T14:00:00Z", "2026-12-01T15:00:00Z"}},
		{"FREQ=DAILY;COUNT=1", "", "2026-12-01T12:00:00Z", "COUNT=2", []string{"2026-12-02T12:00:00Z"}},
		{"FREQ=DAILY;COUNT=1;BYHOUR=13", "", "2026-12-01T12:00:00Z", "COUNT=1", []string{"2026-12-01T13:00:00Z"}},
		{"RRULE:FREQ=DAILY;COUNT=3\nEXRULE:FREQ=DAILY;COUNT=1", "", "2026-12-01T12:00:00Z", "COUNT=4", []string{"2026-12-03T12:00:00Z", "2026-12-04T12:00:00Z"}},
		{"FREQ=HOURLY;COUNT=3", last, "2027-10-31T00:30:00Z", "COUNT=3", []string{"2027-10-31T01:30:00Z", "2027-10-31T02:30:00Z", "2027-10-31T03:30:00Z"}}, // for the first time
		{"FREQ=HOURLY;COUNT=2", last, "2027-10-31T01:30:00Z", "COUNT=3", []string{"2027-10-31T02:30:00Z", "2027-10-31T03:30:00Z"}},
		{"FREQ=HOURLY;COUNT=2", "Europe/Berlin", "2027-10-31T01:30:00Z", "COUNT=4", []string{"2027-10-31T02:30:00Z", "2027-10-31T03:30:00Z"}}, // 02:30 for the second time
		{"FREQ=DAILY;COUNT=2147483647", "", "2026-12-01T12:00:00Z", "COUNT=2147483647", nil},
	} {
		made := time.Unix(instant(t, c.made), 7e8)
		d := Defaults{Zone: c.zone, Start: made}
		if c.zone == last {
			d.Zone, d.Ambiguous = "Europe/Berlin", "last"
		}
		r := mustParse(t, c.rule, d)
		if !strings.Contains(r.String(), c.canonical+";") && !strings.Contains(r.String()+"\n", c.canonical+"\n") {
			t.Errorf("%s: no %s in\n%s", c.rule, c.canonical, r)
		}
		if e, err := Explain(r, made); err != nil || !strings.Contains(c.rule, "=2147483647") && !strings.Contains(e.Sentence, counted(len(c.want), "time")+" in all") && len(r.excludes) == 0 {
			t.Errorf("%s is explained as %+v, %v", c.rule, e, err)
		}
		for _, r := range []*Rule{r, mustParse(t, r.String(), Defaults{})} {
			list, err := r.Between(made, Last, 4)
			var got []string
			for _, at := range list {
				got = append(got, at.Format(time.RFC3339))
			}
			if err != nil || c.want != nil && strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("%s made %s: %v, %v; want %v, by\n%s", c.rule, c.made, got, err, c.want, r)
			}
		}
	}
}
