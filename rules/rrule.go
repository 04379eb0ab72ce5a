package rules

import (
	"errors"
	"strings"
)

// The RRULE form: the lines of RFC 5545 that define a recurrence set, DTSTART,
// RRULE, RDATE, EXDATE and the EXRULE of its predecessor, or the value of one
// RRULE alone. Reading is strict where the standard is. The value of an RRULE
// is read in rrulevalue.go.
var rruleForm = form{name: "rrule", claims: claimsRRule, parse: parseRRule, sentence: (*Rule).describe}

func claimsRRule(text string) bool {
	head := strings.ToUpper(text[:min(len(text), 16)])
	for _, p := range [...]string{"DTSTART", "RRULE", "FREQ", "RDATE", "EXDATE", "EXRULE", "X-DBJOBS-", "RSCALE"} {
		if strings.HasPrefix(head, p) {
			return true
		}
	}
	return strings.Contains(strings.ToUpper(text), "FREQ=")
}

// line is one content line, RFC 5545 §3.1: NAME;PARAM=VALUE:value.
type line struct {
	name, value string
	at, valueAt int // where name and value stand
	zone, kind  string
	zoneAt      int
}

// rruleText is what the lines say, before it is put together.
type rruleText struct {
	dtstart                        *line
	rrules, exrules, rdate, exdate []line
	nonexistent, ambiguous         *line
	holidays, workingDays, onDays  *line
}

func parseRRule(r *Rule, in *input) error {
	folds := unfold(in)
	err := readRRule(r, in)
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		for _, f := range folds {
			if e.Pos >= in.at+f.at {
				e.Pos += f.length
			}
		}
	}
	return err
}

// fold is a place where a content line continued on the next line, RFC 5545 §3.1.
type fold struct{ at, length int }

// unfold joins folded lines. It returns the places of the folds, in order, so
// that positions in the joined text can be converted to positions in the original
// text.
func unfold(in *input) (folds []fold) {
	if !strings.Contains(in.text, "\n ") && !strings.Contains(in.text, "\n\t") {
		return nil
	}
	text := make([]byte, 0, len(in.text))
	for i := 0; i < len(in.text); i++ {
		if in.text[i] != '\n' || i+1 == len(in.text) || !isFold(in.text[i+1]) {
			text = append(text, in.text[i])
			continue
		}
		begin := len(text)
		if begin > 0 && text[begin-1] == '\r' {
			begin--
		}
		folds = append(folds, fold{begin, len(text) + 2 - begin})
		text = text[:begin]
		i++ // the blank
	}
	in.text = string(text)
	return folds
}

func isFold(c byte) bool { return c == ' ' || c == '\t' }

func readRRule(r *Rule, in *input) error {
	t, err := readLines(in)
	if err != nil {
		return err
	}
	start, err := t.readStart(r, in)
	if err != nil {
		return err
	}
	if err := t.readPolicy(r); err != nil {
		return err
	}
	if r.includes, err = t.readRecurs(r, t.rrules, start); err != nil {
		return err
	}
	if r.excludes, err = t.readRecurs(r, t.exrules, start); err != nil {
		return err
	}
	if r.rdates, err = t.readDates(r, t.rdate, start); err != nil {
		return err
	}
	if len(t.rrules) == 0 && start != nil {
		r.noteDate(r.start)
	}
	if r.exdates, err = t.readDates(r, t.exdate, start); err != nil {
		return err
	}
	if len(t.rrules) == 0 && start == nil {
		r.startAtDates()
	}
	return t.readCalendar(r)
}

// readLines divides the text and sorts its lines by name.
func readLines(in *input) (*rruleText, error) {
	t := new(rruleText)
	text := in.text
	if !strings.ContainsAny(text, ":\n") {
		text = "RRULE:" + text
	}
	shift := in.at + len(in.text) - len(text)
	for at := 0; at < len(text); {
		raw, _, _ := strings.Cut(text[at:], "\n")
		begin := at
		at += len(raw) + 1
		if raw = strings.TrimRight(raw, "\r"); raw == "" {
			continue
		}
		l, err := readLine(raw, begin+shift)
		if err != nil {
			return nil, err
		}
		if err := t.add(l); err != nil {
			return nil, err
		}
	}
	if len(t.rrules)+len(t.rdate) == 0 && t.dtstart == nil {
		return nil, refuse("rrule", in.at, in.text, "a recurrence set needs an RRULE, RDATE or DTSTART line")
	}
	return t, nil
}

func readLine(raw string, at int) (line, error) {
	head, value, ok := strings.Cut(raw, ":")
	if !ok {
		return line{}, refuse("rrule", at, raw, "a line is NAME:value or NAME;PARAM=VALUE:value")
	}
	l := line{value: value, at: at, valueAt: at + len(head) + 1}
	name, params, more := strings.Cut(head, ";")
	l.name = strings.ToUpper(name)
	pos := at + len(name) + 1
	for more {
		var param string
		param, params, more = strings.Cut(params, ";")
		key, v, _ := strings.Cut(param, "=")
		switch key = strings.ToUpper(key); {
		case key == "TZID" && v != "" && l.zone == "":
			l.zone, l.zoneAt = strings.Trim(v, `"`), pos+5
		case key == "VALUE" && l.kind == "" && (strings.EqualFold(v, "DATE") || strings.EqualFold(v, "DATE-TIME")):
			l.kind = strings.ToUpper(v)
		default:
			return line{}, refuse("rrule", pos, param, "allowed once each: TZID=an IANA zone, VALUE=DATE-TIME or VALUE=DATE")
		}
		pos += len(param) + 1
	}
	return l, nil
}

// add stores a line by its name.
func (t *rruleText) add(l line) error {
	once := func(p **line) error {
		if *p != nil {
			return refuse("rrule", l.at, l.name, "%s may stand once", l.name)
		}
		*p = &l
		return nil
	}
	dated := false
	var err error
	switch l.name {
	case "DTSTART":
		dated, err = true, once(&t.dtstart)
	case "RDATE":
		dated, t.rdate = true, append(t.rdate, l)
	case "EXDATE":
		dated, t.exdate = true, append(t.exdate, l)
	case "RRULE":
		t.rrules = append(t.rrules, l)
	case "EXRULE":
		t.exrules = append(t.exrules, l)
	case xNonexistent:
		err = once(&t.nonexistent)
	case xAmbiguous:
		err = once(&t.ambiguous)
	case xHolidays:
		err = once(&t.holidays)
	case xWorkingDays:
		err = once(&t.workingDays)
	case xOnHoliday:
		dated, err = l.kind == "", once(&t.onDays)
	default:
		return refuse("rrule", l.at, l.name, "allowed lines: DTSTART, RRULE, RDATE, EXDATE, EXRULE, %s, %s", xNonexistent, xAmbiguous)
	}
	if err == nil && !dated && (l.zone != "" || l.kind != "") {
		err = refuse("rrule", l.at, l.name, "%s takes no parameters", l.name)
	}
	return err
}

// readStart sets the rule's zone and DTSTART. Without a DTSTART line, DTSTART is
// the creation instant in the default zone, or the earliest of single dates; then
// readStart returns nil.
func (t *rruleText) readStart(r *Rule, in *input) (*stamp, error) {
	if t.dtstart == nil {
		if len(t.rrules) > 0 {
			r.start = r.creation(in)
		}
		return nil, nil
	}
	l := t.dtstart
	s, err := l.stamp(l.value, l.valueAt)
	if err != nil {
		return nil, err
	}
	if s.utc {
		r.zone = utc
	}
	if l.zone != "" {
		if r.zone, err = l.readZone(); err != nil {
			return nil, err
		}
	}
	r.start = s.civil
	if l.zone != "" && !s.date {
		s.utc = true // for UNTIL: an absolute time, RFC 5545 §3.3.10
	}
	return &s, nil
}

// creation returns the instant at which a rule without a start begins, on the
// wall clock of its zone. It is the Unix epoch if no start was given.
func (r *Rule) creation(in *input) int64 {
	in.made = true
	if in.start.IsZero() {
		return r.zone.civil(0)
	}
	return min(max(r.zone.civil(in.start.Unix()), firstCivil), endCivil-1)
}

func (l *line) readZone() (*zone, error) {
	z, err := zoneNamed(l.zone)
	if err != nil {
		return nil, refuse("rrule", l.zoneAt, l.zone, "%v", err)
	}
	return z, nil
}

// stamp reads one value of a DTSTART, RDATE or EXDATE line.
func (l *line) stamp(value string, at int) (stamp, error) {
	s, err := readStamp("rrule", at, value)
	if err != nil {
		return s, err
	}
	if s.date && l.kind != "DATE" || !s.date && l.kind == "DATE" {
		return s, refuse("rrule", at, value, "a date needs VALUE=DATE, a time does without")
	}
	if s.utc && l.zone != "" {
		return s, refuse("rrule", at, value, "a time has a TZID or ends in Z, not both (RFC 5545 §3.2.19)")
	}
	return s, nil
}

func (t *rruleText) readPolicy(r *Rule) error {
	nonexistent, ambiguous := r.policy.names()
	for _, l := range []*line{t.nonexistent, t.ambiguous} {
		if l == nil {
			continue
		}
		p := &nonexistent
		if l == t.ambiguous {
			p = &ambiguous
		}
		if *p = strings.ToLower(l.value); *p == "" {
			*p = "nothing"
		}
		if _, err := policyNamed(nonexistent, ambiguous); err != nil {
			return refuse("rrule", l.valueAt, l.value, "%v", err)
		}
	}
	r.policy, _ = policyNamed(nonexistent, ambiguous)
	return nil
}

// readCalendar reads the lines that Rule.String wrote for a calendar.
func (t *rruleText) readCalendar(r *Rule) error {
	if t.onDays == nil {
		for _, l := range []*line{t.holidays, t.workingDays} {
			if l != nil {
				return refuse("rrule", l.at, l.name, "%s needs %s", l.name, xOnHoliday)
			}
		}
		return nil
	}
	l, c, z := t.onDays, new(Calendar), r.zone
	var err error
	if l.zone != "" {
		if z, err = l.readZone(); err != nil {
			return err
		}
	}
	if l = t.workingDays; l != nil {
		work, err := parseWeekdays(l.value)
		if err != nil {
			return refuse("rrule", l.valueAt, l.value, "%v", err)
		}
		c.rest = ^work & everyDay
	}
	if l = t.holidays; l != nil {
		err = c.readText(l.value)
	} else {
		l = t.onDays
	}
	if err == nil {
		err = c.settle()
	}
	if err == nil {
		err = r.setCalendar(c, strings.ToLower(t.onDays.value), z)
	}
	if err != nil {
		return refuse("rrule", l.valueAt, l.value, "%v", err)
	}
	return nil
}

// readDates reads the values of RDATE or EXDATE lines. A date in an RDATE means
// midnight. A date in an EXDATE means the whole day, unless DTSTART is a date,
// too.
func (t *rruleText) readDates(r *Rule, lines []line, start *stamp) ([]int64, error) {
	var list []int64
	for _, l := range lines {
		z := r.zone
		if l.zone != "" {
			var err error
			if z, err = l.readZone(); err != nil {
				return nil, err
			}
		}
		at := l.valueAt
		for value := range strings.SplitSeq(l.value, ",") {
			s, err := l.stamp(value, at)
			if err != nil {
				return nil, err
			}
			if s.date && l.name == "EXDATE" && (start == nil || !start.date) { // the whole day
				day, _ := splitCivil(s.civil)
				r.exdays = append(r.exdays, day)
				at += len(value) + 1
				continue
			}
			if start != nil && s.date != start.date {
				return nil, refuse("rrule", at, value, "%s is of the kind of DTSTART, both dates or both times", l.name)
			}
			some := []int64{s.civil}
			if !s.utc {
				some = z.readings(s.civil, r.policy)
			}
			if l.name == "EXDATE" && !s.utc && z == r.zone && r.skips(s.civil) {
				some = nil // another time may be at that instant
			}
			switch {
			case l.name != "RDATE":
			case !s.utc && z == r.zone:
				r.noteDate(s.civil)
			default:
				r.noteInstants(some)
			}
			list = append(list, some...)
			at += len(value) + 1
		}
	}
	return list, nil
}

func (t *rruleText) readRecurs(r *Rule, lines []line, start *stamp) ([]recur, error) {
	var list []recur
	for i := range lines {
		p := recurReader{line: &lines[i], start: start, zone: r.zone}
		c, err := p.read()
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}
