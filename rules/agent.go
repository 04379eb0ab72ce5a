package rules

import (
	"fmt"
	"strings"
)

// The calendar form, after the schedules of SQL Server Agent:
//
//	daily | weekly on LIST | monthly on DAYS | monthly on the ORD WHAT
//	every N days | every N weeks on LIST | every N months on DAYS | every N months on the ORD WHAT
//	at H:MM[:SS] | every N UNIT from H:MM[:SS] to H:MM[:SS]
//	[starting DATE]
//
// LIST is weekdays, DAYS is 1-31 and -1 to -28, ORD is first to fourth or last,
// WHAT is a weekday, day, weekday or weekend day, UNIT is shorter than a day.
// DATE bounds the rule from below; weeks count from the Monday of its week,
// months from its month.
var agentForm = form{name: "calendar", claims: claimsAgent, parse: parseAgent, sentence: (*Rule).describeAgent}

func claimsAgent(text string) bool {
	w := words{text: text}
	switch w.peek() {
	case "daily", "weekly", "monthly":
		return true
	case "every":
		for w.next(); w.peek() != ""; w.next() {
			switch w.peek() {
			case "at", "on", "every", "from":
				return true
			}
		}
	}
	return false
}

func parseAgent(r *Rule, in *input) error {
	c, x, start, err := readAgent(in)
	if err != nil {
		return err
	}
	r.start, r.includes = start, []recur{c}
	if x != nil {
		r.includes = x.recurs(&c)
	}
	return nil
}

// readAgent reads the days, with the time of the day in them, or a window of times, and the start.
func readAgent(in *input) (c recur, x *window, start int64, err error) {
	w := words{form: "calendar", text: in.text, base: in.at}
	c = recur{interval: 1, until: noUntil}
	if err = c.readAgentPeriod(&w); err == nil {
		err = c.readAgentDays(&w)
	}
	if err == nil {
		x, err = c.readAgentTimes(&w, in.dated)
	}
	if err != nil {
		return c, x, 0, err
	}
	start, given, err := w.starting()
	switch {
	case err != nil:
		return c, x, 0, err
	case given && (start%secondsPerDay != 0 || !endsInDate(in.text)):
		err = w.refuse("", "the start is a DATE here; the time of day follows `at`")
	case !given && c.interval > 1:
		err = w.refuse("", "`every N` with N above 1 needs `starting YYYY-MM-DD` to count from")
	case !given:
		start = epoch
	case x != nil && x.pastMidnight(): // what is left of the window of the day before is no time
		start += int64(x.from)
	}
	return c, x, start, err
}

// readAgentTimes reads the time of the day, or a window of times. For a rule with a calendar (dated), all times have to be on the dates of
// their days.
func (r *recur) readAgentTimes(w *words, dated bool) (*window, error) {
	if w.take("every") {
		x, err := w.readWindow()
		if err == nil && x.pastMidnight() && (r.freq != daily || r.interval > 1) {
			err = w.refuse(w.text[w.at:w.end], "only `daily` goes past midnight; for these days write one rule `to 23:59:59`, and another one for the days after")
		}
		if err == nil && dated && x.pastMidnight() && x.afterMidnight() <= x.to {
			at := x.afterMidnight()
			err = w.refuse(w.text[w.at:w.end], "a calendar judges each time by its own date, and the times after midnight belong to the day before; "+
				"write two schedules, one `to 23:59:59`, and one `from %s` on the days after", clockText(at, at%60 > 0))
		}
		if err == nil && len(x.recurs(r)) > windowLines {
			err = w.refuse(w.text[w.at:w.end], "these are too many different times; write a number of seconds that fits into a minute or an hour")
		}
		return &x, err
	}
	if !w.take("at") {
		return nil, w.refuse(w.next(), "expected the time of day here: `at H:MM[:SS]`, or `every N UNIT from H:MM to H:MM`")
	}
	sec, err := w.timeOfDay("at")
	r.hours, r.minutes, r.seconds = 1<<(sec/3600), 1<<(sec/60%60), 1<<(sec%60)
	return nil, err
}

// timeOfDay reads H:MM[:SS] after a word.
func (w *words) timeOfDay(after string) (int, error) {
	word := w.next()
	sec, rest, ok := readTime(word, false)
	if ok && rest == "" {
		return sec, nil
	}
	hint := ""
	if clock := ofTwelve(word); clock != "" {
		hint = "; write `" + after + " " + clock + "`"
	} else if strings.Contains(word, ",") {
		hint = "; for several times of a day write a cron rule, as `0 8,12 * * *`"
	}
	return 0, w.refuse(word, "a time is H:MM or H:MM:SS, 0:00 to 23:59:59%s", hint)
}

// describeAgent describes a window as it is written: its recurrences say less.
func (r *Rule) describeAgent() string {
	c, x, _, err := readAgent(&input{text: r.source})
	if err != nil || x == nil {
		return r.describe()
	}
	return r.sentence(x.phrase() + r.describeDays(&c))
}

// ofTwelve returns the time of day that is meant by a text such as 9am or 9:30PM; empty: none is meant.
func ofTwelve(word string) string {
	word = strings.ToLower(word)
	clock, pm := strings.CutSuffix(word, "pm")
	if !pm {
		var am bool
		if clock, am = strings.CutSuffix(word, "am"); !am {
			return ""
		}
	}
	if !strings.Contains(clock, ":") {
		clock += ":00"
	}
	sec, rest, ok := readTime(clock, false)
	if hour := sec / 3600; !ok || rest != "" || hour < 1 || hour > 12 {
		return ""
	}
	if sec %= 12 * 3600; pm {
		sec += 12 * 3600
	}
	if sec%60 > 0 {
		return fmt.Sprintf("%d:%02d:%02d", sec/3600, sec/60%60, sec%60)
	}
	return fmt.Sprintf("%d:%02d", sec/3600, sec/60%60)
}

// endsInDate reports whether the text ends in YYYY-MM-DD, without a time.
func endsInDate(text string) bool {
	return !strings.ContainsAny(text[max(0, len(text)-9):], "Tt:")
}

const daysFirst = "a rule with times of the day repeats by days, weeks or months; for hours, minutes and seconds write no time of day, as in `every 2h`, or write the days first, as in `daily every 2h from 8:00 to 18:00`"

// readAgentPeriod reads daily, weekly, monthly or `every N days|weeks|months`.
func (r *recur) readAgentPeriod(w *words) error {
	word := strings.ToLower(w.next())
	if word == "every" {
		if err := w.refuseOrdinal(); err != nil {
			return err
		}
		amount := w.next()
		if unit, ok := intervalUnit(amount, false); ok && unit < daily || asInterval(amount) != "" {
			return w.refuse(amount, "%s", daysFirst)
		}
		n, ok := digitsOf(amount)
		if !ok || n < 1 || n > 1<<31-1 {
			return w.refuse(w.text[w.at:w.end], "%s", insteadOfEvery(w.text[w.at:w.end]))
		}
		r.interval = n
		word = strings.ToLower(w.next())
	}
	switch word {
	case "daily", "days", "day":
		r.freq = daily
	case "weekly", "weeks", "week":
		r.freq = weekly
	case "monthly", "months", "month":
		r.freq = monthly
	default:
		return w.refuse(w.text[w.at:w.end], "%s", daysFirst)
	}
	return nil
}

// insteadOfEvery is the hint for `every` with a word that is not a number.
func insteadOfEvery(word string) string {
	word = strings.ToLower(word)
	if day, ok := agentWeekday(strings.TrimSuffix(word, "s")); ok {
		return "for one day of each week write `weekly on " + weekdayWords[day] + " at H:MM`"
	}
	switch word {
	case "day":
		return "for each day write `daily at H:MM`"
	case "weekday", "workday", "weekdays", "workdays":
		return "for Monday to Friday write `weekly on mon,tue,wed,thu,fri at H:MM`"
	case "week":
		return "for each week write `weekly on mon at H:MM`, with the days that you want"
	case "month":
		return "for each month write `monthly on 1 at H:MM`, with the days that you want"
	}
	return "after `every` comes a number, as in `every 2 weeks on mon at 8:00 starting 2026-01-05`; or write `daily at 8:00`, `weekly on mon at 8:00`, `monthly on 1 at 8:00`"
}

// readAgentDays reads `on …`, which weeks and months need and days do not take.
func (r *recur) readAgentDays(w *words) error {
	if r.freq == daily {
		return nil
	}
	if !w.take("on") {
		return w.refuse(w.next(), "expected the days here: %s",
			map[frequency]string{weekly: "`on mon,thu`", monthly: "`on 1,15,-1`, or `on the first monday`"}[r.freq])
	}
	if r.freq == weekly {
		return w.list(func(item string) error {
			day, ok := agentWeekday(item)
			if !ok {
				return w.refuse(item, "weekdays: mon … sun or monday … sunday, separated by commas")
			}
			r.wdays |= 1 << day
			return nil
		})
	}
	if w.take("the") {
		return r.readAgentRelative(w)
	}
	return w.list(func(item string) error {
		day, negative := strings.CutPrefix(item, "-")
		n, ok := digitsOf(day)
		if !ok || n < 1 || n > 31 || negative && n > 28 {
			return w.refuse(item, "days: 1 to 31, or -1 to -28 from the month's end, separated by commas; or `the first … fourth|last DAY`")
		}
		if negative {
			r.nmdays |= 1 << n
		} else {
			r.mdays |= 1 << n
		}
		return nil
	})
}

// list reads items separated by commas, with or without blanks around them.
func (w *words) list(item func(string) error) error {
	for more := true; more; {
		word := w.next()
		if word == "" {
			return w.refuse("", "another item of the list must follow the comma")
		}
		body, open := strings.CutSuffix(word, ",")
		for part := range strings.SplitSeq(body, ",") {
			if err := item(strings.ToLower(part)); err != nil {
				return err
			}
		}
		if more = open || strings.HasPrefix(w.peek(), ","); more && !open {
			rest := w.next()
			if rest != "," {
				w.end = w.at + 1 // the comma belongs to no item
			}
		}
	}
	return nil
}

var agentOrdinals = map[string]int16{"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}

// refuseOrdinal refuses a text such as `2nd tuesday` after `every`: to some it is a day of each month, to others a day of each
// second week.
func (w *words) refuseOrdinal() error {
	ahead := *w
	word := strings.ToLower(ahead.next())
	name := map[string]string{"1st": "first", "2nd": "second", "other": "second", "3rd": "third", "4th": "fourth"}[word]
	if name == "" {
		name = word
	}
	n := agentOrdinals[name]
	day, ok := agentWeekday(strings.TrimSuffix(ahead.peek(), "s"))
	if n == 0 || !ok {
		return nil
	}
	found, monthly := ahead.text[ahead.at:ahead.end], "`monthly on the "+name+" "+weekdayWords[day]+" at H:MM`"
	if n < 2 {
		return ahead.refuse(found, "for one day of each month write %s", monthly)
	}
	return ahead.refuse(found, "for a day of each month write %s; for a day of each %s week `every %d weeks on %s at H:MM starting YYYY-MM-DD`",
		monthly, name, n, weekdayWords[day])
}

// readAgentRelative reads ORD WHAT.
func (r *recur) readAgentRelative(w *words) error {
	word := w.next()
	n, ok := agentOrdinals[strings.ToLower(word)]
	if !ok {
		return w.refuse(word, "allowed: first, second, third, fourth, last")
	}
	word = strings.ToLower(w.next())
	switch day, ok := agentWeekday(word); {
	case ok:
		r.nth = []nthDay{{int8(n), int8(day)}}
	case word == "day" && n > 0:
		r.mdays = 1 << n
	case word == "day":
		r.nmdays = 1 << -n
	case word == "weekday":
		r.wdays, r.pos = workdays, []int16{n}
	case word == "weekend" && w.take("day"):
		r.wdays, r.pos = 1<<saturday|1<<sunday, []int16{n}
	default:
		return w.refuse(w.text[w.at:w.end], "allowed: monday … sunday, day, weekday, weekend day")
	}
	return nil
}

var weekdayWords = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// agentWeekday reads a weekday's name, in full or its first three letters.
func agentWeekday(text string) (day int, ok bool) {
	for i, name := range weekdayWords {
		if text == name || text == name[:3] {
			return i, true
		}
	}
	return 0, false
}
