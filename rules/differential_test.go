package rules

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/teambition/rrule-go"
)

// fitsRRuleGo reports whether rrule-go is right about a rule, so that the two can be compared. rrule-go knows no SKIP.
// It takes BYDAY=MO,2TU for both at once. It cuts the first week of BYSETPOS off at DTSTART. It knows weeks across the
// new year only by the numbers 1 and -1. It loops for ever if INTERVAL and the times of day never meet.
func fitsRRuleGo(c *recur, start int64) bool {
	day, _ := splitCivil(start)
	if c.skip != skipOmit || c.freq == weekly && len(c.pos) > 0 && weekdayOf(day) != int(c.wkst) {
		return false
	}
	if c.wdays != 0 && len(c.nth) > 0 {
		return false
	}
	for _, w := range c.weeks {
		if w > 51 || w < -1 {
			return false
		}
	}
	return true
}

// In UTC and for bounded rules, rrule-go gives the same times from DTSTART on.
func TestAgreesWithRRuleGo(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(3, 5))
	compared, panics := 0, 0
	for range rounds(2500) {
		c := randomRecur(g)
		start := int64(1767225600 + g.IntN(5*365)*86400 + g.IntN(86400))
		if !fitsRRuleGo(&c, start) {
			continue
		}
		c.until = start + int64(1+g.IntN([...]int{1800, 7200, 30, 400, 1000, 2000, 6000}[c.freq]))*max(frequencySeconds[c.freq], 1)
		if c.freq >= daily {
			c.until = start + int64(1+g.IntN([...]int{3: 400, 4: 1000, 5: 2000, 6: 6000}[c.freq]))*86400
		}
		if g.IntN(3) == 0 && c.interval < 20 {
			c.until, c.count = noUntil, 1+g.IntN(300)
		}
		r, err := ruleOf(&c, start, "UTC", defaultPolicy)
		if err != nil {
			continue // rrule-go may never return from a rule that never fires
		}
		if last, _, err := r.Last(); c.count > 0 && (err != nil || last.Unix() > start+100*366*86400) {
			continue // too far away for an engine that visits each time
		}
		other, err := rrule.StrToRRuleSet(r.String())
		if err != nil {
			t.Fatalf("%s: rrule-go: %v", r, err)
		}
		want, ok := allOf(other, 5000)
		if !ok {
			panics++
			continue
		}
		got, err := r.Between(time.Unix(start-1, 0), time.Unix(endInstant, 0), len(want)+1)
		if err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		for i := range max(len(want), min(len(got), 5000)) {
			if i >= len(got) || i >= len(want) || !got[i].Equal(want[i]) {
				t.Fatalf("%s\nrrule-go differs from the %dth on: %v, we say %v", r, i, want[i:min(i+3, len(want))], got[i:min(i+3, len(got))])
			}
		}
		compared++
	}
	if compared < rounds(500) || panics > compared/20 {
		t.Errorf("%d rules were compared, rrule-go panicked on %d", compared, panics)
	}
}

// allOf returns the first n times of a set. rrule-go v1.8.2 panics on some ordinals that a period does not have. ok is
// then false.
func allOf(set *rrule.Set, n int) (list []time.Time, ok bool) {
	defer func() { ok = recover() == nil }()
	next := set.Iterator()
	for len(list) < n {
		at, more := next()
		if !more {
			break
		}
		list = append(list, at)
	}
	return list, true
}

// randomCron makes five fields that robfig/cron reads as Vixie cron does.
func randomCron(g *rand.Rand) string {
	field := func(low, high int) string {
		n := func() int { return low + g.IntN(high-low+1) }
		switch g.IntN(5) {
		case 0:
			return fmtInt(n())
		case 1:
			a := n()
			return fmtInt(a) + "-" + fmtInt(a+g.IntN(high-a+1))
		case 2:
			return fmtInt(n()) + "," + fmtInt(n()) + "," + fmtInt(n())
		case 3:
			return "*/" + fmtInt(1+g.IntN(high-low))
		}
		return "*"
	}
	day, month, week := field(1, 28), field(1, 12), field(0, 6)
	if strings.HasPrefix(day, "*/") && week != "*" { // robfig joins these by OR
		day = "*"
	}
	if strings.HasPrefix(week, "*/") && day != "*" {
		week = "*"
	}
	return strings.Join([]string{field(0, 59), field(0, 23), day, month, week}, " ")
}

func fmtInt(n int) string {
	return string(rune('0'+n/10)) + string(rune('0'+n%10))
}

// In UTC, where no clock changes, robfig/cron gives the same next times.
func TestAgreesWithRobfigCron(t *testing.T) {
	g := rand.New(rand.NewPCG(13, 17))
	for range rounds(1000) {
		text := randomCron(g)
		r, err := Parse(text, Defaults{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		other, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1700000000+g.Int64N(1e9), 0).UTC()
		for range 5 {
			want := other.Next(at)
			got, err := r.Next(at)
			if err != nil || !got.Equal(want) {
				t.Fatalf("%s after %v: %v, %v; robfig/cron %v\n%s", text, at, got, err, want, r)
			}
			if back, err := r.Prev(got.Add(1)); err != nil || !back.Equal(got) {
				t.Fatalf("%s: Prev(%v+1ns) = %v, %v", text, got, back, err)
			}
			at = got
		}
	}
}

// Six fields and Quartz's letters are compared with a walk through the days of twelve years, which checks each day.
func TestCronDaysAgainstWalk(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(19, 23))
	months := []string{"*", "2", "1-6", "*/3", "FEB,NOV", "4,6,9,11"}
	for range rounds(80) {
		dom, dow := walkMonthField(g), walkWeekField(g)
		month := months[g.IntN(len(months))]
		hour := []string{"7", "*"}[g.IntN(2)]
		text := "0 30 " + hour + " " + dom + " " + month + " " + dow
		r, err := Parse(text, Defaults{})
		if err != nil {
			if strings.Contains(err.Error(), "never") {
				continue
			}
			t.Fatalf("%s: %v", text, err)
		}
		at := time.Date(2019, 12, 31, 23, 0, 0, 0, time.UTC)
		for day := at.AddDate(0, 0, 1); day.Year() < 2033; day = day.AddDate(0, 0, 1) {
			midnight := day.Truncate(24 * time.Hour)
			want := walkDay(midnight, dom, month, dow)
			n, err := r.Count(midnight.Add(-1), midnight.Add(24*time.Hour-1))
			if err != nil || (n > 0) != want || n > 1 && n != 24 {
				t.Fatalf("%s on %v: %d times, %v; want some: %v\n%s", text, midnight, n, err, want, r)
			}
		}
	}
}

func walkMonthField(g *rand.Rand) string {
	items := []string{"L", "LW", "1W", "2W", "15W", "27W", "28W", "29W", "30W", "31W", "1", "13", "28-31", "20-25"}
	switch g.IntN(4) {
	case 0:
		return []string{"*", "?", "*/2", "*/7,L", "*/3,29W", "*/10", "*/15"}[g.IntN(7)]
	case 1:
		return items[g.IntN(len(items))] + "," + items[g.IntN(len(items))]
	}
	return items[g.IntN(len(items))]
}

func walkWeekField(g *rand.Rand) string {
	items := []string{"5L", "0L", "7L", "MON#1", "2#5", "FRI#4", "sun#2", "SAT-SUN", "1-3", "5-7", "3"}
	switch g.IntN(3) {
	case 0:
		return []string{"*", "?", "*/2", "*/3", "*/6"}[g.IntN(5)]
	case 1:
		return items[g.IntN(len(items))] + "," + items[g.IntN(len(items))]
	}
	return items[g.IntN(len(items))]
}

var walkNames = strings.NewReplacer("SUN", "0", "sun", "0", "MON", "1", "FRI", "5", "SAT", "6", "FEB", "2", "NOV", "11")

// walkDay decides one day by the definition of the field.
func walkDay(day time.Time, dom, month, dow string) bool {
	inMonth := walkList(walkNames.Replace(month), 1, 12, func(n int) bool { return n == int(day.Month()) })
	byDay := false
	for item := range strings.SplitSeq(dom, ",") {
		byDay = byDay || walkMonthDay(day, item)
	}
	byWeek := false
	for item := range strings.SplitSeq(dow, ",") {
		byWeek = byWeek || walkWeekday(day, walkNames.Replace(item))
	}
	if strings.ContainsAny(dom[:1]+dow[:1], "*?") {
		return inMonth && byDay && byWeek
	}
	return inMonth && (byDay || byWeek)
}

func walkMonthDay(day time.Time, item string) bool {
	last := day.AddDate(0, 1, -day.Day())
	weekend := func(d time.Time) bool { return d.Weekday() == time.Saturday || d.Weekday() == time.Sunday }
	switch {
	case item == "?":
		return true
	case item == "L":
		return day.Equal(last)
	case item == "LW":
		for weekend(last) {
			last = last.AddDate(0, 0, -1)
		}
		return day.Equal(last)
	case strings.HasSuffix(item, "W"):
		n := 0
		for _, c := range item[:len(item)-1] {
			n = n*10 + int(c-'0')
		}
		if n > last.Day() {
			return false
		}
		target := day.AddDate(0, 0, n-day.Day())
		for _, shift := range []int{0, -1, 1, -2, 2} {
			d := target.AddDate(0, 0, shift)
			if d.Month() == target.Month() && !weekend(d) {
				return day.Equal(d)
			}
		}
	}
	return walkList(item, 1, 31, func(n int) bool { return n == day.Day() })
}

func walkWeekday(day time.Time, item string) bool {
	w := int(day.Weekday())
	is := func(n int) bool { return n%7 == w }
	switch {
	case item == "?":
		return true
	case strings.HasSuffix(item, "L"):
		return is(int(item[0]-'0')) && day.AddDate(0, 0, 7).Month() != day.Month()
	case strings.Contains(item, "#"):
		return is(int(item[0]-'0')) && (day.Day()+6)/7 == int(item[2]-'0')
	case item == "6-0":
		return w == 6 || w == 0
	}
	return walkList(item, 0, 6, is)
}

// walkList reads n, a-b, *, */n and lists of these.
func walkList(text string, low, high int, is func(int) bool) bool {
	for item := range strings.SplitSeq(text, ",") {
		head, step, _ := strings.Cut(item, "/")
		lo, hi, by := low, high, 1
		number := func(s string) (n int) {
			for _, c := range s {
				n = n*10 + int(c-'0')
			}
			return n
		}
		if step != "" {
			by = number(step)
		}
		if a, b, ok := strings.Cut(head, "-"); ok {
			lo, hi = number(a), number(b)
		} else if head != "*" {
			lo, hi = number(head), number(head)
		}
		for n := lo; n <= hi; n += by {
			if is(n) {
				return true
			}
		}
	}
	return false
}
