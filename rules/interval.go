package rules

import (
	"fmt"
	"strings"
)

// The interval form: `every N unit [starting T]`, `every hour`. Units below a day
// count elapsed time, from T or, in every zone, from 1970-01-01T00:00:00Z. Such a
// rule is kept in UTC, where it needs no wall clock. Days and weeks recur on the
// wall clock of the zone.
var intervalForm = form{name: "interval", claims: claimsInterval, parse: parseInterval, sentence: (*Rule).describe}

func claimsInterval(text string) bool {
	return len(text) >= 5 && strings.EqualFold(text[:5], "every") && (len(text) == 5 || text[5] == ' ' || text[5] == '\t')
}

var intervalUnits = []struct {
	short, word string
	freq        frequency
}{
	{"s", "second", secondly}, {"m", "minute", minutely}, {"h", "hour", hourly}, {"d", "day", daily}, {"w", "week", weekly},
}

// capitalM is no unit, though the others may be in capital letters: to many it means months, and a job of each month would
// run each minute.
const capitalM = "M"

const intervalGrammar = "an interval is `every N UNIT [starting YYYY-MM-DD[THH:MM[:SS]]]`; units: s, m, h, d, w, second(s), minute(s), hour(s), day(s), week(s)"

func parseInterval(r *Rule, in *input) error {
	w := words{form: "interval", text: in.text, base: in.at}
	w.next() // every
	if err := w.refuseOrdinal(); err != nil {
		return err
	}
	c := recur{interval: 1, until: noUntil}
	amount, unit, counted, err := w.amount()
	if err != nil {
		return err
	}
	c.interval = amount
	freq, ok := intervalUnit(unit, counted)
	if !ok {
		return w.refuse(unit, "%s", insteadOfUnit(unit, c.interval))
	}
	c.freq = freq
	start, given, err := w.starting()
	if err != nil {
		return err
	}
	r.includes = []recur{c}
	return r.beginInterval(start, given, &w)
}

// amount reads N and a unit, or a unit alone; counted says which.
func (w *words) amount() (n int, unit string, counted bool, err error) {
	n, unit = 1, w.next()
	digits := len(unit) - len(strings.TrimLeft(unit, "0123456789"))
	if digits == 0 {
		return n, unit, false, nil
	}
	n, ok := digitsOf(unit[:digits])
	if !ok || n < 1 || n > 1<<31-1 {
		return n, unit, true, w.refuse(unit, "N is 1 to 2147483647")
	}
	if unit = unit[digits:]; unit == "" {
		unit = w.next()
	}
	return n, unit, true, nil
}

// insteadOfUnit is the hint for a word that is not a unit.
func insteadOfUnit(unit string, n int) string {
	if unit == capitalM {
		return "M may stand for minutes or for months: write m for minutes; " + insteadOfUnit("month", n)
	}
	unit = strings.ToLower(unit)
	day, ok := agentWeekday(strings.TrimSuffix(unit, "s"))
	if ok && n > 1 {
		return fmt.Sprintf("for one day in %d weeks write `every %[1]d weeks on %s at H:MM starting YYYY-MM-DD`", n, weekdayWords[day])
	}
	if ok || unit == "weekday" {
		return insteadOfEvery(unit)
	}
	switch strings.TrimSuffix(unit, "s") {
	case "month":
		if n == 1 {
			return insteadOfEvery("month")
		}
		return fmt.Sprintf("months differ in length: write on which day, and from when, as in `every %d months on 1 at 8:00 starting 2026-01-01`", n)
	case "year":
		return "years differ in length: write on which day, as the cron rule `0 8 1 1 *` for January 1st"
	}
	return intervalGrammar
}

// asInterval returns the interval that is meant by a text such as 10 seconds, 10s
// or 5 min. It returns an empty text if no interval is meant.
func asInterval(text string) string {
	unit := strings.TrimLeft(text, "0123456789")
	amount := text[:len(text)-len(unit)]
	if unit = strings.TrimSpace(unit); unit != capitalM {
		unit = strings.ToLower(unit)
	}
	if short := strings.TrimSuffix(unit, "s"); short == "min" || short == "sec" {
		unit = short[:1]
	}
	if _, ok := intervalUnit(unit, true); !ok || amount == "" {
		return ""
	}
	if len(unit) > 1 {
		unit = " " + unit
	}
	return "every " + amount + unit
}

// intervalUnit reads a unit; the short ones need a number before them.
func intervalUnit(text string, counted bool) (frequency, bool) {
	for _, u := range intervalUnits {
		if counted && text != capitalM && strings.EqualFold(text, u.short) || strings.EqualFold(text, u.word) || strings.EqualFold(text, u.word+"s") {
			return u.freq, true
		}
	}
	return 0, false
}

// beginInterval sets DTSTART.
func (r *Rule) beginInterval(start int64, given bool, w *words) error {
	c := &r.includes[0]
	if c.freq < daily {
		if r.start = epoch; given {
			r.start = withinCalendar(r.zone.resolve(start, r.policy))
		}
		r.zone = utc
		return nil
	}
	if !given && (c.interval > 1 || c.freq == weekly) {
		return w.refuse("", "more than a day needs a time to count from: add `starting YYYY-MM-DDTHH:MM`")
	}
	if r.start = epoch; given {
		r.start = start
	}
	return nil
}
