package rules

import (
	"strings"
)

// describeCron describes the times of a cron rule, and its days field by field.
// The letters and signs of these fields (L, W, #) become several RRULEs, and a
// description of those would say less.
func (r *Rule) describeCron() string {
	text := r.source
	if text[0] == '@' {
		text = cronMacros[strings.ToLower(text)]
	}
	fields := strings.Fields(text)
	fields = fields[len(fields)-5:]
	c := r.includes[0]
	s := c.timePhrase(0)
	month, week := cronMonthDays(fields[2]), cronWeekDays(fields[4])
	switch {
	case month == "" && week == "":
		if c.hours != 0 {
			s += " every day"
		}
	case month == "" || week == "":
		s += " on " + month + week
	case open(fields[2]) || open(fields[4]):
		s += " on " + month + ", if that is " + week
	default:
		s += " on " + month + ", or on " + week
	}
	if spec, err := readCron(&input{text: r.source, seed: r.seed}); err == nil && spec.months != 1<<13-2 {
		s += " in " + monthPhrase(spec.months)
	}
	return r.sentence(s)
}

// cronMonthDays puts the day-of-month field in words; "" if it admits all.
func cronMonthDays(field string) string {
	if field == "*" || field == "?" {
		return ""
	}
	var list []string
	var plain []string
	for item := range strings.SplitSeq(strings.ToUpper(field), ",") {
		number, near := strings.CutSuffix(item, "W")
		switch {
		case item == "L":
			list = append(list, "the last day of the month")
		case item == "LW":
			list = append(list, "the last Monday to Friday of the month")
		case near:
			n, _ := digitsOf(number)
			list = append(list, "the Monday to Friday nearest to the "+ordinal(n))
		case strings.Contains(item, "~"):
			list = append(list, "days chosen by the schedule's name ("+item+")")
		default:
			plain = append(plain, item)
		}
	}
	if len(plain) > 0 {
		var set uint64
		for _, item := range plain {
			part, _ := cronDay.item(item, 0, &input{})
			set |= part
		}
		list = append([]string{monthDayPhrase(uint32(set), 0) + " of the month"}, list...)
	}
	return andList(list)
}

// cronWeekDays puts the day-of-week field in words; "" if it admits all.
func cronWeekDays(field string) string {
	if field == "*" || field == "?" {
		return ""
	}
	var list []string
	var plain uint8
	for item := range strings.SplitSeq(strings.ToUpper(field), ",") {
		name, nth, numbered := strings.Cut(item, "#")
		day, last := strings.CutSuffix(item, "L")
		switch {
		case numbered:
			w, _ := cronWeekday.number(name, 0)
			n, _ := digitsOf(nth)
			list = append(list, "the "+ordinal(n)+" "+weekdayName((w+6)%7)+" of the month")
		case last && len(day) == 1:
			list = append(list, "the last "+weekdayName((int(day[0]-'0')+6)%7)+" of the month")
		case strings.Contains(item, "~"):
			list = append(list, "a weekday chosen by the schedule's name ("+item+")")
		default:
			set, _ := cronWeekday.item(item, 0, &input{})
			plain |= fromSunday(set)
		}
	}
	if plain == workdays {
		list = append([]string{"Monday to Friday"}, list...)
	} else {
		list = append(weekdayList(plain), list...)
	}
	return andList(list)
}
