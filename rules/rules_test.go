package rules

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Every refusal names the form, the position, the text there, and the texts that are allowed there.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		text, form, found, allowed string
		pos                        int
	}{
		{"", "rule", "", "a rule is", 0},
		{"whenever", "rule", "whenever", "five or six cron fields", 0},
		{"0 0\x01 * * *", "rule", "\x01", "printable", 3},
		{"0 0 * * ✓", "rule", "✓", "printable", 8},
		{"FREQ=DAILY\r", "rrule", "", "", -1}, // white space at the end does not count
		{"FREQ=DAILY\rX", "rule", "\r", "printable", 10},
		{strings.Repeat("0,", 1<<19), "rule", strings.Repeat("0,", 20) + "…", "at most 65535 bytes", 0},
		{"  61 * * * *", "cron", "61", "the minute is 0-59", 2},
		{"* * * FOO *", "cron", "FOO", "JAN-DEC", 6},
		{"0 0 1-32 * *", "cron", "32", "the day of month is 1-31", 6},
		{"0 0 * * 2#", "cron", "", "n 1-5", 10},
		{"* * * *", "cron", "", "this one has 4", 7},
		{"0 9 * * MON-FRI Europe/Berlin", "cron", "Europe/Berlin", "zone: Europe/Berlin", 16},
		{" 0 0 9 * * MON Europe/Berlin ", "cron", "Europe/Berlin", "zone: Europe/Berlin", 15},
		{"CRON_TZ=Europe/Berlin 30 7 * * *", "cron", "CRON_TZ=Europe/Berlin", "zone: Europe/Berlin", 0},
		{"TZ=UTC 0 30 7 * * *", "rule", "TZ=UTC", "zone: UTC", 0},
		{"Asia/Tokyo 30 7 * * *", "cron", "Asia/Tokyo", "--zone Asia/Tokyo", 0},
		{"@daily UTC", "cron", "UTC", "zone: UTC", 7},
		{"daily at 08:00 Asia/Tokyo", "calendar", "Asia/Tokyo", "zone: Asia/Tokyo", 15},
		{"W 1 7:30 Asia/Tokyo", "pgjobs", "Asia/Tokyo", "zone: Asia/Tokyo", 9},
		{"every 5m UTC", "interval", "UTC", "zone: UTC", 9},
		{"0 9 * * MON-FRI Europe/Berln", "cron", "MON", "the month is 1-12", 8},
		{"FREQ=DAILY;BYHOUR=7,25", "rrule", "25", "BYHOUR is 0 to 23", 20},
		{"FREQ=DAILY;BYHOUR=+7", "rrule", "+7", "BYHOUR is 0 to 23", 18},
		{"FREQ=MONTHLY;BYMONTHDAY=--1", "rrule", "--1", "-31 to -1", 24},
		{"FREQ=DAILY;COUNT=1,2", "rrule", "1", "COUNT is 1", 17},
		{"DTSTART:20260101T000000Z\n\nRRULE:FREQ=DAILY;X=1", "rrule", "X", "allowed parts", 43},
		{"DTSTART;TZID=Europe/Berlin:20260101T000000\r\nRRULE:FREQ=NEVER", "rrule", "NEVER", "SECONDLY", 55},
		{"RRULE:FREQ=DAI\n LY;COUN\r\n\tT=3", "rrule", "", "", -1}, // folded lines are joined
		{"RRULE:FREQ=DAI\n LY;COUN\r\n\tT=0", "rrule", "0", "COUNT is 1", 28},
		{"every 5 eons", "interval", "eons", "units:", 8},
		{"every 3M", "interval", "M", "minutes or for months", 7},
		{"every 1 M starting 2026-01-01", "interval", "M", "minutes or for months", 8},
		{"0 8 * * MON–FRI", "rule", "–", "printable ASCII", 11},
		{"D 32 7:00", "pgjobs", "32", "D 1-31", 2},
		{"monthly on 32 at 7:00", "calendar", "32", "days: 1 to 31", 11},
		{"at 2026-13-01T00:00", "once", "2026-13-01T00:00", "YYYY-MM-DDTHH:MM", 3},
	} {
		_, err := Parse(c.text, Defaults{})
		if c.pos < 0 {
			if err != nil {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		var e *SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("%.40q: %v is no SyntaxError", c.text, err)
			continue
		}
		if e.Form != c.form || e.Pos != c.pos || e.Found != c.found || !strings.Contains(e.Allowed, c.allowed) {
			t.Errorf("%.40q: %+v; want %s at %d, %q, %q", c.text, e, c.form, c.pos, c.found, c.allowed)
		}
	}
}

// A TZID beside a date says in which zone the days begin. UNTIL is a date then, too.
func TestDateWithZone(t *testing.T) {
	r := mustParse(t, "DTSTART;VALUE=DATE;TZID=Europe/Berlin:20261201\nRRULE:FREQ=DAILY;UNTIL=20261203", Defaults{})
	list, err := r.Between(time.Unix(0, 0), time.Unix(endInstant, 0), 0)
	if err != nil || len(list) != 3 || list[2].Format(time.RFC3339) != "2026-12-02T23:00:00Z" {
		t.Errorf("%v, %v; want three days", list, err)
	}
}

func TestDefaultsAreChecked(t *testing.T) {
	for want, d := range map[string]Defaults{
		"such as Europe/Berlin":      {Zone: "CET"},
		"such as America/New_York":   {Zone: "EST"},
		"unknown time zone":          {Zone: "Europe/Atlantis"},
		"did you mean Europe/Berlin": {Zone: "europe/berlin"},
		`"Local" is no zone's name`:  {Zone: "Local"},
		`nonexistent is "back"`:      {Nonexistent: "back"},
		`ambiguous is "never"`:       {Ambiguous: "never"},
	} {
		if _, err := Parse("@daily", d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", d, err, want)
		}
	}
}

// A name that people write for a zone is refused with the name of one that they may mean, which is not refused itself.
func TestZoneThatIsMeant(t *testing.T) {
	for name, want := range map[string]string{"berlin": "did you mean Europe/Berlin?", "new_york": "did you mean America/New_York?", "Kolkata": "did you mean Asia/Kolkata?",
		"utc": "did you mean UTC?", "gmt": "such as Europe/London, or UTC", "est": "such as America/New_York, or UTC", "Pacific": "such as America/Los_Angeles, or UTC", "atlantis": "in tzdata " + TZDataVersion()} {
		if _, err := Parse("@daily", Defaults{Zone: name}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestNeverAndUndecided(t *testing.T) {
	for _, text := range []string{"0 0 30 2 *", "0 0 31 2,4 *", "FREQ=HOURLY;INTERVAL=2;BYHOUR=1", "FREQ=SECONDLY;INTERVAL=60;BYSECOND=1", "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=31",
		"FREQ=WEEKLY;INTERVAL=2;BYMONTH=2;BYSETPOS=8;BYDAY=MO", "FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH,SA;BYSETPOS=-4,6",
		"FREQ=MONTHLY;INTERVAL=3;SKIP=BACKWARD;BYMONTHDAY=6,7,12,22,-17,-28,-30;BYDAY=WE;BYSETPOS=-4,5", "FREQ=HOURLY;INTERVAL=24;BYHOUR=3;BYDAY=MO,TU,WE,TH,FR,SA,SU",
		"0 9 */10 * MON#4", "0 0 */15 * MON#2", "0 9 LW * */6", "0 9 15W * */7"} {
		for zone, hours := range map[string]int{"UTC": 0, "America/New_York": 5} {
			d := Defaults{Zone: zone, Start: time.Date(2027, 1, 1, hours, 0, 0, 0, time.UTC)} // midnight there
			_, err := Parse(text, d)
			if !errors.Is(err, ErrNeverFires) || !strings.Contains(err.Error(), "never") {
				t.Errorf("%s in %s: %v", text, d.Zone, err)
			}
		}
	}
	weekend, err := ParseCalendar("weekend", "MO-FR", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"FREQ=DAILY\nEXRULE:FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO\nEXRULE:FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SA"} {
		for _, date := range []string{"", "\nRDATE:20260105T090000Z"} { // after which nothing could be found
			_, err := Parse("DTSTART:20260101T000000Z\nRRULE:"+set+date, Defaults{Calendar: weekend})
			if !errors.Is(err, ErrUndecided) && !errors.Is(err, ErrNeverFires) {
				t.Errorf("%s%s, a rule that excludes itself: %v", set, date, err)
			}
		}
	}
	for _, text := range []string{"FREQ=DAILY;COUNT=2\nEXRULE:FREQ=DAILY\nRDATE:20260105T090000Z", "FREQ=DAILY\nEXRULE:FREQ=WEEKLY;BYDAY=MO\nRDATE:20260105T090000Z"} {
		if _, err := Parse("DTSTART:20260101T000000Z\nRRULE:"+text, Defaults{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The end of a COUNT is computed once. A caller that gives it back is believed as long as the zone database is the
// same.
func TestEnds(t *testing.T) {
	const text = "DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY;COUNT=100\nRRULE:FREQ=MINUTELY;BYHOUR=3;COUNT=5"
	r := mustParse(t, text, Defaults{})
	want := TZDataVersion() + " 20260410T070000Z 20260102T020400Z"
	if r.Ends() != want {
		t.Errorf("Ends is %q, want %q", r.Ends(), want)
	}
	at := func(r *Rule) string {
		last, ok, err := r.Last()
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return last.Format(time.RFC3339)
	}
	if got := at(r); got != "2026-04-10T07:00:00Z" {
		t.Errorf("Last is %s", got)
	}
	short := TZDataVersion() + " 20260105T080000Z 20260102T020400Z"
	if got := at(mustParse(t, text, Defaults{Ends: short})); got != "2026-01-05T08:00:00Z" {
		t.Errorf("with %q, Last is %s", short, got)
	}
	for _, stale := range []string{"", "1999a 20260105T080000Z 20260102T020400Z", TZDataVersion() + " 20260105T080000Z", TZDataVersion() + " x y"} {
		if got := at(mustParse(t, text, Defaults{Ends: stale})); got != "2026-04-10T07:00:00Z" {
			t.Errorf("with %q, Last is %s", stale, got)
		}
	}
	for text, want := range map[string]string{
		"DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY;INTERVAL=36;COUNT=11272851":              " 27970808T060000Z",
		"DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY;INTERVAL=3;COUNT=153408865":                " 99991231T235959Z", // the calendar has no room for it
		"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;INTERVAL=1979;COUNT=600;BYDAY=WE,TH":        " 99991231T235959Z",
		"DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY;COUNT=1000000001":                        " 20570909T014640Z",
		"DTSTART;TZID=Europe/Berlin:20260101T000000\nRRULE:FREQ=MINUTELY;COUNT=525601;BYDAY=MO": " 20330102T230000Z",
	} {
		if got := mustParse(t, text, Defaults{}).Ends(); got != TZDataVersion()+want {
			t.Errorf("%s ends %s, want %s", text, got, want)
		}
	}
	if r := mustParse(t, "@daily", Defaults{}); r.Ends() != TZDataVersion() {
		t.Errorf("@daily has ends %q", r.Ends())
	}
	for ends, want := range map[string]bool{"": false, TZDataVersion(): false, want: false, "1999a": true, "1999a 20260105T080000Z": true, "9999z": false} {
		if Outdated(ends) != want {
			t.Errorf("%q is outdated: %t", ends, !want)
		}
	}
	if _, ok, err := mustParse(t, "@daily", Defaults{}).Last(); ok || err != nil {
		t.Errorf("@daily has a last: %v, %v", ok, err)
	}
}

// Counting does not visit each occurrence: a year of seconds needs only a few steps.
func TestCountIsCheap(t *testing.T) {
	from, to := now.AddDate(-1, 0, 0).Unix(), now.Unix()
	for text, want := range map[string]int64{
		"DTSTART:20000101T000000Z\nRRULE:FREQ=SECONDLY":                   365 * 86400,
		"DTSTART;TZID=Europe/Berlin:20000101T000000\nRRULE:FREQ=SECONDLY": 365 * 86400,
		"DTSTART:20000101T000000Z\nRRULE:FREQ=SECONDLY;BYDAY=MO":          52 * 86400,
		"* * * * * MON": 52 * 86400,
		"DTSTART:20000101T000000Z\nRRULE:FREQ=MINUTELY;INTERVAL=5;BYSECOND=0,1": 365 * 288 * 2,
	} {
		r := mustParse(t, text, Defaults{})
		b := budget{countSteps}
		if got := r.count(from+1, to, &b); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
		if steps := countSteps - b.left; steps > 10_000 {
			t.Errorf("%s took %d steps", text, steps)
		}
	}
}

func TestEdgesOfTime(t *testing.T) {
	r := mustParse(t, "@daily", Defaults{})
	first, err := r.Next(time.Time{})
	if err != nil || !first.Equal(time.Unix(0, 0)) {
		t.Errorf("after the zero time: %v, %v", first, err)
	}
	if none, err := r.Prev(first); err != nil || !none.IsZero() {
		t.Errorf("before the first: %v, %v", none, err)
	}
	last, err := r.Prev(time.Unix(1<<60, 0))
	if err != nil || last.Format(time.RFC3339) != "9999-12-31T00:00:00Z" {
		t.Errorf("the last day: %v, %v", last, err)
	}
	if none, err := r.Next(last); err != nil || !none.IsZero() {
		t.Errorf("after the last day: %v, %v", none, err)
	}
	half := time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC)
	if prev, err := r.Prev(half); err != nil || !prev.Equal(half.Add(-1)) {
		t.Errorf("a nanosecond after midnight, Prev is %v, %v", prev, err)
	}
	if next, err := r.Next(half.Add(-2)); err != nil || !next.Equal(half.Add(-1)) {
		t.Errorf("a nanosecond before midnight, Next is %v, %v", next, err)
	}
	if n, err := r.Count(half, half.Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("Count of nothing: %d, %v", n, err)
	}
}

// Many goroutines read a rule at once. Run this test with -race.
func TestConcurrentUse(t *testing.T) {
	r := mustParse(t, "*/7 2-4 * * *", Defaults{Zone: "America/Los_Angeles"})
	want, err := r.Next(now)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := r.Next(now)
				if other := mustParse(t, r.String(), Defaults{}); err != nil || !got.Equal(want) || other.Zone() != r.Zone() {
					t.Errorf("%v, %v; want %v", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// The hash spread depends only on the name, stays within the field, and differs between names.
func TestSpread(t *testing.T) {
	seen := map[string]bool{}
	for _, seed := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		r := mustParse(t, "~ ~ ~ * *", Defaults{Seed: seed})
		if again := mustParse(t, "~ ~ ~ * *", Defaults{Seed: seed, Start: now}); again.String() != r.String() {
			t.Errorf("%s: %s, then %s", seed, r, again)
		}
		if r.includes[0].mdays>>29 != 0 {
			t.Errorf("%s is not in every month", r)
		}
		seen[r.String()] = true
	}
	if len(seen) < 7 {
		t.Errorf("eight names share %d times", len(seen))
	}
}

// The zone archive is the archive of the Go release that has the same version of the zone data.
func TestZoneArchiveVersion(t *testing.T) {
	if v := TZDataVersion(); len(v) != 5 || v[0] != '2' {
		t.Errorf("the version is %q", v)
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(out))
	script, err := os.ReadFile(filepath.Join(root, "lib/time/update.bash"))
	if err != nil || !strings.Contains(string(script), "CODE="+TZDataVersion()+"\n") {
		return // another Go release: nothing to compare with
	}
	archive, err := os.ReadFile(filepath.Join(root, "lib/time/zoneinfo.zip"))
	if err == nil && string(archive) != zoneArchive {
		t.Errorf("VERSION says %s, but the archive is not that of Go's %s", TZDataVersion(), TZDataVersion())
	}
}

// The steps that a text may cost to read are bounded for all its recurrences together, whatever their number.
func TestManyHardRecurrencesAreRefused(t *testing.T) {
	const hard = "\nRRULE:FREQ=SECONDLY;INTERVAL=86399;UNTIL=13000101T000000Z;BYHOUR=1;BYMINUTE=46;BYSECOND=40"
	for name, part := range map[string]string{"a search": hard, "a COUNT": strings.Replace(hard, "UNTIL=13000101T000000Z", "COUNT=4", 1)} {
		text := "DTSTART:10000101T000000Z\nRRULE:FREQ=MINUTELY"
		if _, err := Parse(text+part, Defaults{}); err != nil {
			t.Errorf("%s: one alone: %v", name, err)
		}
		if _, err := Parse(text+strings.Repeat(part, 600), Defaults{}); !errors.Is(err, ErrUndecided) {
			t.Errorf("%s: 600 of them: %v", name, err)
		}
		if _, err := Parse(text+strings.Replace(strings.Repeat(part, 600), "RRULE", "EXRULE", 600), Defaults{}); !errors.Is(err, ErrUndecided) {
			t.Errorf("%s: 600 as EXRULE: %v", name, err)
		}
	}
	var plain strings.Builder
	for h := range 24 {
		for m := range 60 {
			fmt.Fprintf(&plain, "\nRRULE:FREQ=DAILY;BYHOUR=%d;BYMINUTE=%d", h, m)
		}
	}
	if _, err := Parse("DTSTART:20260101T000000Z"+plain.String(), Defaults{}); err != nil {
		t.Errorf("many plain ones: %v", err)
	}
}
