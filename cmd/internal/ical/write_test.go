package ical

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/rules"
)

// written returns the feed of one event, and its lines without the folds.
func written(t *testing.T, e Event) (feed string, lines []string) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, Feed{Name: "test", Made: from, Events: []Event{e}}); err != nil {
		t.Fatal(err)
	}
	return b.String(), strings.Split(strings.ReplaceAll(b.String(), "\r\n ", ""), "\r\n")
}

// A name that is long, of other alphabets, or not valid text still gives a feed that any program reads.
func TestTextIsFoldedBetweenCharacters(t *testing.T) {
	t.Parallel()
	e := Event{Event: rules.Event{Zone: "UTC", Start: from, Wall: from.Format(wall)}, Summary: strings.Repeat("€", 100), Description: "a;b,c\\d\ne\xff"}
	feed, lines := written(t, e)
	for l := range strings.SplitSeq(feed, "\r\n") {
		if !utf8.ValidString(l) {
			t.Errorf("a character is parted, or no UTF-8: %q", l)
		}
	}
	for _, want := range []string{"SUMMARY:" + e.Summary, `DESCRIPTION:a\;b\,c\\d\ne` + "\ufffd"} {
		if !strings.Contains(strings.Join(lines, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// An exception has the form of the start, local or UTC: readers compare the texts.
func TestExceptedTimesHaveTheFormOfTheStart(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string]string{"UTC": "EXDATE:20260102T080000Z", "Europe/Berlin": "EXDATE;TZID=Europe/Berlin:20260102T080000"} {
		e := Event{Event: rules.Event{Zone: zone, Start: from, Wall: "20260101T080000", RRule: "FREQ=DAILY", Except: []string{"20260102T080000"}}}
		if feed, _ := written(t, e); !strings.Contains(feed, "\r\n"+want+"\r\n") {
			t.Errorf("no line %q in\n%s", want, feed)
		}
	}
}

// shifts returns clock changes at 02:00 on these days.
func shifts(days []string) (list []rules.Shift) {
	for _, day := range days {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			panic(err)
		}
		list = append(list, rules.Shift{At: at.Add(time.Hour), Before: 3600, After: 7200})
	}
	return list
}

// eachYear returns the days that pick chooses for twelve years from 2026 on.
func eachYear(pick func(year int) time.Time) (days []string) {
	for year := 2026; year < 2026+ahead; year++ {
		days = append(days, pick(year).Format(time.DateOnly))
	}
	return days
}

// nthSunday returns the nth Sunday of March. If n is 0, it returns the last one.
func nthSunday(year, nth int) time.Time {
	const m = time.March
	d := time.Date(year, m, 1, 0, 0, 0, 0, time.UTC)
	d = d.AddDate(0, 0, (7-int(d.Weekday()))%7)
	if nth > 0 {
		return d.AddDate(0, 0, 7*(nth-1))
	}
	for d.AddDate(0, 0, 7).Month() == m {
		d = d.AddDate(0, 0, 7)
	}
	return d
}

// Clock changes become a rule only if the rule gives each of them, and no other.
func TestClockChangesAsARule(t *testing.T) {
	t.Parallel()
	last := 2026 + ahead - 1
	second := eachYear(func(y int) time.Time { return nthSunday(y, 2) })
	for _, c := range []struct {
		why  string
		days []string
		want string
	}{
		{"the last Sunday", eachYear(func(y int) time.Time { return nthSunday(y, 0) }), "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU"},
		{"the second Sunday", second, "FREQ=YEARLY;BYMONTH=3;BYDAY=2SU"},
		{"too few to know", second[1:], ""},
		{"they ended before the last year", eachYear(func(y int) time.Time { return nthSunday(y-1, 2) }), ""},
		{"a year without one", append(append([]string{"2025-03-09"}, second[:5]...), second[6:]...), ""},
		{"in another month once", append([]string{"2026-04-12"}, second[1:]...), ""},
		{"on another weekday once", append(append([]string{}, second[:ahead-1]...), nthSunday(last, 2).AddDate(0, 0, 1).Format(time.DateOnly)), ""},
		{"one in the third week", append(append([]string{}, second[:ahead-1]...), nthSunday(last, 3).Format(time.DateOnly)), ""},
	} {
		if got := yearly(shifts(c.days), last); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
	list := shifts(second)
	list[3].At = list[3].At.Add(time.Hour)
	if got := yearly(list, last); got != "" {
		t.Errorf("at another hour once: %q", got)
	}
}

// Offsets before standard time have seconds.
func TestOffset(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{0: "+0000", 3600: "+0100", -12600: "-0330", 20700: "+0545", -1172: "-001932", 3208: "+005328"} {
		if got := offset(seconds); got != want {
			t.Errorf("%d: %s, want %s", seconds, got, want)
		}
	}
}
