package rules

import (
	"errors"
	"math/bits"
	"slices"
	"strings"
)

// cronDays is what the two day fields admit. Each is a union of choices. The
// fields are joined by AND if one of them begins with * or ?, or else by OR.
type cronDays struct {
	ofMonth, ofWeek []dayChoice
	both            bool
}

// dayChoice is a set of days that one RRULE can express: by number in the
// month, by weekday, and by number in the year. An empty part admits all.
type dayChoice struct {
	months        uint16
	mdays, nmdays uint32
	wdays         uint8 // bit 0 is Monday
	yeardays      []int16
}

const workdays = 1<<saturday - 1 // Monday to Friday

func (d *cronDays) read(month, week cronText, in *input) (err error) {
	d.both = open(month.text) || open(week.text)
	if d.ofMonth, err = readMonthDays(month, in); err != nil {
		return err
	}
	d.ofWeek, err = readWeekDays(week, in)
	return err
}

func open(field string) bool { return field[0] == '*' || field[0] == '?' }

// readMonthDays reads the day-of-month field: numbers, L, LW and nW in a list.
func readMonthDays(t cronText, in *input) ([]dayChoice, error) {
	if t.text == "?" || t.text == "*" {
		return []dayChoice{{}}, nil
	}
	var plain dayChoice
	var list []dayChoice
	at := t.at
	for item := range strings.SplitSeq(t.text, ",") {
		upper := strings.ToUpper(item)
		number, near := strings.CutSuffix(upper, "W")
		switch {
		case upper == "L":
			plain.nmdays |= 1 << 1
		case upper == "LW":
			list = append(list, dayChoice{nmdays: 1 << 1, wdays: workdays}, dayChoice{nmdays: 1<<2 | 1<<3, wdays: 1 << friday})
		case near:
			n, err := cronDay.number(number, at)
			if err != nil {
				return nil, err
			}
			list = append(list, nearest(n)...)
		default:
			set, err := cronDay.item(item, at, in)
			if err != nil {
				return nil, refineDay(err, item, "n, a-b, */n, L (the last day), LW (the last Monday-Friday) or nW (the Monday-Friday nearest to n)")
			}
			plain.mdays |= uint32(set)
		}
		at += len(item) + 1
	}
	const every = 1<<32 - 2
	if plain.mdays == every {
		return []dayChoice{{}}, nil
	}
	if plain.mdays|plain.nmdays != 0 {
		list = append([]dayChoice{plain}, list...)
	}
	return list, nil
}

// refineDay replaces the allowed values of a numeric field by those of a day
// field.
func refineDay(err error, item, allowed string) error {
	if e, ok := errors.AsType[*SyntaxError](err); ok && strings.ContainsAny(strings.ToUpper(item), "LW#?") {
		e.Found, e.Allowed = item, "a day is "+allowed
	}
	return err
}

// nearest returns the Monday to Friday nearest to day n within its month: n
// itself, the Friday before if n is a Saturday, the Monday after if n is a
// Sunday. At the edges of the month it goes the other way. Months without day n
// have none.
func nearest(n int) []dayChoice {
	const february, short = 1 << 2, 1<<4 | 1<<6 | 1<<9 | 1<<11
	const allMonths = 1<<13 - 2
	on := func(day int, w int, months uint16) dayChoice {
		return dayChoice{mdays: 1 << day, wdays: 1 << w, months: months}
	}
	// A leap day shifts the days of February, counted from the year's end.
	ofYear := func(day int, w int, yearday int16) dayChoice {
		return dayChoice{mdays: 1 << day, wdays: 1 << w, yeardays: []int16{yearday}}
	}
	self := dayChoice{mdays: 1 << n, wdays: workdays}
	switch n {
	case 1:
		return []dayChoice{self, {mdays: 1<<2 | 1<<3, wdays: 1 << monday}}
	case 28:
		return []dayChoice{self, on(27, friday, 0), on(29, monday, 0), ofYear(26, friday, -309)}
	case 29:
		return []dayChoice{self, on(28, friday, allMonths&^february), on(30, monday, 0),
			ofYear(28, friday, -308), ofYear(27, friday, -309)}
	case 30:
		return []dayChoice{self, on(29, friday, allMonths&^february), on(31, monday, 0), on(28, friday, short)}
	case 31:
		long := uint16(allMonths &^ (february | short))
		return []dayChoice{self, on(30, friday, long), on(29, friday, long)}
	}
	return []dayChoice{self, on(n-1, friday, 0), on(n+1, monday, 0)}
}

// readWeekDays reads the day-of-week field: numbers and names, d#n and dL.
func readWeekDays(t cronText, in *input) ([]dayChoice, error) {
	if t.text == "?" || t.text == "*" {
		return []dayChoice{{}}, nil
	}
	const allowed = "0-7 or SUN-SAT, a-b, */n, d#n (the nth of the month, 1-5) or nL (the last of the month, as 5L)"
	var plain dayChoice
	var list []dayChoice
	at := t.at
	for item := range strings.SplitSeq(t.text, ",") {
		upper := strings.ToUpper(item)
		name, nth, numbered := strings.Cut(upper, "#")
		digit, last := strings.CutSuffix(upper, "L")
		switch {
		case numbered:
			w, err := cronWeekday.number(name, at)
			if err != nil {
				return nil, refineDay(err, item, allowed)
			}
			n, ok := digitsOf(nth)
			if !ok || n < 1 || n > 5 {
				return nil, refuse("cron", at+len(name)+1, nth, "d#n is the nth weekday of the month, n 1-5")
			}
			list = append(list, dayChoice{mdays: dayRange(7*n-6, 7*n), wdays: fromSunday(1 << w)})
		case last && len(digit) == 1 && digit[0] >= '0' && digit[0] <= '7':
			list = append(list, dayChoice{nmdays: 1<<8 - 2, wdays: fromSunday(1 << (digit[0] - '0'))})
		default:
			set, err := cronWeekday.item(item, at, in)
			if err != nil {
				return nil, refineDay(err, item, allowed)
			}
			plain.wdays |= fromSunday(set)
		}
		at += len(item) + 1
	}
	if plain.wdays == 1<<7-1 {
		return []dayChoice{{}}, nil
	}
	if plain.wdays != 0 {
		list = append([]dayChoice{plain}, list...)
	}
	return list, nil
}

// fromSunday converts a set of weekdays that counts from Sunday (with 7 for
// Sunday, too) into one that counts from Monday.
func fromSunday(set uint64) uint8 {
	return uint8((set>>1 | set<<6) & 0x7f)
}

// recurs makes one RRULE from a choice of days and the rest of the rule.
func (d *cronDays) recurs(base recur) []recur {
	var list []recur
	add := func(c dayChoice) {
		r := base
		r.mdays, r.nmdays, r.wdays, r.yeardays = c.mdays, c.nmdays, c.wdays, c.yeardays
		if c.months != 0 {
			if r.months == 0 {
				r.months = c.months
			} else if r.months &= c.months; r.months == 0 {
				return
			}
		}
		if len(c.yeardays) > 0 && r.freq == daily {
			r.freq = yearly // DAILY takes no BYYEARDAY
		}
		list = append(list, r)
	}
	if !d.both {
		for _, c := range d.ofMonth {
			add(c)
		}
		for _, c := range d.ofWeek {
			add(c)
		}
		return list
	}
	for _, m := range d.ofMonth {
		for _, w := range d.ofWeek {
			for _, c := range m.and(w) {
				add(c)
			}
		}
	}
	return list
}

// and returns the days in both choices. w comes from the day-of-week field: it
// has weekdays, and at most one range of days of the month, counted from the
// start of the month or from its end. One RRULE can combine days counted from
// different ends only if the days counted from the end are written as days of the
// year.
func (m dayChoice) and(w dayChoice) []dayChoice {
	if m.wdays == 0 {
		m.wdays = w.wdays
	} else if w.wdays != 0 {
		if m.wdays &= w.wdays; m.wdays == 0 {
			return nil
		}
	}
	if w.mdays|w.nmdays == 0 {
		return []dayChoice{m}
	}
	if m.mdays|m.nmdays == 0 {
		m.mdays, m.nmdays = w.mdays, w.nmdays
		return []dayChoice{m}
	}
	var list []dayChoice
	front, back := m, m
	front.nmdays, back.mdays = 0, 0
	if w.nmdays != 0 {
		front.yeardays = commonDays(m.yeardays, daysBeforeEnd(w.nmdays))
		if back.nmdays &= w.nmdays; front.mdays != 0 && len(front.yeardays) > 0 {
			list = append(list, front)
		}
		if back.nmdays != 0 {
			list = append(list, back)
		}
		return list
	}
	if front.mdays &= w.mdays; front.mdays != 0 {
		list = append(list, front)
	}
	if back.nmdays != 0 {
		back.yeardays = commonDays(m.yeardays, daysBeforeEnd(m.nmdays))
		back.mdays, back.nmdays = w.mdays, 0
		list = append(list, back)
	}
	return list
}

// daysBeforeEnd writes days counted from the end of every month as BYYEARDAY.
// The end of January has the same number in every year; the ends of the other
// months do if they are counted from the end of the year.
func daysBeforeEnd(nmdays uint32) (list []int16) {
	for month := 1; month <= 12; month++ {
		length := daysInMonth(2001, month)
		before := dayOf(2001, month, 1) - dayOf(2001, 1, 1)
		for set := nmdays; set != 0; set &= set - 1 {
			n := before + length + 1 - bits.TrailingZeros32(set)
			if month > 1 {
				n -= 366
			}
			list = append(list, int16(n))
		}
	}
	slices.Sort(list)
	return list
}

// commonDays intersects two lists of days of the year; an empty a admits all.
func commonDays(a, b []int16) []int16 {
	if len(a) == 0 {
		return b
	}
	var out []int16
	for _, n := range a {
		if slices.Contains(b, n) {
			out = append(out, n)
		}
	}
	return out
}
