package rules

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/teambition/rrule-go"
)

// Only this file uses rrule-go. Each part of a value is checked here first,
// strictly and with its position; then rrule-go builds its model of the value.
// Nothing else of rrule-go is used: it is lenient, and its iteration starts at
// DTSTART.

// recurReader reads the value of one RRULE line.
type recurReader struct {
	*line
	start *stamp // nil without DTSTART
	zone  *zone
	seen  map[string]int // the position of the value of each part
}

// partBounds has the limits of the numbers that a part may list, RFC 5545
// §3.3.10. minus says whether they may count from the end.
var partBounds = map[string]struct {
	low, high int
	minus     bool
}{
	"BYSECOND": {0, 60, false}, "BYMINUTE": {0, 59, false}, "BYHOUR": {0, 23, false},
	"BYMONTHDAY": {1, 31, true}, "BYYEARDAY": {1, 366, true}, "BYWEEKNO": {1, 53, true},
	"BYMONTH": {1, 12, false}, "BYSETPOS": {1, 366, true},
	"INTERVAL": {1, 1<<31 - 1, false}, "COUNT": {1, 1<<31 - 1, false},
}

const partNames = "FREQ, INTERVAL, COUNT, UNTIL, WKST, RSCALE, SKIP, BYSECOND, BYMINUTE, BYHOUR, BYDAY, BYMONTHDAY, BYYEARDAY, BYWEEKNO, BYMONTH, BYSETPOS"

func (p *recurReader) read() (recur, error) {
	var modelled []string
	c := recur{interval: 1, until: noUntil}
	p.seen = make(map[string]int, 8)
	at := p.valueAt
	for part := range strings.SplitSeq(p.value, ";") {
		key, value, ok := strings.Cut(part, "=")
		key = strings.ToUpper(key)
		if !ok || value == "" {
			return c, refuse("rrule", at, part, "a part is NAME=value; names: %s", partNames)
		}
		if _, twice := p.seen[key]; twice {
			return c, refuse("rrule", at, part, "%s may stand once", key)
		}
		vat := at + len(key) + 1
		p.seen[key] = vat
		value = strings.ToUpper(value)
		if err := p.check(key, value, at, vat, &c); err != nil {
			return c, err
		}
		if key != "SKIP" && key != "RSCALE" && key != "UNTIL" {
			modelled = append(modelled, key+"="+value)
		}
		at += len(part) + 1
	}
	if _, ok := p.seen["FREQ"]; !ok {
		return c, refuse("rrule", p.valueAt, p.value, "FREQ is missing: %s", strings.Join(frequencyNames[:], ", "))
	}
	model, err := rrule.StrToROption(strings.Join(modelled, ";"))
	if err != nil {
		return c, refuse("rrule", p.valueAt, p.value, "%v", err)
	}
	adopt(&c, model)
	err = p.combined(&c)
	return c, err
}

// check checks a single part. It also reads UNTIL, RSCALE and SKIP.
func (p *recurReader) check(key, value string, at, vat int, c *recur) error {
	switch key {
	case "FREQ":
		if !slices.Contains(frequencyNames[:], value) {
			return refuse("rrule", vat, value, "allowed: %s", strings.Join(frequencyNames[:], ", "))
		}
	case "WKST":
		if !slices.Contains(weekdayNames[:], value) {
			return refuse("rrule", vat, value, "allowed: %s", strings.Join(weekdayNames[:], ", "))
		}
	case "RSCALE":
		if value != "GREGORIAN" {
			return refuse("rrule", vat, value, "the only calendar is GREGORIAN")
		}
	case "SKIP":
		i := slices.Index(skipNames[:], value)
		if i < 0 {
			return refuse("rrule", vat, value, "allowed: %s", strings.Join(skipNames[:], ", "))
		}
		c.skip = skip(i)
	case "UNTIL":
		return p.readUntil(value, vat, c)
	case "BYDAY":
		return checkWeekdays(value, vat)
	default:
		b, ok := partBounds[key]
		if !ok {
			return refuse("rrule", at, key, "allowed parts: %s", partNames)
		}
		single := key == "INTERVAL" || key == "COUNT"
		for n := range strings.SplitSeq(value, ",") {
			if !inBounds(n, b.low, b.high, b.minus) || single && n != value {
				sign := ""
				if b.minus {
					sign = " or -" + strconv.Itoa(b.high) + " to -" + strconv.Itoa(b.low)
				}
				return refuse("rrule", vat, n, "%s is %d to %d%s", key, b.low, b.high, sign)
			}
			vat += len(n) + 1
		}
	}
	return nil
}

func inBounds(text string, low, high int, minus bool) bool {
	digits := text
	if minus {
		digits = strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
		if len(text)-len(digits) > 1 {
			return false
		}
	}
	n, ok := digitsOf(digits)
	return ok && n >= low && n <= high
}

// digitsOf reads a number of up to ten digits.
func digitsOf(text string) (n int, ok bool) {
	if text == "" || len(text) > 10 {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func checkWeekdays(value string, at int) error {
	for day := range strings.SplitSeq(value, ",") {
		n := len(day) - 2
		if n < 0 || !slices.Contains(weekdayNames[:], day[n:]) || n > 0 && !inBounds(day[:n], 1, 53, true) {
			return refuse("rrule", at, day, "BYDAY lists MO, TU, WE, TH, FR, SA, SU, each with an ordinal 1 to 53 or -53 to -1 before it, or none")
		}
		at += len(day) + 1
	}
	return nil
}

// readUntil reads UNTIL. Its kind must be the kind of DTSTART (RFC 5545 §3.3.10):
// a date, a local time, or UTC if DTSTART has a zone or is in UTC. Without a
// DTSTART line any kind is allowed; a date then includes its whole day.
func (p *recurReader) readUntil(value string, at int, c *recur) error {
	s, err := readStamp("rrule", at, value)
	if err != nil {
		return err
	}
	if p.start != nil && (s.date != p.start.date || s.utc != p.start.utc) {
		want := "a local time, without Z"
		switch {
		case p.start.date:
			want = "a date"
		case p.start.utc:
			want = "in UTC, with Z"
		}
		return refuse("rrule", at, value, "UNTIL is of the kind of DTSTART: here %s (RFC 5545 §3.3.10)", want)
	}
	if c.until = s.civil; !s.utc {
		if s.date {
			s.civil += secondsPerDay - 1
		}
		c.until = withinCalendar(p.zone.resolve(s.civil, policy{last: true}))
	}
	return nil
}

// adopt copies what rrule-go has read.
func adopt(c *recur, m *rrule.ROption) {
	c.freq = yearly - frequency(m.Freq) // rrule-go counts from YEARLY = 0
	if m.Interval > 0 {
		c.interval = m.Interval
	}
	c.count = m.Count
	c.wkst = int8(m.Wkst.Day())
	for _, n := range m.Bymonth {
		c.months |= 1 << n
	}
	for _, n := range m.Bymonthday {
		if n > 0 {
			c.mdays |= 1 << n
		} else {
			c.nmdays |= 1 << -n
		}
	}
	for _, w := range m.Byweekday {
		if w.N() == 0 {
			c.wdays |= 1 << w.Day()
		} else {
			c.nth = append(c.nth, nthDay{int8(w.N()), int8(w.Day())})
		}
	}
	slices.SortFunc(c.nth, func(a, b nthDay) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.wday, b.wday)) })
	c.nth = slices.Compact(c.nth)
	for _, n := range m.Byhour {
		c.hours |= 1 << n
	}
	for _, n := range m.Byminute {
		c.minutes |= 1 << n
	}
	for _, n := range m.Bysecond {
		c.seconds |= 1 << min(n, 59) // see readStamp
	}
	c.yeardays, c.weeks, c.pos = sorted(m.Byyearday), sorted(m.Byweekno), sorted(m.Bysetpos)
}

func sorted(list []int) []int16 {
	var out []int16
	for _, n := range list {
		out = append(out, int16(n))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// combined checks parts that exclude each other, RFC 5545 §3.3.10.
func (p *recurReader) combined(c *recur) error {
	bad := func(key, format string, args ...any) error {
		return refuse("rrule", p.seen[key], p.value[p.seen[key]-p.valueAt:], format, args...)
	}
	has := func(key string) bool { _, ok := p.seen[key]; return ok }
	freq := frequencyNames[c.freq]
	switch {
	case has("COUNT") && has("UNTIL"):
		return bad("UNTIL", "COUNT and UNTIL exclude each other")
	case len(c.nth) > 0 && c.freq < monthly:
		return bad("BYDAY", "an ordinal needs FREQ=MONTHLY or YEARLY, not %s", freq)
	case len(c.nth) > 0 && has("BYWEEKNO"):
		return bad("BYDAY", "an ordinal and BYWEEKNO exclude each other")
	case has("BYWEEKNO") && c.freq != yearly:
		return bad("BYWEEKNO", "BYWEEKNO needs FREQ=YEARLY, not %s", freq)
	case has("BYYEARDAY") && (c.freq == daily || c.freq == weekly || c.freq == monthly):
		return bad("BYYEARDAY", "BYYEARDAY and FREQ=%s exclude each other", freq)
	case has("BYMONTHDAY") && c.freq == weekly:
		return bad("BYMONTHDAY", "BYMONTHDAY and FREQ=WEEKLY exclude each other")
	case has("BYSETPOS") && !p.hasOtherBy():
		return bad("BYSETPOS", "BYSETPOS needs another BY part to choose from")
	case p.start != nil && p.start.date && (c.freq < daily || has("BYHOUR") || has("BYMINUTE") || has("BYSECOND")):
		return refuse("rrule", p.valueAt, p.value, "DTSTART is a date: no times of day (RFC 5545 §3.3.10)")
	}
	return nil
}

func (p *recurReader) hasOtherBy() bool {
	for key := range p.seen {
		if strings.HasPrefix(key, "BY") && key != "BYSETPOS" {
			return true
		}
	}
	return false
}
