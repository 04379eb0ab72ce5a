package rules

import "time"

// Civil time is wall-clock time without a zone, held as seconds since
// 1970-01-01T00:00:00 on the same clock (proleptic Gregorian, no leap seconds).
// An instant is seconds since 1970-01-01T00:00:00Z. Days and months count from
// the same origin in the same way: day 0 is 1970-01-01, month y*12+m-1.

const (
	secondsPerDay  = 86400
	secondsPerWeek = 7 * secondsPerDay

	// The calendar that rules are defined on: four-digit years, as RFC 5545
	// §3.3.4 writes them. Nothing recurs outside it.
	firstYear, lastYear = 1, 9999
	firstCivil          = -62135596800 // 0001-01-01T00:00:00
	endCivil            = 253402300800 // 10000-01-01T00:00:00

	// Occurrences of a rule must be times that every database can store, and that
	// can be written in UTC with a four-digit year. A wall clock may show a time
	// of the calendar that is outside these limits.
	firstHeld = -30610224000 // 1000-01-01T00:00:00Z
	lastHeld  = endCivil - 1 // 9999-12-31T23:59:59Z
)

// First and Last are the ends of time. No rule has an occurrence outside them,
// and no stored time lies outside them.
var (
	First = time.Unix(firstHeld, 0).UTC()
	Last  = time.Unix(lastHeld, 0).UTC()
)

// Holds reports whether an instant lies within the ends of time.
func Holds(t time.Time) bool { return !t.Before(First) && !t.After(Last) }

// Weekdays count from Monday, as RFC 5545 lists them.
const (
	monday = iota
	tuesday
	wednesday
	thursday
	friday
	saturday
	sunday
)

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// floorMod expects b > 0; the result lies in [0, b).
func floorMod(a, b int64) int64 {
	if r := a % b; r < 0 {
		return r + b
	} else {
		return r
	}
}

// splitCivil divides a civil time into its day and the second of that day.
func splitCivil(c int64) (day, sec int) {
	d := floorDiv(c, secondsPerDay)
	return int(d), int(c - d*secondsPerDay)
}

func joinCivil(day, sec int) int64 { return int64(day)*secondsPerDay + int64(sec) }

// dayOf returns the day number of a date. It counts in years that begin in
// March, which puts the leap day last and makes month lengths a formula.
func dayOf(year, month, day int) int {
	if month <= 2 {
		year--
	}
	era := int(floorDiv(int64(year), 400))
	yoe := year - era*400
	mp := (month + 9) % 12
	doy := (153*mp+2)/5 + day - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// dateOf is the inverse of dayOf.
func dateOf(day int) (year, month, mday int) {
	z := day + 719468
	era := int(floorDiv(int64(z), 146097))
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	mday = doy - (153*mp+2)/5 + 1
	month = mp + 3
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, mday
}

func weekdayOf(day int) int { return int(floorMod(int64(day)+thursday, 7)) }

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysInYear(year int) int {
	if isLeap(year) {
		return 366
	}
	return 365
}

func daysInMonth(year, month int) int {
	switch month {
	case 2:
		if isLeap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
