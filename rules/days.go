package rules

import "math/bits"

// dayFilter says which days of the calendar a recurrence admits. All of its
// BYMONTH, BYMONTHDAY, BYYEARDAY, BYWEEKNO and BYDAY parts must admit the day
// and, for MONTHLY and YEARLY, its INTERVAL. It answers for a whole month, so
// that a walk costs one step for each month.
type dayFilter struct {
	months        uint16 // bit m for month m in 1..12; 0 admits all
	mdays, nmdays uint32 // bit n for day n, and for day -n counted from the end; both 0 admit all
	wdays         uint8  // bit 0 is Monday; see also nth
	nth           []nthDay
	nthOfYear     bool // whether nth counts in the year or in the month
	yeardays      *yearSet
	weeks         *weekSet

	every int // INTERVAL of a MONTHLY (in months) or YEARLY (in years) rule; 0 and 1 do not restrict
	base  int // month number (MONTHLY) or year (YEARLY) of DTSTART
	byear bool

	// A day that RFC 7529 SKIP moves belongs to the month from which it was
	// moved: the month before (-1) or after (+1) the month it is in. months,
	// every and leap are compared with that owner.
	shift int
	leap  int8 // 1: only if the owner's year is a leap year; -1: only if it is not
}

// nthDay is a BYDAY with an ordinal, n counted from the end if negative.
type nthDay struct{ n, wday int8 }

// yearSet holds BYYEARDAY: bit n of from for day n, of back for day -n.
type yearSet struct{ from, back [6]uint64 }

func (s *yearSet) add(n int) {
	if n > 0 {
		s.from[n/64] |= 1 << (n % 64)
	} else {
		s.back[-n/64] |= 1 << (-n % 64)
	}
}

func (s *yearSet) has(yday, length int) bool {
	back := length + 1 - yday
	return s.from[yday/64]>>(yday%64)&1 != 0 || s.back[back/64]>>(back%64)&1 != 0
}

// weekSet holds BYWEEKNO in the same way, and WKST, which numbers the weeks.
type weekSet struct {
	from, back uint64
	wkst       int
}

// firstWeek returns the day on which week 1 of a year begins. That is the week
// that contains January 4th (RFC 5545 §3.3.10, BYWEEKNO: at least four days in
// the year).
func (s *weekSet) firstWeek(year int) int {
	return s.begin(dayOf(year, 1, 4))
}

// begin returns the first day of the week that contains a day.
func (s *weekSet) begin(day int) int {
	return day - int(floorMod(int64(weekdayOf(day)-s.wkst), 7))
}

// has reports whether the week that begins on a day is in the set. A week
// belongs to the year of its fourth day.
func (s *weekSet) has(begin int) bool {
	year, _, _ := dateOf(begin + 3)
	first := s.firstWeek(year)
	n := (begin-first)/7 + 1
	back := (s.firstWeek(year+1)-first)/7 + 1 - n
	return s.from>>n&1 != 0 || s.back>>back&1 != 0
}

// owns reports whether the filter's months, interval and leap condition admit the
// month that owns a day.
func (f *dayFilter) owns(owner int) bool {
	year, month := owner/12, owner%12+1
	if f.months != 0 && f.months>>month&1 == 0 {
		return false
	}
	if f.leap != 0 && isLeap(year) != (f.leap > 0) {
		return false
	}
	if f.every > 1 {
		if f.byear {
			return floorMod(int64(year-f.base), int64(f.every)) == 0
		}
		return floorMod(int64(owner-f.base), int64(f.every)) == 0
	}
	return true
}

// days returns the admitted days of a month, bit n for day n.
func (f *dayFilter) days(ym int) uint32 {
	if !f.owns(ym + f.shift) {
		return 0
	}
	year, month := ym/12, ym%12+1
	length := daysInMonth(year, month)
	set := uint32(1)<<(length+1) - 2
	if f.mdays|f.nmdays != 0 {
		set &= f.mdays | bits.Reverse32(f.nmdays)<<1>>(31-length)
	}
	if f.wdays|uint8(len(f.nth)) != 0 {
		set &= f.weekdays(year, month, length)
	}
	if set != 0 && (f.yeardays != nil || f.weeks != nil) {
		set = f.numbered(year, month, set)
	}
	return set
}

// weekdays returns the days of a month that BYDAY admits.
func (f *dayFilter) weekdays(year, month, length int) uint32 {
	first := dayOf(year, month, 1)
	w := weekdayOf(first)
	set := spread(f.wdays, w)
	for _, n := range f.nth {
		days := spread(1<<n.wday, w)
		if f.nthOfYear {
			days &= yearBand(year, first, length, int(n.n))
		} else {
			days &= band(int(n.n), length)
		}
		set |= days
	}
	return set
}

// spread repeats a set of weekdays over a month whose first day is weekday w.
func spread(wdays uint8, w int) uint32 {
	turned := (uint64(wdays) | uint64(wdays)<<7) >> w & 0x7f
	return uint32(turned * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) << 1)
}

// band returns the seven days of a month among which each weekday is its nth.
func band(n, length int) uint32 {
	if n > 0 {
		return dayRange(7*n-6, 7*n)
	}
	return dayRange(length+7*n+1, length+7*n+7)
}

// yearBand returns the part of the month among which each weekday is its nth of
// the year. first is the day number of the month's first day.
func yearBand(year, first, length, n int) uint32 {
	at := dayOf(year, 1, 1) + 7*(n-1)
	if n < 0 {
		at = dayOf(year+1, 1, 1) + 7*n
	}
	lo, hi := at-first+1, at-first+7
	if hi < 1 || lo > length {
		return 0
	}
	return dayRange(lo, hi)
}

// dayRange sets the bits lo..hi, as far as they lie in 1..31.
func dayRange(lo, hi int) uint32 {
	lo, hi = max(lo, 1), min(hi, 31)
	if hi < lo {
		return 0
	}
	return uint32(uint64(2)<<hi - uint64(1)<<lo)
}

// numbered returns the days of a month that BYYEARDAY and BYWEEKNO admit.
func (f *dayFilter) numbered(year, month int, set uint32) uint32 {
	first := dayOf(year, month, 1)
	yday, length := first-dayOf(year, 1, 1), daysInYear(year)
	week, admitted := noDay, true
	for rest := set; rest != 0; rest &= rest - 1 {
		d := bits.TrailingZeros32(rest)
		if f.weeks != nil {
			if begin := f.weeks.begin(first + d - 1); begin != week {
				week, admitted = begin, f.weeks.has(begin)
			}
		}
		if !admitted || f.yeardays != nil && !f.yeardays.has(yday+d, length) {
			set &^= 1 << d
		}
	}
	return set
}

// noMonth lies past every month of the calendar.
const noMonth = (lastYear + 1) * 12

// seek returns the first month at or after ym (dir +1), or the last month at or
// before it (dir -1), whose owner passes the filter's months and interval. It
// jumps, so an INTERVAL of a thousand years costs no more than one of two years.
func (f *dayFilter) seek(ym, dir int) int {
	owner := ym + f.shift
	for range 24 {
		if f.every > 1 {
			owner = f.align(owner, dir)
		}
		if owner < firstYear*12 || owner >= noMonth {
			break
		}
		if f.months == 0 || f.months>>(owner%12+1)&1 != 0 {
			return owner - f.shift
		}
		owner = f.nextAdmitted(owner, dir)
	}
	if dir < 0 {
		return -1
	}
	return noMonth
}

// align returns the nearest month in the direction dir that INTERVAL admits.
func (f *dayFilter) align(owner, dir int) int {
	n := int64(f.every)
	if f.byear {
		year := owner / 12
		off := floorMod(int64(f.base-year)*int64(dir), n)
		if off == 0 {
			return owner
		}
		if year += int(off) * dir; dir < 0 {
			return year*12 + 11
		}
		return year * 12
	}
	return owner + int(floorMod(int64(f.base-owner)*int64(dir), n))*dir
}

// nextAdmitted steps from a month that BYMONTH refuses to the next candidate: the
// nearest month that BYMONTH admits or, if INTERVAL counts months, the next month
// by INTERVAL. By INTERVAL, all months that can be reached are reached within
// twelve steps.
func (f *dayFilter) nextAdmitted(owner, dir int) int {
	if f.every > 1 && !f.byear {
		return owner + f.every*dir
	}
	for range 12 {
		owner += dir
		if owner%12 == 0 && dir > 0 || owner%12 == 11 && dir < 0 {
			break // a new year: INTERVAL must be checked first
		}
		if f.months>>(owner%12+1)&1 != 0 {
			break
		}
	}
	return owner
}
