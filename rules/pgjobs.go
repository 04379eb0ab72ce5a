package rules

import (
	"strings"
)

// The pgjobs form, after the schedules of the pgjobs specification:
//
//	D [[[YYYY.]M.]D] TIME    a day: of one year, of every year, of every month, or every day
//	W [WEEKDAY] TIME         a weekday, 1-7 from Monday, 0 is Sunday too; without one, every day
//	I [[DAYS] H:]NN          an interval, counted from the creation of the schedule
//
// A negative day, -1 to -28, counts from the end of its month. TIME is H:NN, or
// NN alone for that minute of every hour, which makes the rule free. The
// specification's grammar (weekdays 1-7) and its prose (0-7) disagree; the prose
// is followed.
var pgjobsForm = form{name: "pgjobs", claims: claimsPgjobs, parse: parsePgjobs, sentence: (*Rule).describe}

func claimsPgjobs(text string) bool {
	return len(text) >= 2 && strings.ContainsRune("DWIdwi", rune(text[0])) && isBlank(text[1])
}

func parsePgjobs(r *Rule, in *input) error {
	w := words{form: "pgjobs", text: in.text, base: in.at}
	kind := strings.ToUpper(w.next())
	if kind == "I" {
		return r.parseElapsed(in, &w)
	}
	c := recur{freq: daily, interval: 1, until: noUntil, seconds: 1}
	word, year := w.next(), 0
	if w.peek() != "" {
		var err error
		if kind == "W" {
			err = c.readPgWeekday(word, &w)
		} else {
			year, err = c.readPgDate(word, &w)
		}
		if err != nil {
			return err
		}
		word = w.next()
	}
	if err := c.readPgTime(word, &w); err != nil {
		return err
	}
	if word = w.next(); word != "" {
		return w.refuse(word, "nothing may follow the time")
	}
	r.start = epoch
	if year == 0 {
		r.includes = []recur{c}
		return nil
	}
	return r.onceInYear(year, c)
}

// readPgTime reads H:NN or NN.
func (r *recur) readPgTime(word string, w *words) error {
	hour, minute, timed := strings.Cut(word, ":")
	if !timed {
		hour, minute = "", word
	}
	m, ok := digitsOf(minute)
	if !ok || len(minute) != 2 || m > 59 {
		return w.refuse(word, "a time is H:NN, or NN for that minute of every hour")
	}
	r.minutes = 1 << m
	if !timed {
		r.freq = hourly
		return nil
	}
	h, ok := digitsOf(hour)
	if !ok || len(hour) > 2 || h > 23 {
		return w.refuse(word, "an hour is 0-23")
	}
	r.hours = 1 << h
	return nil
}

func (r *recur) readPgWeekday(word string, w *words) error {
	if len(word) != 1 || word[0] < '0' || word[0] > '7' {
		return w.refuse(word, "a weekday is 1-7 from Monday, or 0 for Sunday")
	}
	r.wdays = 1 << ((word[0] - '0' + 6) % 7)
	return nil
}

// readPgDate reads [[YYYY.]M.]D; the year is 0 if there is none.
func (r *recur) readPgDate(word string, w *words) (year int, err error) {
	parts := strings.Split(word, ".")
	const allowed = "a day is D, M.D or YYYY.M.D with M 1-12 and D 1-31, or -1 to -28 from the month's end"
	if len(parts) > 3 {
		return 0, w.refuse(word, allowed)
	}
	day, negative := strings.CutPrefix(parts[len(parts)-1], "-")
	d, ok := digitsOf(day)
	if !ok || len(day) > 2 || d < 1 || d > 31 || negative && d > 28 {
		return 0, w.refuse(word, allowed)
	}
	if negative {
		r.nmdays = 1 << d
	} else {
		r.mdays = 1 << d
	}
	if len(parts) > 1 {
		text := parts[len(parts)-2]
		m, ok := digitsOf(text)
		if !ok || len(text) > 2 || m < 1 || m > 12 {
			return 0, w.refuse(word, allowed)
		}
		r.months = 1 << m
	}
	if len(parts) > 2 {
		if year, ok = digitsOf(parts[0]); !ok || len(parts[0]) != 4 || year < firstYear {
			return 0, w.refuse(word, allowed)
		}
	}
	return year, nil
}

// onceInYear limits the rule to a year: the rule starts and ends with that year.
func (r *Rule) onceInYear(year int, c recur) error {
	month := (&dayFilter{months: c.months, mdays: c.mdays, nmdays: c.nmdays}).days(year*12 + firstBit(c.months) - 1)
	if month == 0 {
		return neverFires("%d has no day %s", year, strings.TrimPrefix(c.dayText(), ";"))
	}
	r.start = joinCivil(dayOf(year, 1, 1), 0)
	end := joinCivil(dayOf(year+1, 1, 1), 0) - 1
	c.until = withinCalendar(r.zone.resolve(end, policy{last: true}))
	r.includes = []recur{c}
	return nil
}

func firstBit(set uint16) (n int) {
	for n = 0; set>>n&1 == 0; n++ {
	}
	return n
}

// dayText writes the month and day of a rule, for a message.
func (r *recur) dayText() string {
	var b strings.Builder
	writeBits(&b, ";BYMONTH=", uint64(r.months), 0)
	writeBits(&b, ";BYMONTHDAY=", uint64(r.mdays), uint64(r.nmdays))
	return b.String()
}

// parseElapsed reads what follows I: [[DAYS] H:]NN.
func (r *Rule) parseElapsed(in *input, w *words) error {
	const allowed = "an interval is NN minutes, H:NN with H 0-23 and NN 00-59, or DAYS H:NN, as `I 2 3:04` is 2 days, 3 hours and 4 minutes"
	const most = 1<<31 - 1 // minutes
	word, days := w.next(), 0
	dated := w.peek() != "" && !strings.Contains(word, ":")
	if dated {
		var ok bool
		if days, ok = digitsOf(word); !ok || days > most/(24*60)-1 {
			return w.refuse(word, allowed)
		}
		word = w.next()
	}
	hour, minute, timed := strings.Cut(word, ":")
	if !timed && !dated {
		hour, minute = "0", word
	}
	h, ok1 := digitsOf(hour)
	m, ok2 := digitsOf(minute)
	if !ok1 || !ok2 || len(hour) > 2 || h > 23 || len(minute) != 2 || m > 59 {
		return w.refuse(word, allowed)
	}
	if extra := w.next(); extra != "" {
		return w.refuse(extra, "nothing may follow the interval")
	}
	c := recur{freq: minutely, interval: (days*24+h)*60 + m, until: noUntil}
	switch {
	case c.interval == 0:
		return w.refuse(word, "an interval has a length: at least 0:01")
	case h == 0 && m == 0:
		c.freq, c.interval = daily, days
	case m == 0:
		c.freq, c.interval = hourly, days*24+h
	}
	r.zone = utc
	r.start = r.creation(in)
	r.includes = []recur{c}
	return nil
}
