package rules

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// naiveDays are days of the calendar form, with their meaning in terms of package time. Those that may go past midnight are daily.
var naiveDays = []struct {
	words, start string
	on           func(t, start time.Time) bool
}{
	{"daily", "", func(time.Time, time.Time) bool { return true }},
	{"daily", "2026-02-10", func(time.Time, time.Time) bool { return true }},
	{"weekly on mon,sun", "", func(t, _ time.Time) bool { return t.Weekday() <= time.Monday }},
	{"every 2 weeks on tue,sun", "2026-01-07", func(t, start time.Time) bool {
		return (t.Weekday() == time.Tuesday || t.Weekday() == time.Sunday) && int(t.Sub(start.AddDate(0, 0, -2)).Hours()/24/7)%2 == 0
	}},
	{"every 3 days", "2026-01-07", func(t, start time.Time) bool { return int(t.Sub(start).Hours()/24)%3 == 0 }},
	{"monthly on 1,31,-1", "", func(t, _ time.Time) bool { return t.Day() == 1 || t.Day() == 31 || t.AddDate(0, 0, 1).Day() == 1 }},
	{"monthly on the first monday", "", func(t, _ time.Time) bool { return t.Weekday() == time.Monday && t.Day() <= 7 }},
	{"monthly on the third weekday", "", func(t, _ time.Time) bool { return naivePosition(t, 1, workday) == 3 }},
	{"monthly on the last weekday", "", func(t, _ time.Time) bool { return naivePosition(t, -1, workday) == 1 }},
	{"monthly on the fourth weekend day", "", func(t, _ time.Time) bool { return naivePosition(t, 1, weekendDay) == 4 }},
	{"every 2 months on the last weekend day", "2026-01-07", func(t, _ time.Time) bool {
		return naivePosition(t, -1, weekendDay) == 1 && t.Month()%2 == 1
	}},
}

func workday(t time.Time) bool    { return !weekendDay(t) }
func weekendDay(t time.Time) bool { return t.Weekday() == time.Saturday || t.Weekday() == time.Sunday }

// naivePosition counts the days of a kind up to a day, from the first day of the month (step 1) or from the last one (step -1);
// 0: the day is not of that kind.
func naivePosition(t time.Time, step int, is func(time.Time) bool) (n int) {
	if !is(t) {
		return 0
	}
	for d := t; d.Month() == t.Month(); d = d.AddDate(0, 0, -step) {
		if is(d) {
			n++
		}
	}
	return n
}

// TestWindowAgreesWithNaiveWalk: the times of a window are its beginning and each N units after it, up to its end, on each day that the
// rule names. A window past midnight belongs to the day on which it begins, so a calendar, which judges dates, is refused.
func TestWindowAgreesWithNaiveWalk(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 7))
	from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	units := []struct {
		word string
		long time.Duration
		most int
	}{{"s", time.Second, 90}, {"m", time.Minute, 200}, {" hours", time.Hour, 5}}
	refused, past, barred := 0, 0, 0
	for i := range 600 {
		days, u := naiveDays[i%len(naiveDays)], units[g.IntN(len(units))]
		n, first := 1+g.IntN(u.most), g.IntN(86400)
		last := min(first+g.IntN(7200), 86399)
		if u.long > time.Second {
			first, last = first/60*60, g.IntN(1440)*60
		}
		if days.words != "daily" || i%3 > 0 {
			first, last = min(first, last), max(first, last)
		}
		text := fmt.Sprintf("%s every %d%s from %s to %s", days.words, n, u.word, clockText(first, first%60 > 0), clockText(last, last%60 > 0))
		start := from.AddDate(0, 0, -1)
		if days.start != "" {
			text += " starting " + days.start
			start, _ = time.Parse(time.DateOnly, days.start)
		}
		length := time.Duration(last-first) * time.Second
		if length < 0 {
			length += 24 * time.Hour
			past++
		}
		var d Defaults
		move := func(day time.Time) (time.Time, bool) { return day, true }
		if u.long > time.Second && i/len(naiveDays)%4 == 0 {
			d.Calendar, d.OnHoliday = calendarOf(t, "MO-FR", ""), []string{"skip", "next"}[i/len(naiveDays)/4%2]
			move = func(day time.Time) (time.Time, bool) {
				for weekendDay(day) {
					if d.OnHoliday == "skip" {
						return day, false
					}
					day = day.AddDate(0, 0, 1)
				}
				return day, true
			}
		}
		r, err := Parse(text, d)
		before := time.Duration(86399-first) * time.Second // from the beginning to the last second of the day
		if every := time.Duration(n) * u.long; d.Calendar != nil && every <= length && before-before%every+every <= length {
			if err == nil || !strings.Contains(err.Error(), "a calendar judges each time by its own date") {
				t.Errorf("%s, with a calendar: %v", text, err)
			}
			barred++
			continue
		}
		if d.OnHoliday == "skip" && strings.Contains(days.words, "weekend day") && errors.Is(err, ErrNeverFires) {
			continue
		}
		if err != nil {
			if refused++; u.word != "s" && length >= time.Duration(n)*u.long || !strings.Contains(err.Error(), "calendar rule: ") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		var want []time.Time
		for day := start; day.Before(to); day = day.AddDate(0, 0, 1) {
			for at := time.Duration(0); at <= length && days.on(day, start); at += time.Duration(n) * u.long {
				on, works := move(day)
				if t := on.Add(time.Duration(first)*time.Second + at); works && !t.Before(from) && t.Before(to) {
					want = append(want, t)
				}
			}
		}
		slices.SortFunc(want, time.Time.Compare)
		want = slices.CompactFunc(want, time.Time.Equal)
		got, err := r.Between(from.Add(-1), to, 1<<20)
		got = slices.DeleteFunc(got, func(t time.Time) bool { return !t.Before(to) })
		if err != nil || !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%s\n%s\n%d times, want %d: %v", text, r, len(got), len(want), err)
		}
		if lines := strings.Count(r.String(), "RRULE"); lines > windowLines {
			t.Errorf("%s has %d lines", text, lines)
		}
	}
	if refused > 300 || past < 10 || barred < 3 {
		t.Errorf("%d of 600 refused, %d past midnight, %d of them with a calendar", refused, past, barred)
	}
}

// TestWindowOfMinutesIsNeverRefused: a number of minutes that fits into a day is few enough recurrences, on each kind of days.
func TestWindowOfMinutesIsNeverRefused(t *testing.T) {
	for _, days := range naiveDays {
		for _, n := range []int{1, 7, 25, 37, 59, 60, 61, 97, 719, 1439} {
			text := fmt.Sprintf("%s every %dm from 0:00 to 23:59:59", days.words, n)
			if days.start != "" {
				text += " starting " + days.start
			}
			if _, err := Parse(text, Defaults{Zone: "Europe/Berlin"}); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestWindowPastMidnightTakesNoCalendar: a calendar judges the date of a time, and the times after midnight belong to the day before. A
// window without such a time takes one.
func TestWindowPastMidnightTakesNoCalendar(t *testing.T) {
	for rule, want := range map[string]string{
		"daily every 1h from 22:00 to 2:00":             "one `to 23:59:59`, and one `from 00:00` on the days after",
		"daily every 25m from 22:05 to 4:00":            "and one `from 00:10`",
		"daily every 7s from 23:59:50 to 0:00:10":       "and one `from 00:00:04`",
		"daily every 1h from 22:00 to 23:59:59":         "",
		"daily every 1h from 0:00 to 2:00":              "",
		"daily every 2h from 21:00 to 0:30":             "",
		"weekly on tue,sat every 1h from 0:00 to 23:30": "",
	} {
		_, err := Parse(rule, Defaults{Calendar: calendarOf(t, "MO-FR", "")})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
