package rules

import (
	"encoding/json"
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
