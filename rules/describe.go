package rules

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// describe says in one English sentence what a rule's recurrences, single
// dates and exceptions mean together.
func (r *Rule) describe() string {
	var list []string
	for i := range r.includes {
		list = append(list, r.describeRecur(&r.includes[i]))
	}
	if n := len(r.rdates); n > 3 {
		list = append(list, fmt.Sprintf("at %d single times, the first %s", n, r.local(r.rdates[0])))
	} else if n > 0 {
		var times []string
		for _, t := range r.rdates {
			times = append(times, r.local(t))
		}
		list = append(list, "at "+andList(times))
	}
	s := strings.Join(list, ", and ")
	for i := range r.excludes {
		s += ", but not " + r.describeRecur(&r.excludes[i])
	}
	if n := len(r.exdates); n > 0 {
		s += ", except " + counted(n, "single time")
	}
	if n := len(r.exdays); n > 0 {
		s += ", not on " + counted(n, "single day")
	}
	return r.sentence(s)
}

// sentence adds the zone, the capital and the full stop.
func (r *Rule) sentence(s string) string {
	return strings.ToUpper(s[:1]) + s[1:] + " (" + r.zone.name + ")."
}

// describeRecur says when one recurrence fires.
func (r *Rule) describeRecur(c *recur) string {
	_, sec := splitCivil(r.start)
	return c.timePhrase(sec) + r.describeDays(c)
}

// describeDays says on which days a recurrence fires, and how long, after its times.
func (r *Rule) describeDays(c *recur) (s string) {
	day, _ := splitCivil(r.start)
	if days := c.dayPhrase(day); days != "" {
		s = " " + days
	}
	if len(c.pos) > 0 {
		s += ", of these the " + ordinals(c.pos) + " of each " + periodNames[c.freq]
	}
	switch start := time.Unix(r.start, 0).UTC().Format("2006-01-02 15:04:05"); {
	case c.interval > 1 || c.freq < daily && c.hours == 0 && r.start != epoch:
		s += ", counted from " + start
	case r.start != epoch:
		s += ", from " + start
	}
	if c.skip != skipOmit {
		s += map[skip]string{skipBackward: ", or the day before where a month lacks the day", skipForward: ", or the day after where a month lacks the day"}[c.skip]
	}
	if c.count > 0 {
		s += ", " + counted(c.count-r.past[c], "time") + " in all"
	}
	if c.until != noUntil {
		s += ", until " + r.local(c.until)
	}
	return s
}

// lengthText returns the length of a period. A length of more than a day in
// minutes is written in days, hours and minutes.
func (r *recur) lengthText() string {
	const day = 24 * 60
	if r.freq != minutely || r.interval <= day {
		return counted(r.interval, periodNames[r.freq])
	}
	return fmt.Sprintf("%s, %s and %s", counted(r.interval/day, "day"), counted(r.interval%day/60, "hour"), counted(r.interval%60, "minute"))
}

var periodNames = [...]string{"second", "minute", "hour", "day", "week", "month", "year"}

// timePhrase says at which times of day, or how often.
func (r *recur) timePhrase(sec int) string {
	k := clockOf(r, sec)
	every := ""
	if r.freq < daily && (r.interval > 1 || r.hours != 0) {
		every = "every " + r.lengthText()
		if r.interval == 1 {
			every = "every " + periodNames[r.freq]
		}
		if r.hours != 0 {
			every += " of the hours " + numbers(uint64(r.hours))
		}
	}
	var s string
	switch {
	case every != "" && r.minutes|r.seconds == 0:
		return every
	case k.size() <= 4:
		var times []string
		for s := k.next(0); s >= 0; s = k.next(s + 1) {
			times = append(times, clockText(s, k.secs != 1))
		}
		if s = "at " + andList(times); r.interval == 1 || r.freq >= daily {
			return s
		}
	default:
		s = r.clockPhrase(&k, every != "")
	}
	if every == "" || s == "" {
		return every + s
	}
	return every + ", " + s
}

// clockPhrase writes the seconds, the minutes and the hours of a clock. If the text before it says how often, it leaves out
// what that text says.
func (r *recur) clockPhrase(k *clock, often bool) string {
	var list []string
	switch {
	case k.secs == allSixties && !(often && r.freq == secondly):
		list = append(list, "every second")
	case k.secs != allSixties && k.secs != 1:
		list = append(list, plural("second", k.secs)+" "+numbers(k.secs))
	}
	switch {
	case k.minutes != allSixties:
		list = append(list, plural("minute", k.minutes)+" "+numbers(k.minutes))
	case k.secs != allSixties && !(often && r.freq == minutely):
		list = append(list, "every minute")
	}
	switch {
	case often && (r.hours != 0 || r.freq == hourly): // the text before it has the hours
	case r.hours != 0 || r.freq >= daily:
		list = append(list, plural("hour", uint64(k.hours))+" "+numbers(uint64(k.hours)))
	case k.minutes != allSixties:
		list = append(list, "every hour")
	}
	s := strings.Join(list, " of ")
	if s != "" && !strings.HasPrefix(s, "every") {
		s = "at " + s
	}
	return s
}

// dayPhrase says on which days; "" for all.
func (r *recur) dayPhrase(day int) string {
	_, month, mday := dateOf(day)
	f := *r
	if !f.namesDays() {
		switch {
		case f.freq == yearly && f.months == 0:
			f.months, f.mdays = 1<<month, 1<<mday
		case f.freq >= monthly:
			f.mdays = 1 << mday
		case f.freq == weekly:
			f.wdays = 1 << weekdayOf(day)
		}
	}
	var list []string
	if f.freq >= daily && f.interval > 1 {
		list = append(list, "every "+counted(f.interval, periodNames[f.freq]))
	}
	if f.wdays != 0 || len(f.nth) > 0 {
		list = append(list, "on "+f.weekdayPhrase())
	}
	if f.mdays|f.nmdays != 0 {
		list = append(list, "on "+monthDayPhrase(f.mdays, f.nmdays)+" of the month")
	}
	if len(f.yeardays) > 0 {
		list = append(list, "on day "+ordinalsOrList(f.yeardays)+" of the year")
	}
	if len(f.weeks) > 0 {
		list = append(list, "in week "+ordinalsOrList(f.weeks)+" of the year")
	}
	if f.months != 0 {
		list = append(list, "in "+monthPhrase(f.months))
	}
	if len(list) == 0 && f.freq >= daily {
		return "every day"
	}
	return strings.Join(list, " ")
}

func (r *recur) weekdayPhrase() string {
	var list []string
	if r.wdays == workdays {
		list = append(list, "Monday to Friday")
	} else {
		list = append(list, weekdayList(r.wdays)...)
	}
	of := "month"
	if r.freq == yearly && r.months == 0 {
		of = "year"
	}
	for _, n := range r.nth {
		list = append(list, "the "+ordinal(int(n.n))+" "+weekdayName(int(n.wday))+" of the "+of)
	}
	return andList(list)
}

func weekdayList(set uint8) (list []string) {
	for ; set != 0; set &= set - 1 {
		list = append(list, weekdayName(bits.TrailingZeros8(set)))
	}
	return list
}

func weekdayName(w int) string { return strings.ToUpper(weekdayWords[w][:1]) + weekdayWords[w][1:] }

func monthPhrase(set uint16) string {
	var list []string
	for ; set != 0; set &= set - 1 {
		list = append(list, time.Month(bits.TrailingZeros16(set)).String())
	}
	return andList(list)
}

func monthDayPhrase(set, negative uint32) string {
	var list []string
	for ; set != 0; set &= set - 1 {
		list = append(list, ordinal(bits.TrailingZeros32(set)))
	}
	for ; negative != 0; negative &= negative - 1 {
		list = append(list, ordinal(-bits.TrailingZeros32(negative))+" day")
	}
	if len(list) > 8 {
		return fmt.Sprintf("%d days, the %s to the %s,", len(list), list[0], list[len(list)-1])
	}
	return "the " + andList(list)
}

// ordinal writes 1st, 2nd, last, 2nd last.
func ordinal(n int) string {
	if n == -1 {
		return "last"
	}
	if n < 0 {
		return ordinal(-n) + " last"
	}
	end := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end
}

func ordinals(list []int16) string {
	var out []string
	for _, n := range list {
		out = append(out, ordinal(int(n)))
	}
	return andList(out)
}

func ordinalsOrList(list []int16) string {
	if len(list) > 8 {
		return fmt.Sprintf("%d to %d (%d of them)", list[0], list[len(list)-1], len(list))
	}
	var out []string
	for _, n := range list {
		out = append(out, strconv.Itoa(int(n)))
	}
	return andList(out)
}

// numbers writes a set as "0", "0 and 30", "0 to 5 and 20 to 23" or, if all its numbers have the same distance, as
// "0, 7, 14, …, 56".
func numbers(set uint64) string {
	var all []int
	even := true
	for rest := set; rest != 0; rest &= rest - 1 {
		all = append(all, bits.TrailingZeros64(rest))
		n := len(all)
		even = even && (n < 3 || all[n-1]-all[n-2] == all[1]-all[0])
	}
	n := len(all)
	if even && n > 6 && all[1]-all[0] > 1 {
		return fmt.Sprintf("%d, %d, %d, …, %d", all[0], all[1], all[2], all[n-1])
	}
	var out []string
	for i := 0; i < n; {
		j := i
		for j+1 < n && all[j+1] == all[j]+1 {
			j++
		}
		if j-i >= 2 {
			out = append(out, fmt.Sprintf("%d to %d", all[i], all[j]))
			i = j + 1
			continue
		}
		out = append(out, strconv.Itoa(all[i]))
		i++
	}
	return andList(out)
}

func plural(word string, set uint64) string {
	if set&(set-1) == 0 {
		return word
	}
	return word + "s"
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

func clockText(sec int, seconds bool) string {
	s := fmt.Sprintf("%02d:%02d", sec/3600, sec/60%60)
	if seconds {
		s += fmt.Sprintf(":%02d", sec%60)
	}
	return s
}

func andList(list []string) string {
	switch n := len(list); n {
	case 0:
		return ""
	case 1:
		return list[0]
	default:
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
}
