package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustParse(t testing.TB, text string, d Defaults) *Rule {
	t.Helper()
	r, err := Parse(text, d)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func TestExplain(t *testing.T) {
	r := mustParse(t, "30 2 * * *", Defaults{Zone: "Europe/Berlin"})
	e, err := Explain(r, time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	const want = `At 02:30 every day (Europe/Berlin).

Canonical    DTSTART;TZID=Europe/Berlin:19700101T000000
             RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0
             X-DBJOBS-NONEXISTENT:forward
             X-DBJOBS-AMBIGUOUS:first
Zone         Europe/Berlin (tzdata 2025c)
Next         2026-03-28T01:30:00Z  Sat 2026-03-28 02:30:00 +01:00
             2026-03-29T01:30:00Z  Sun 2026-03-29 03:30:00 +02:00
             2026-03-30T00:30:00Z  Mon 2026-03-30 02:30:00 +02:00
             2026-03-31T00:30:00Z  Tue 2026-03-31 02:30:00 +02:00
             2026-04-01T00:30:00Z  Wed 2026-04-01 02:30:00 +02:00
Clock change 2026-03-29T01:00:00Z  02:00 becomes 03:00: times that the change leaves out move forward by its length
               2026-03-29T01:30:00Z  Sun 2026-03-29 03:30:00 +02:00
Clock change 2026-10-25T01:00:00Z  03:00 becomes 02:00: times that exist twice fire once, at the first
               2026-10-25T00:30:00Z  Sun 2026-10-25 02:30:00 +02:00
`
	if got := strings.ReplaceAll(e.Text(), TZDataVersion(), "2025c"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"form":"cron"`, `"rule":"30 2 * * *"`, `"odd_nights":[{"at":"2026-03-29T01:00:00Z"`, `"at":"2026-03-28T01:30:00Z"`} {
		if !strings.Contains(string(data), part) {
			t.Errorf("%s is not in %s", part, data)
		}
	}
}

func TestLint(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	var many []*Rule
	for range 11 {
		many = append(many, mustParse(t, "0 0 * * *", Defaults{}))
	}
	for _, c := range []struct {
		rule, zone string
		want       string
	}{
		{"0 9 * * MON-FRI", "Europe/Berlin", ""},
		{"0 0 * * *", "", "collision"},
		{"0 1 * * *", "", ""},
		{"at 2025-01-01T00:00", "", "exhausted"},
		{"* * * * * *", "", "dense"},
		{"* * * * *", "", ""},
		{"0 1 31 * *", "", "month-end"},
		{"0 1 30,31 * *", "", "month-end"},
		{"0 1 31 1,3 *", "", ""},
		{"0 1 1,31 * *", "", ""},
		{"DTSTART:20260131T000100Z\nRRULE:FREQ=MONTHLY", "", "month-end"},
		{"DTSTART:20260131T000100Z\nRRULE:FREQ=MONTHLY;SKIP=BACKWARD", "", ""},
		{"30 2 * * *", "Europe/Berlin", "clock-change clock-change"},
		{"DTSTART:20260201T023000\nRRULE:FREQ=DAILY", "Europe/Berlin", "clock-change clock-change"},
		{"DTSTART:20260201T023000\nRRULE:FREQ=DAILY\nX-DBJOBS-NONEXISTENT:forward", "Europe/Berlin", "clock-change"},
		{"DTSTART:20260201T023000\nRRULE:FREQ=DAILY\nx-dbjobs-nonexistent:forward\nX-DBJOBS-AMBIGUOUS:first", "Europe/Berlin", ""},
		{"30 2 * * *", "Asia/Tokyo", ""},
		{"30 * * * *", "Europe/Berlin", ""},
		{"DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY", "", "past-start"},
		{"DTSTART:20260201T090000Z\nRRULE:FREQ=DAILY", "", ""},
		{"DTSTART:20260201T090000Z\nRRULE:FREQ=DAILY;BYHOUR=10", "", "unaligned"},
		{"every 2 days starting 2026-01-01T10:00", "", "past-start"},
		{"FREQ=DAILY;BYHOUR=3;BYMINUTE=0", "", "unstarted"},
		{"FREQ=HOURLY;BYMINUTE=0", "", "unstarted"},
		{"FREQ=WEEKLY;BYHOUR=3;BYMINUTE=0;BYSECOND=0", "", "unstarted"},
		{"FREQ=MONTHLY;BYDAY=1MO;BYHOUR=3;BYMINUTE=0;BYSECOND=0", "", ""},
		{"FREQ=MINUTELY;BYSECOND=30", "", ""},
		{"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=8;BYMINUTE=0;BYSECOND=0", "", "unstarted"},
		{"FREQ=WEEKLY;BYDAY=MO;BYHOUR=8;BYMINUTE=0;BYSECOND=0;COUNT=3", "", "exhausted unstarted"}, // its start is that of 1970
		{"RDATE:20260201T090000Z", "", ""},
		{"0 1 13 * FRI", "", "either-day"},
		{"0 1 */2 * FRI", "", "both-days"},
		{"0 0 12 ? * 2-6", "", "weekday-one"},
		{"0 0 12 ? * MON,6L", "", "weekday-one"},
		{"0 0 12 LW * 2", "", "weekday-one either-day"},
		{"0 0 12 ? * MON-FRI", "", ""},
		{"0 0 12 ? * */2", "", ""},
		{"0 0 12 * * 2", "", ""},
		{"0 12 ? * 2", "", ""},
		{"*/7 1 * * *", "", "uneven-step"},
		{"1 */5 * * *", "", "uneven-step"},
		{"5/15 */6 2 * *", "", ""},
		{"0 14-15/2 * * *", "", "lone-step"},
		{"50/30 9 * * *", "", "lone-step"},
		{"0 50/30 9 1-2/5 * *", "", "lone-step lone-step"},
		{"0 9 * 3,5-6/4 MON-TUE/2", "", "lone-step lone-step"},
		{"0 9-11/2 1-3/2 1-12/11 MON-FRI/4", "", "either-day"},
	} {
		list, err := Lint(mustParse(t, c.rule, Defaults{Zone: c.zone}), LintOptions{Now: now, Others: many})
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, w := range list {
			codes = append(codes, w.Code)
			if len(w.Message) < 20 {
				t.Errorf("%s: %q says too little", c.rule, w.Message)
			}
		}
		if got := strings.Join(codes, " "); got != c.want {
			t.Errorf("%s in %q: %v, want %q", c.rule, c.zone, list, c.want)
		}
	}
}

// The warning of a rule without a start says what it takes from the moment at which it was made.
func TestLintNamesWhatAStartChooses(t *testing.T) {
	const moment = " from the moment at which its schedule is made, here Sat 2026-11-21 10:30:17 +00:00"
	for rule, want := range map[string]string{
		"FREQ=DAILY;BYMINUTE=0": "takes BYHOUR, BYSECOND" + moment + "; write a DTSTART, or these parts",
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=8;BYMINUTE=0;BYSECOND=0": "counts INTERVAL" + moment + "; write a DTSTART",
		"FREQ=SECONDLY;INTERVAL=2;COUNT=5":                               "counts INTERVAL, COUNT" + moment + "; write a DTSTART",
		"FREQ=HOURLY;COUNT=5":                                            "takes BYMINUTE, BYSECOND" + moment + ", and counts COUNT from there; write a DTSTART",
	} {
		list, err := Lint(mustParse(t, rule, Defaults{Start: now}), LintOptions{Now: now, MaxPerDay: 1e6})
		if err != nil || len(list) != 1 || list[0].Code != WarnUnstarted || list[0].Message != "has no DTSTART, so it "+want {
			t.Errorf("%s: %v, %v; want it %s", rule, list, err, want)
		}
	}
}

// The warning counts only months that INTERVAL reaches.
func TestLintCountsReachedMonths(t *testing.T) {
	for rule, want := range map[string]string{
		"monthly on 31 at 8:00":                                     "5 months",
		"every 2 months on 31 at 8:00 starting 2027-01-01":          "2 months",
		"every 9 months on 31 at 8:00 starting 2027-01-01":          "1 month", // January, October, July, April
		"every 12 months on 31 at 8:00 starting 2027-01-01":         "",
		"DTSTART:20270430T080000Z\nRRULE:FREQ=MONTHLY;INTERVAL=12":  "",
		"DTSTART:20270131T080000Z\nRRULE:FREQ=MONTHLY;INTERVAL=3":   "1 month",
		"DTSTART:20270131T080000Z\nRRULE:FREQ=YEARLY;INTERVAL=3":    "",
		"DTSTART:20270131T080000Z\nRRULE:FREQ=YEARLY;BYMONTHDAY=30": "1 month",
	} {
		list, err := Lint(mustParse(t, rule, Defaults{}), LintOptions{Now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range list {
			if w.Code == WarnMonthEnd {
				_, got, _ = strings.Cut(w.Message, ": ")
				got, _, _ = strings.Cut(got, " without")
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}

// A change on a day without work is met only by times that move to that day, or that are lost before they move.
func TestChangesWithACalendar(t *testing.T) {
	const (
		none    = "the rule has no time that the change leaves out or repeats"
		skipped = "times that the change leaves out are skipped"
		forward = "times that the change leaves out move forward by its length"
	)
	for _, c := range []struct {
		rule, working, days, on, nonexistent string
		warned                               bool
		remark, holiday                      string
	}{
		{"30 2 * * *", "MO-FR", "", "skip", "", false, none, ""},
		{"30 2 * * *", "MO-FR", "", "next", "", false, none, ""},
		{"30 2 * * *", "", "12-25", "next", "", true, forward, ""},
		{"at 2027-03-28T02:30, 2027-04-01T08:00", "MO-FR", "", "skip", "", false, none, ""},
		{"30 2 * * SAT", "", "2027-03-27", "next", "", true, forward, "2027-03-28 instead of 2027-03-27"},
		{"at 2027-03-27T02:30", "", "2027-03-27", "next", "", true, forward, "2027-03-28 instead of 2027-03-27"},
		{"30 2 * * SAT", "", "2027-03-27", "next", "skip", false, skipped, "2027-03-27 skipped"},
		{"30 2 * * SUN", "MO-FR", "", "next", "skip", false, skipped, ""},
		{"DTSTART;TZID=Europe/Berlin:20260101T023000\nRRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20270328", "", "", "", "", false, none, ""},
		{"DTSTART;TZID=Europe/Berlin:20260101T023000\nRRULE:FREQ=DAILY\nEXDATE;TZID=Europe/Berlin:20270328T023000", "", "", "", "", false, none, ""},
		{"DTSTART;TZID=Europe/Berlin:20260101T023000\nRRULE:FREQ=DAILY;BYMINUTE=30,45\nEXDATE;TZID=Europe/Berlin:20270328T023000", "", "", "", "", true, forward, ""},
		{"DTSTART;TZID=Europe/Berlin:20260101T023000\nRRULE:FREQ=DAILY\nEXRULE:FREQ=MONTHLY;BYDAY=-1SU", "", "", "", "", false, none, ""},
		{"DTSTART;TZID=Europe/Berlin:20260101T023000\nRRULE:FREQ=WEEKLY;BYDAY=SA\nEXDATE;TZID=Europe/Berlin:20270327T023000", "", "2027-03-27", "next", "", false, none, ""},
		{"DTSTART;TZID=Europe/Berlin:20270401T023000\nRDATE;TZID=Europe/Berlin:20270328T023000\nEXDATE;TZID=Europe/Berlin:20270328T023000", "", "", "", "", false, none, ""},
	} {
		d := Defaults{Zone: "Europe/Berlin", OnHoliday: c.on, Nonexistent: c.nonexistent}
		if c.on != "" {
			d.Calendar = calendarOf(t, c.working, c.days)
		}
		what := fmt.Sprintf("%s, working %q, days %q, %s %s", c.rule, c.working, c.days, c.on, c.nonexistent)
		r := mustParse(t, c.rule, d)
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		list, err := Lint(r, LintOptions{Now: now, AmbiguousChosen: true})
		if err != nil || slices.ContainsFunc(list, func(w Warning) bool { return w.Code == WarnClockChange }) != c.warned {
			t.Errorf("%s: %v, %v; want a warning: %t", what, list, err, c.warned)
		}
		e, err := Explain(r, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.OddNights[0].Remark; got != c.remark {
			t.Errorf("%s: %s; want %s", what, got, c.remark)
		}
		if c.holiday != "" && !strings.Contains(e.Text(), c.holiday+"\n") {
			t.Errorf("%s: %q is not in\n%s", what, c.holiday, e.Text())
		}
	}
}

// A change at midnight leaves out times of the new day, and repeats times of the old one. The warning names that day.
func TestLintNamesTheDayOfAChange(t *testing.T) {
	for rule, want := range map[string]string{
		"30 0 * * *":  "on 2027-04-30 in Africa/Cairo 00:00 becomes 01:00",
		"30 23 * * *": "on 2027-10-28 in Africa/Cairo 00:00 becomes 23:00",
	} {
		list, err := Lint(mustParse(t, rule, Defaults{Zone: "Africa/Cairo"}), LintOptions{Now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Message, want+": ") {
			t.Errorf("%s: %v, %v; want %s", rule, list, err, want)
		}
	}
}

// The remark about a change is true for single times, and for rules that follow elapsed time where a change is no whole
// number of hours.
func TestRemarksOfChanges(t *testing.T) {
	t.Parallel()
	const (
		moved = "times that the change leaves out move forward by its length"
		none  = "the rule has no time that the change leaves out or repeats"
		first = "times that exist twice fire once, at the first"
		last  = "times that exist twice fire once, at the last"
		both  = "times that exist twice fire twice"
		kept  = "the rule follows elapsed time, so it loses nothing"
		lost  = "times that the change leaves out do not run"
		twice = "the rule follows elapsed time, so repeated times fire twice"
		once  = "the rule follows elapsed time, so it repeats nothing"
	)
	for _, c := range []struct{ rule, zone, after, ambiguous, want string }{
		{"at 2027-03-28T02:30", "Europe/Berlin", "2027-01-01T00:00:00Z", "", moved},
		{"at 2027-01-01T08:00, 2027-10-31T02:30", "Europe/Berlin", "2027-05-01T00:00:00Z", "", first},
		{"at 2027-01-01T08:00, 2027-10-31T02:30", "Europe/Berlin", "2027-05-01T00:00:00Z", "last", last},
		{"at 2027-10-31T02:30", "Europe/Berlin", "2027-05-01T00:00:00Z", "both", both},
		{"at 2027-10-31T00:30:00Z Europe/Berlin", "", "2027-05-01T00:00:00Z", "", none}, // the text itself says which of the two
		{"at 2027-03-28T04:00", "Europe/Berlin", "2027-01-01T00:00:00Z", "", none},
		{"DTSTART;TZID=Europe/Berlin:20270328T023000", "", "2027-01-01T00:00:00Z", "", moved},
		{"DTSTART;TZID=Europe/Berlin:20270101T080000\nRDATE;TZID=Europe/Berlin:20270328T023000", "", "2027-01-01T00:00:00Z", "", moved},
		{"0 * * * *", "Europe/Berlin", "2027-01-01T00:00:00Z", "", kept},
		{"0 * * * *", "Europe/Berlin", "2027-05-01T00:00:00Z", "", twice},
		{"0 * * * *", "Australia/Lord_Howe", "2027-05-01T00:00:00Z", "", lost},
		{"0 * * * *", "Australia/Lord_Howe", "2027-01-01T00:00:00Z", "", once},
		{"*/30 * * * *", "Australia/Lord_Howe", "2027-05-01T00:00:00Z", "", kept},
		{"30 * * * *", "Australia/Lord_Howe", "2027-01-01T00:00:00Z", "", twice},
		{"DTSTART;TZID=Australia/Lord_Howe:20270101T000000\nRRULE:FREQ=HOURLY", "", "2027-05-01T00:00:00Z", "", kept},
		{"0 * 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "", lost},
		{"0 * * * *", "Pacific/Apia", "2011-12-01T00:00:00Z", "", kept},
	} {
		e, err := Explain(mustParse(t, c.rule, Defaults{Zone: c.zone, Ambiguous: c.ambiguous}), time.Unix(instant(t, c.after), 0))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.OddNights[0].Remark; got != c.want {
			t.Errorf("%s in %s after %s: %s; want %s", c.rule, c.zone, c.after, got, c.want)
		}
	}
	r := mustParse(t, "at 2027-03-28T02:30", Defaults{Zone: "Europe/Berlin", Nonexistent: "skip"})
	if at, err := r.Next(time.Unix(0, 0)); err != nil || at.Format(time.RFC3339) != "2027-03-28T01:30:00Z" {
		t.Errorf("%v, %v; a single time is not skipped", at, err)
	}
	list, err := Lint(r, LintOptions{Now: time.Unix(instant(t, "2027-01-01T00:00:00Z"), 0)})
	if err != nil || len(list) != 1 || list[0].Code != WarnClockChange {
		t.Errorf("%v, %v; want a warning that 02:30 becomes 03:30", list, err)
	}
}

// A rule with too many times to count gets its warnings on each day of the week, also before a day to which a calendar moves others.
func TestLintOfARuleTooDenseToCount(t *testing.T) {
	r := mustParse(t, "daily every 7s from 8:00 to 18:00 starting 2027-01-04", Defaults{Calendar: calendarOf(t, "MO-FR", ""), OnHoliday: "next"})
	for day := range 7 {
		now, want := time.Date(2027, 3, 22+day, 12, 0, 0, 0, time.UTC), "dense past-start"
		if now.Weekday() == time.Saturday {
			want = "past-start"
		}
		list, err := Lint(r, LintOptions{Now: now})
		var codes []string
		for _, w := range list {
			codes = append(codes, w.Code)
		}
		if got := strings.Join(codes, " "); err != nil || got != want {
			t.Errorf("on %s: %v: %q", now.Weekday(), err, list)
		}
	}
}
