package rules

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// The cron form: five fields (minute, hour, day of month, month, day of week),
// six with seconds first, or a macro. Day of month and day of week are joined as
// in Vixie cron: by OR, or by AND if one of them begins with * or ?.
var cronForm = form{name: "cron", claims: claimsCron, parse: parseCron, sentence: (*Rule).describeCron}

func claimsCron(text string) bool {
	if text == "" {
		return false
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '*', c == '?', c == '~', c == '@', c == ',', c == '-', c == '/':
		return true
	}
	n := len(strings.Fields(text))
	return (n == 5 || n == 6) && strings.ContainsAny(text, "*?0123456789") && !startsWithWord(text)
}

// startsWithWord reports whether a text begins like one of the other forms.
func startsWithWord(text string) bool {
	word, _, _ := strings.Cut(strings.ToLower(text), " ")
	switch word {
	case "every", "daily", "weekly", "monthly", "at", "d", "w", "i":
		return true
	}
	return false
}

var cronMacros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// cronField has the name of a field and the numbers it admits, low to high. A
// step that begins at a number runs to top. high is above top if a value has a
// second number: Sunday is 0 and 7.
type cronField struct {
	name           string
	low, high, top int
	names          []string // of low, low+1, …
}

var (
	cronSecond  = cronField{name: "second", high: 59, top: 59}
	cronMinute  = cronField{name: "minute", high: 59, top: 59}
	cronHour    = cronField{name: "hour", high: 23, top: 23}
	cronDay     = cronField{name: "day of month", low: 1, high: 31, top: 31}
	cronMonth   = cronField{name: "month", low: 1, high: 12, top: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}}
	cronWeekday = cronField{name: "day of week", high: 7, top: 6, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}
)

// cronSpec is a cron text after it was read.
type cronSpec struct {
	seconds, minutes uint64
	hours            uint32
	months           uint16
	days             cronDays
}

// cronText is one field as it stands in the text.
type cronText struct {
	text string
	at   int
}

func parseCron(r *Rule, in *input) error {
	spec, err := readCron(in)
	if err != nil {
		return err
	}
	r.start = epoch
	if r.includes = spec.recurs(); len(r.includes) == 0 { // finish would read that as a set of DTSTART alone
		return neverFires("no day is in both day fields")
	}
	return nil
}

// readCron divides the text into fields and reads them.
func readCron(in *input) (*cronSpec, error) {
	text := in.text
	if text[0] == '@' {
		macro, ok := cronMacros[strings.ToLower(text)]
		if !ok {
			if strings.EqualFold(text, "@reboot") {
				return nil, refuse("cron", in.at, text, "a start of the machine is no time; for a job that runs at each start, write `on_startup: true` in the job, without a rule")
			}
			if interval, ok := strings.CutPrefix(text, "@every "); ok {
				return nil, refuse("cron", in.at, text, "for an interval write `every %s`", strings.TrimSpace(interval))
			}
			return nil, refuse("cron", in.at, text, "macros: @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly")
		}
		text = macro
	}
	var fields [6]cronText
	n := 0
	for at := 0; at < len(text); {
		if c := text[at]; c == ' ' || c == '\t' {
			at++
			continue
		}
		end := at
		for end < len(text) && text[end] != ' ' && text[end] != '\t' {
			end++
		}
		if n == len(fields) {
			return nil, refuse("cron", in.at+at, text[at:], "a cron text has five fields, or six with seconds first; it has no year: "+
				"leave out a last field *, and bound other years by not_before and not_after of the job")
		}
		fields[n] = cronText{text[at:end], in.at + at}
		n++
		at = end
	}
	list := fields[:n]
	spec := &cronSpec{seconds: 1}
	switch n {
	case 6:
		var err error
		if spec.seconds, err = cronSecond.read(list[0], in); err != nil {
			return nil, err
		}
		list = list[1:]
	case 5:
	default:
		if interval := asInterval(text); interval != "" {
			return nil, refuse("cron", in.at, text, "for an interval write `%s`", interval)
		}
		if _, rest, ok := readTime(text, false); ok && rest == "" {
			return nil, refuse("cron", in.at, text, "for a time of each day write `daily at %s`", text)
		}
		return nil, refuse("cron", in.at+len(text), "", "a cron text has five fields (minute, hour, day of month, month, day of week), "+
			"or six with seconds first; this one has %d", n)
	}
	return spec, spec.read(list, in)
}

// read reads the five fields.
func (s *cronSpec) read(list []cronText, in *input) (err error) {
	if s.minutes, err = cronMinute.read(list[0], in); err != nil {
		return err
	}
	hours, err := cronHour.read(list[1], in)
	if err != nil {
		return err
	}
	s.hours = uint32(hours)
	months, err := cronMonth.read(list[3], in)
	if err != nil {
		return err
	}
	s.months = uint16(months)
	return s.days.read(list[2], list[4], in)
}

// read reads a field that is a list of numbers, ranges and steps.
func (f *cronField) read(t cronText, in *input) (set uint64, err error) {
	at := t.at
	for item := range strings.SplitSeq(t.text, ",") {
		part, err := f.item(item, at, in)
		if err != nil {
			return 0, err
		}
		set |= part
		at += len(item) + 1
	}
	return set, nil
}

// item reads *, a, a-b, ~, a~b, each with or without /step.
func (f *cronField) item(item string, at int, in *input) (uint64, error) {
	head, stepText, stepped := strings.Cut(item, "/")
	lo, hi := f.low, f.top
	var err error
	if from, to, ok := strings.Cut(head, "~"); ok {
		return f.spread(from, to, stepText, stepped, at, in)
	} else if from, to, ok := strings.Cut(head, "-"); ok {
		if lo, err = f.number(from, at); err != nil {
			return 0, err
		}
		if hi, err = f.number(to, at+len(from)+1); err != nil {
			return 0, err
		}
		if f == &cronWeekday && lo > 0 && strings.EqualFold(to, "SUN") {
			hi = f.high // SAT-SUN: Sunday ends the week as 7
		}
		if hi < lo {
			return 0, refuse("cron", at, head, "a range in the %s field runs upward%s", f.name, f.across(from, to, stepped))
		}
	} else if head != "*" {
		if lo, err = f.number(head, at); err != nil {
			return 0, err
		}
		if !stepped || lo > hi {
			hi = lo
		}
	}
	step := 1
	if stepped {
		if step, err = f.step(stepText, at+len(head)+1); err != nil {
			return 0, err
		}
	}
	var set uint64
	for n := lo; n <= hi; n += step {
		set |= 1 << n
	}
	return f.fold(set), nil
}

// across returns what to write for a range that goes on at the begin of the field, such as 22-2. A step has no such text,
// because it would begin anew.
func (f *cronField) across(from, to string, stepped bool) string {
	if stepped {
		return ""
	}
	if n, _ := digitsOf(from); n > f.top { // 7-3: Sunday begins the range as 0
		return "; write `" + strconv.Itoa(f.low) + "-" + to + "`"
	}
	text := func(n int, like string) string {
		if _, number := digitsOf(like); number || f.names == nil {
			return strconv.Itoa(n)
		}
		return f.names[n-f.low]
	}
	bounds := func(a, b string) string {
		if strings.EqualFold(a, b) {
			return a
		}
		return a + "-" + b
	}
	return "; write `" + bounds(from, text(f.top, from)) + "," + bounds(text(f.low, to), to) + "`"
}

// fold makes weekday 7 weekday 0.
func (f *cronField) fold(set uint64) uint64 {
	if f.high > f.top && set>>f.high&1 != 0 {
		return set&^(1<<f.high) | 1
	}
	return set
}

// step reads the number after a slash. A step that is wider than its own range,
// as in 14-15/2, leaves only the first value of the range, as in the source of
// Vixie cron. A step that is wider than the whole field is a mistake.
func (f *cronField) step(text string, at int) (int, error) {
	n, ok := digitsOf(text)
	if !ok || n < 1 || n > f.high {
		return 0, refuse("cron", at, text, "a step in the %s field is 1-%d", f.name, f.high)
	}
	return n, nil
}

// number reads one value of the field, or the name of one.
func (f *cronField) number(text string, at int) (int, error) {
	if n, ok := digitsOf(text); ok && n >= f.low && n <= f.high {
		return n, nil
	}
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.low + i, nil
		}
	}
	if text == "?" {
		return 0, refuse("cron", at, text, "? stands in the two day fields only; %s", withoutYear)
	}
	also := ""
	if f.names != nil {
		also = " or " + f.names[0] + "-" + f.names[len(f.names)-1]
	}
	return 0, refuse("cron", at, text, "the %s is %d-%d%s; also *, ranges a-b, steps */n, lists, and ~ for a value from the schedule's name",
		f.name, f.low, f.high, also)
}

// spread picks a value, or with a step the first of several values, by a hash of
// the schedule's name. The value is the same on every host, and differs between
// fields. A bare ~ for the day of month stays within 1-28, because every month
// has these days.
func (f *cronField) spread(from, to, stepText string, stepped bool, at int, in *input) (uint64, error) {
	lo, hi := f.low, f.top
	if f == &cronDay {
		hi = 28
	}
	var err error
	if from != "" {
		if lo, err = f.number(from, at); err != nil {
			return 0, err
		}
	}
	if to != "" {
		if hi, err = f.number(to, at+len(from)+1); err != nil {
			return 0, err
		}
	}
	if hi < lo || (from == "") != (to == "") {
		return 0, refuse("cron", at, from+"~"+to, "~ stands alone or between two numbers that run upward")
	}
	h := fnv.New32a()
	h.Write([]byte(f.name + "\x00" + in.seed))
	pick, step := int(h.Sum32()%(1<<31-1)), hi-lo+1
	if stepped {
		if step, err = f.step(stepText, at+len(from)+len(to)+2); err != nil {
			return 0, err
		}
	}
	var set uint64
	for n := lo + pick%min(step, hi-lo+1); n <= hi; n += step {
		set |= 1 << n
	}
	return f.fold(set), nil
}

// recurs writes the spec as RRULEs, one for each way to choose its days.
func (s *cronSpec) recurs() []recur {
	base := recur{freq: daily, interval: 1, until: noUntil, minutes: s.minutes, seconds: s.seconds}
	if s.hours == allHours {
		base.freq = hourly
		if s.minutes == allSixties {
			base.freq, base.minutes = minutely, 0
			if s.seconds == allSixties {
				base.freq, base.seconds = secondly, 0
			}
		}
	} else {
		base.hours = s.hours
	}
	const allMonths = 1<<13 - 2
	if s.months != allMonths {
		base.months = s.months
	}
	return s.days.recurs(base)
}
