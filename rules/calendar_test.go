package rules

import (
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// naiveCalendar is a calendar as a plain set of dates.
type naiveCalendar struct {
	rest uint8
	days map[string]bool // 2026-12-25 and 12-25
}

func (c naiveCalendar) works(day int64) bool {
	t := time.Unix(day*86400, 0).UTC()
	return c.rest>>naiveWeekday(t)&1 == 0 && !c.days[t.Format("2006-01-02")] && !c.days[t.Format("01-02")]
}

func (c naiveCalendar) target(day int64, on string) (int64, bool) {
	for !c.works(day) {
		switch on {
		case "skip":
			return 0, false
		case "next":
			day++
		default:
			day--
		}
	}
	return day, true
}

// randomCalendar makes a calendar of some years, with single days, several days in a row, days of each year, and
// weekdays without work.
func randomCalendar(g *rand.Rand, year int) (text, working string, c naiveCalendar) {
	c.days = map[string]bool{}
	var b strings.Builder
	begin := time.Date(year-1, 9, 1, 0, 0, 0, 0, time.UTC)
	for range g.Intn(25) {
		first := begin.AddDate(0, 0, g.Intn(700))
		switch g.Intn(4) {
		case 0:
			last := first.AddDate(0, 0, g.Intn(12))
			fmt.Fprintf(&b, "%s..%s away\n", first.Format(time.DateOnly), last.Format(time.DateOnly))
			for ; !first.After(last); first = first.AddDate(0, 0, 1) {
				c.days[first.Format(time.DateOnly)] = true
			}
		case 1:
			fmt.Fprintf(&b, "%s  # of each year\n", first.Format("01-02"))
			c.days[first.Format("01-02")] = true
		default:
			fmt.Fprintf(&b, "%s a name\n", first.Format(time.DateOnly))
			c.days[first.Format(time.DateOnly)] = true
		}
	}
	for _, change := range []string{"2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-05", "2026-09-06", "2026-04-24", "2026-10-30", "2026-03-28",
		"2010-03-13", "2010-03-14", "2010-11-06", "2010-11-07"} { // in one of the zones
		if g.Intn(3) == 0 {
			fmt.Fprintln(&b, change)
			c.days[change] = true
		}
	}
	switch g.Intn(3) {
	case 0:
		working, c.rest = "MO-FR", 1<<saturday|1<<sunday
	case 1:
		working, c.rest = "SU-TH", 1<<friday|1<<saturday
	}
	return b.String(), working, c
}

// naiveRule is a rule's text, with its meaning written a second time.
type naiveRule struct {
	text  string
	day   func(time.Time) bool // pinned: the days
	walls []int64              // pinned: the times of the day
	every func(z naiveZone, t int64) bool
}

func randomNaiveRule(g *rand.Rand, kind int) naiveRule {
	h, m := []int64{0, 1, 2, 3, 23}[g.Intn(5)], int64(g.Intn(4)*15)
	at := []int64{h*3600 + m*60}
	always := func(time.Time) bool { return true }
	switch kind {
	case 0:
		d := 1 + g.Intn(31)
		return naiveRule{text: fmt.Sprintf("%d %d %d * *", m, h, d), day: func(t time.Time) bool { return t.Day() == d }, walls: at}
	case 1:
		return naiveRule{text: fmt.Sprintf("%d %d L * *", m, h), day: func(t time.Time) bool { return t.AddDate(0, 0, 1).Day() == 1 }, walls: at}
	case 2:
		d := g.Intn(7)
		return naiveRule{text: fmt.Sprintf("%d %d * * %d", m, h, d), day: func(t time.Time) bool { return int(t.Weekday()) == d }, walls: at}
	case 3:
		n := naiveRule{text: "0,45 0-2,23 * * *", day: always}
		for _, hour := range []int64{0, 1, 2, 23} {
			n.walls = append(n.walls, hour*3600, hour*3600+45*60)
		}
		return n
	case 4:
		return naiveRule{text: fmt.Sprintf("%d * * * *", m), every: func(z naiveZone, t int64) bool { return z.wall(t)%3600 == m*60 }}
	case 5:
		return naiveRule{text: "every 105m", every: func(_ naiveZone, t int64) bool { return t%6300 == 0 }}
	case 6:
		last := func(t time.Time) bool {
			next := t.AddDate(0, 0, 1)
			for naiveWeekday(next) >= saturday {
				next = next.AddDate(0, 0, 1)
			}
			return naiveWeekday(t) < saturday && next.Month() != t.Month()
		}
		return naiveRule{text: fmt.Sprintf("monthly on the last weekday at %d:%02d", h, m), day: last, walls: at}
	}
	return naiveRule{text: fmt.Sprintf("%d %d * * *", m, h), day: always, walls: at}
}

// naiveHolidays returns the occurrences in (lo, hi]. It looks at each day, or at each minute.
func (n naiveRule) naiveHolidays(c naiveCalendar, on string, z naiveZone, p policy, lo, hi int64) []int64 {
	set := map[int64]bool{}
	add := func(c int64) {
		for _, t := range z.naiveRead([]int64{c}, p) {
			set[t] = true
		}
	}
	const margin = 60 * 86400 // no row of holidays is this long
	if n.every == nil {
		for day := (lo - margin) / 86400; day < (hi+margin)/86400; day++ {
			to, ok := c.target(day, on)
			if !ok || !n.day(time.Unix(day*86400, 0).UTC()) {
				continue
			}
			for _, w := range n.walls {
				if len(z.naiveRead([]int64{day*86400 + w}, p)) > 0 { // it exists on the day from which it moves
					add(to*86400 + w)
				}
			}
		}
	} else {
		for t := (lo - margin) / 60 * 60; t < hi+margin; t += 60 {
			if !n.every(z, t) {
				continue
			}
			w := z.wall(t)
			switch to, ok := c.target(w/86400, on); {
			case !ok:
			case to == w/86400:
				set[t] = true
			default:
				add(w + (to-w/86400)*86400)
			}
		}
	}
	var list []int64
	for t := range set {
		if t > lo && t <= hi {
			list = append(list, t)
		}
	}
	slices.Sort(list)
	return list
}

var holidayZones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "Asia/Beirut", "America/St_Johns",
	"America/Nuuk"} // where the clock goes from Saturday 23:00 to Sunday 00:00

// Each occurrence of a rule with a calendar is found, once and in order, from either side. The rule's canonical text
// has the same meaning.
func TestHolidaysAgainstNaiveWalk(t *testing.T) {
	g := rand.New(rand.NewSource(26))
	zones := map[string]naiveZone{}
	for _, name := range holidayZones {
		zones[name] = naiveLoad(name)
	}
	rounds, moved := 150, 0
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		kind, zone, on := g.Intn(8), holidayZones[g.Intn(len(holidayZones))], holidayNames[g.Intn(3)]
		d := Defaults{Nonexistent: []string{"forward", "skip"}[g.Intn(2)], Ambiguous: []string{"first", "last", "both"}[g.Intn(3)]}
		odd := "" // the calendar of a night whose instants are not in the order of the days
		if round < 2 {
			kind, zone, on, d.Ambiguous, odd = 3, "America/St_Johns", holidayNames[1+round], "both", "12-25"
		} else if round < 5 { // a gap that begins on the day before
			zone, on, d.Nonexistent, odd = "America/Nuuk", holidayNames[round-2], "forward", "03-28"
		}
		d.Zone, d.OnHoliday = zone, on
		n := randomNaiveRule(g, kind)
		if zone == "America/Nuuk" && odd != "" {
			n = naiveRule{text: "45 23 * * 6", day: func(t time.Time) bool { return t.Weekday() == time.Saturday }, walls: []int64{24*3600 - 900}}
		}
		year := 2026
		if zone == "America/St_Johns" { // where the clock fell back from 00:01, to the day before
			year = 2010
		}
		lo, hi := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year+1, 1, 15, 0, 0, 0, 0, time.UTC)
		text, working, naive := randomCalendar(g, year)
		if odd != "" {
			text, working, naive = odd, "", naiveCalendar{days: map[string]bool{odd: true}}
		}
		var err error
		if d.Calendar, err = ParseCalendar("c", working, text); err != nil {
			t.Fatal(err)
		}
		p, _ := policyNamed(d.Nonexistent, d.Ambiguous)
		if n.text == "every 105m" {
			p = defaultPolicy
		}
		what := fmt.Sprintf("round %d: %s in %s, %s %s, %s, working %q, days:\n%s", round, n.text, zone, d.Nonexistent, d.Ambiguous, on, working, text)
		r, err := Parse(n.text, d)
		want := n.naiveHolidays(naive, on, zones[zone], p, lo.Unix(), hi.Unix())
		if errors.Is(err, ErrNeverFires) && len(want) == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("%s%v", what, err)
		}
		again, err := Parse(r.String(), Defaults{})
		if err != nil || again.String() != r.String() {
			t.Fatalf("%s%v: canonical text\n%s\nis read as\n%v", what, err, r, again)
		}
		for _, r := range []*Rule{r, again} {
			checkHolidays(t, what, r, want, lo, hi, g)
		}
		if on != "skip" {
			moved += len(want)
		}
	}
	if moved == 0 {
		t.Fatal("no rule moved anything")
	}
}

func checkHolidays(t *testing.T, what string, r *Rule, want []int64, lo, hi time.Time, g *rand.Rand) {
	t.Helper()
	list, err := r.Between(lo, hi, 0)
	if err != nil {
		t.Fatalf("%s%v", what, err)
	}
	var got []int64
	for _, at := range list {
		got = append(got, at.Unix())
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%sBetween:\n%s", what, differing(r, got, want))
	}
	var back []int64
	for at, err := r.Prev(hi.Add(time.Second)); at.After(lo); at, err = r.Prev(at) {
		if err != nil {
			t.Fatalf("%s%v", what, err)
		}
		if back = append(back, at.Unix()); len(back) > len(want) {
			break
		}
	}
	slices.Reverse(back)
	if !slices.Equal(back, want) {
		t.Fatalf("%sPrev:\n%s", what, differing(r, back, want))
	}
	if n, err := r.Count(lo, hi); err != nil || n != int64(len(want)) {
		t.Fatalf("%sCount: %d, %v; want %d", what, n, err, len(want))
	}
	if len(want) < 2 {
		return
	}
	for range 20 {
		i := g.Intn(len(want) - 1)
		from := time.Unix(want[i]+g.Int63n(want[i+1]-want[i]), 0)
		if at, err := r.Next(from); err != nil || at.Unix() != want[i+1] {
			t.Fatalf("%sNext(%s): %s, %v", what, from.UTC(), at, err)
		}
	}
}

// differing shows the place where two lists begin to differ.
func differing(r *Rule, got, want []int64) string {
	var b strings.Builder
	lists := []struct {
		name       string
		list, from []int64
	}{{"too many", got, want}, {"missing", want, got}}
	for _, l := range lists {
		for n, at := range l.list {
			if !slices.Contains(l.from, at) && n < 4000 {
				fmt.Fprintf(&b, "%s: %s\n", l.name, r.days().local(at))
			}
			if b.Len() > 600 {
				break
			}
		}
	}
	return b.String()
}

// TestWhatACalendarCosts: long ranges, each on a short line or in a part of a rule's text, are refused before they take memory.
func TestWhatACalendarCosts(t *testing.T) {
	for name, read := range map[string]func() error{
		"single days": func() error {
			_, err := ParseCalendar("c", "", strings.Repeat("2026-01-01..2035-12-31\n", 5000))
			return err
		},
		"days of each year": func() error {
			_, err := ParseCalendar("c", "", strings.Repeat("02-01..12-31\n", 50_000))
			return err
		},
		"a rule": func() error {
			_, err := Parse("DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY\nX-DBJOBS-ON-HOLIDAY:SKIP\nX-DBJOBS-HOLIDAYS:20260101-20351231"+strings.Repeat(",20260101-20351231", 3000), Defaults{})
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than 40000 days are listed") {
			t.Errorf("%s: %v", name, err)
		}
		if cost := (after.TotalAlloc - before.TotalAlloc) >> 20; cost > 20 {
			t.Errorf("%s: %d MB", name, cost)
		}
	}
	c, err := ParseCalendar("c", "", strings.Repeat("2026-01-01..2026-12-31\n02-01..12-24\n", 100))
	if err != nil {
		t.Fatal(err)
	}
	if single, yearly := len(c.days), len(c.yearly); single != 365 || yearly != 328 {
		t.Errorf("%d and %d days", single, yearly)
	}
}

// TestWhatFoldsCost: a rule that is folded very often takes little memory.
func TestWhatFoldsCost(t *testing.T) {
	var before, after runtime.MemStats
	text := "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;BYHOUR=1" + strings.Repeat("\n ,\n 1", 9000)
	runtime.ReadMemStats(&before)
	_, err := Parse(text, Defaults{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Error(err)
	}
	if cost := (after.TotalAlloc - before.TotalAlloc) >> 20; cost > 20 {
		t.Errorf("%d MB", cost)
	}
}

// A rule that is too long to be kept with its dates and the days of its calendar is refused: its own text could not be read.
func TestTextThatIsTooLongToKeep(t *testing.T) {
	var days, dates []string
	for at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC); len(days) < maxHolidays; at = at.AddDate(0, 0, 2) {
		days, dates = append(days, at.Format(time.DateOnly)), append(dates, at.Format("20060102"))
	}
	c, err := ParseCalendar("c", "", strings.Join(days, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"0 6 * * *", "RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:" + strings.Join(dates, ","), "DTSTART;VALUE=DATE:20300101\nRDATE;VALUE=DATE:" + strings.Join(dates, ",")}
	for i, d := range []Defaults{{}, {Calendar: c, OnHoliday: "next"}} {
		for k, text := range texts {
			r, err := Parse(text, d)
			switch short := i+k < 2 && k < 2; {
			case short != (err == nil) || !short && !strings.Contains(err.Error(), "at most 65535 bytes as RFC 5545 text"):
				t.Errorf("%.60q: %v", text, err)
			case short:
				if _, err := Parse(r.String(), Defaults{}); err != nil {
					t.Errorf("%.60q: its text cannot be read: %v", text, err)
				}
			}
		}
	}
}
