package engine

import (
	"math"
	"strconv"
	"time"
)

// First and Last are the ends of time: what every engine can store, and JSON can hold with a four-digit
// year. An instant outside is neither read nor written. Package rules has the same ends.
var (
	First = time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)
	Last  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Clamp moves an instant that lies outside the ends of time to the nearer end. All instants in
// arguments of statements pass here.
func Clamp(t time.Time) time.Time {
	switch {
	case t.Before(First):
		return First
	case t.After(Last):
		return Last
	}
	return t
}

// parseInstant reads the text of an instant in the form of SQLite (2026-01-05T08:00:00.000000Z) or of
// MySQL, which has a blank and no zone.
func parseInstant(text string) (t time.Time, ok bool) {
	if n := len(text); n == len(sqliteLayout) && text[10] == 'T' && text[n-1] == 'Z' {
		text = text[:n-1]
	} else if n < 19 || n > 26 || text[10] != ' ' {
		return t, false
	}
	number := func(from, to int) (v int) {
		for _, c := range []byte(text[from:to]) {
			if c < '0' || c > '9' {
				return -1
			}
			v = v*10 + int(c-'0')
		}
		return v
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second := number(11, 13), number(14, 16), number(17, 19)
	micros := 0
	if len(text) > 19 {
		if micros = number(20, len(text)); text[19] != '.' || len(text) == 20 {
			return t, false
		}
		for range 26 - len(text) {
			micros *= 10
		}
	}
	if text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':' || min(year, hour, minute, second, micros) < 0 ||
		hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC)
	return t, t.Day() == day && int(t.Month()) == month // time.Date turns February 30th into March 2nd
}

// PlannedInstant reads an instant from plan_input. SQLite and MySQL write it there as they store it,
// PostgreSQL as seconds since the epoch.
func PlannedInstant(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, true
	}
	for _, layout := range []string{sqliteLayout, "2006-01-02 15:04:05.000000"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(math.Abs(seconds) <= float64(Last.Unix())) { // infinite, or not a number
		return time.Time{}, false
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC(), true
}
