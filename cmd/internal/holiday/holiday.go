// Package holiday reads the days of a calendar from a file. The file has a line for each day, as in a manifest, or
// the whole-day events of an iCalendar file (RFC 5545), as authorities publish them.
package holiday

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dbjobs/dbjobs/rules"
)

// years is for how many years ahead the days of recurring events are listed.
const years = 10

// most is the size, in bytes, of the largest file that is read.
const most = 4 << 20

// ReadFile reads the days in the file with this name, which it opens with open. Its errors contain the name.
func ReadFile(name string, open func(string) (io.ReadCloser, error), now time.Time) ([]string, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, fmt.Errorf("%s is longer than %d bytes", name, most)
	}
	days, err := read(data, now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return days, nil
}

// read reads the content of a file, and returns the days in the form that package rules reads. For a recurring event, it returns
// a day of each year, or the days of the last year, of this one, and of the years to come: of whole years, so that a calendar does
// not change with each apply of the same file.
func read(data []byte, now time.Time) ([]string, error) {
	text := string(bytes.TrimPrefix(data, []byte("\ufeff")))
	if strings.TrimSpace(text) == "" { // as a download that failed leaves it
		return nil, fmt.Errorf("the file is empty; a file without days needs a remark, such as # none")
	}
	if !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(text)), "BEGIN:VCALENDAR") {
		return lines(text)
	}
	return events(text, now)
}

// lines returns the lines of a text that have days.
func lines(text string) (days []string, err error) {
	if _, err := rules.ParseCalendar("", "", text); err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			days = append(days, line)
		}
	}
	return days, nil
}

// event is one VEVENT while it is read.
type event struct {
	line             int // of its BEGIN
	name             string
	start, end       time.Time
	length           int // in days, from DURATION; 0: not given
	recurs           []string
	cancelled, moved bool // moved: it is one day of a series
}

// events reads an iCalendar file.
func events(text string, now time.Time) ([]string, error) {
	var days []string
	var e *event
	inner := 0 // components within the event, such as an alarm
	ended := false
	for _, l := range unfolded(text) {
		name, params, value := property(l.text)
		if strings.EqualFold(value, "VCALENDAR") {
			ended = name == "END"
		}
		switch {
		case name == "BEGIN" && strings.EqualFold(value, "VEVENT"):
			e, inner = &event{line: l.number}, 0
		case name == "BEGIN" && e != nil:
			inner++
		case name == "END" && e != nil && inner > 0:
			inner--
		case name == "END" && e != nil:
			list, err := e.days(now)
			if err != nil {
				return nil, fmt.Errorf("the event in line %d (%s): %w", e.line, e.name, err)
			}
			days, e = append(days, list...), nil
		case e != nil && inner == 0:
			if err := e.read(name, params, value); err != nil {
				return nil, fmt.Errorf("line %d: %w", l.number, err)
			}
		}
	}
	if !ended { // as a download that broke off leaves it: the days after that would be lost
		return nil, fmt.Errorf("the file ends before END:VCALENDAR, so it is not whole")
	}
	if len(days) == 0 {
		return nil, fmt.Errorf("the file has no whole-day event")
	}
	slices.Sort(days)
	return slices.Compact(days), nil
}

type line struct {
	number int
	text   string
}

// unfolded returns the content lines, RFC 5545 §3.1: a line that begins with a blank continues the line before.
func unfolded(text string) (list []line) {
	n := 0
	var whole strings.Builder // the last line
	for raw := range strings.Lines(text) {
		n++
		raw = strings.TrimRight(raw, "\r\n")
		last := len(list) - 1
		if folded := strings.HasPrefix(raw, " ") || strings.HasPrefix(raw, "\t"); folded && last >= 0 {
			whole.WriteString(raw[1:])
			list[last].text = whole.String()
			continue
		}
		whole.Reset()
		whole.WriteString(raw)
		list = append(list, line{n, raw})
	}
	return list
}

// property divides NAME;PARAMETERS:VALUE.
func property(text string) (name, params, value string) {
	quoted := false
	for i, c := range text {
		if c == '"' {
			quoted = !quoted
		} else if c == ':' && !quoted {
			name, params, _ = strings.Cut(text[:i], ";")
			return strings.ToUpper(name), strings.ToUpper(params), strings.TrimSpace(text[i+1:])
		}
	}
	return strings.ToUpper(text), "", ""
}

func (e *event) read(name, params, value string) (err error) {
	switch name {
	case "SUMMARY":
		e.name = plainText(value)
	case "STATUS":
		e.cancelled = strings.EqualFold(value, "CANCELLED")
	case "RECURRENCE-ID":
		e.moved = true
	case "DTSTART":
		e.start, err = date(name, value)
	case "DTEND":
		e.end, err = date(name, value)
	case "DURATION":
		if e.length = wholeDays(value); e.length <= 0 {
			err = fmt.Errorf("DURATION: found %q, want whole days, as P2D", value)
		}
	case "RRULE", "EXRULE":
		e.recurs = append(e.recurs, name+":"+value)
	case "RDATE", "EXDATE":
		if !strings.Contains(params, "VALUE=DATE") {
			return fmt.Errorf("%s: found %q, want a date; a calendar has whole days", name, value)
		}
		e.recurs = append(e.recurs, name+";VALUE=DATE:"+value)
	}
	return err
}

// wholeDays reads P2D or P1W, and returns 0 for any other text.
func wholeDays(duration string) int {
	text := strings.TrimPrefix(strings.TrimPrefix(duration, "+"), "P")
	for unit, days := range map[string]int{"D": 1, "W": 7} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, _ := strconv.Atoi(number) // 0 if that is no number
			return n * days
		}
	}
	return 0
}

// day is the form of a date in such a file.
const day = "20060102"

// date reads 20261225.
func date(name, value string) (time.Time, error) {
	t, err := time.Parse(day, value)
	if err != nil {
		return t, fmt.Errorf("%s: found %q, want a date as 20261225; a calendar has whole days", name, value)
	}
	return t, nil
}

// eachYear reports whether the event has the same date in each of the years that are listed, and in all that follow: as one day
// of each year, it stays the same.
func (e *event) eachYear(now time.Time) bool {
	return len(e.recurs) == 1 && strings.TrimSuffix(strings.ToUpper(e.recurs[0]), ";INTERVAL=1") == "RRULE:FREQ=YEARLY" && e.start.Before(newYear(now, 0))
}

// newYear returns the first instant of a year, counted from that of an instant.
func newYear(now time.Time, years int) time.Time {
	return time.Date(now.UTC().Year()+years, 1, 1, 0, 0, 0, 0, time.UTC)
}

// days returns the lines for an event.
func (e *event) days(now time.Time) (list []string, err error) {
	if e.moved { // also if it is cancelled: the series has that day
		return nil, fmt.Errorf("RECURRENCE-ID moves or cancels one day of a series, which is not read; write its days as events of their own")
	}
	if e.cancelled {
		return nil, nil
	}
	if e.start.IsZero() {
		return nil, fmt.Errorf("DTSTART is missing")
	}
	length := max(1, e.length)
	if !e.end.IsZero() {
		if e.end.Before(e.start) { // one of them is wrong, so days may be missing
			return nil, fmt.Errorf("DTEND %s is before DTSTART %s; DTEND is the day after the last day", e.end.Format(day), e.start.Format(day))
		}
		length = max(1, int(e.end.Sub(e.start)/(24*time.Hour))) // for one day, some programs write the same day twice
	}
	starts := []time.Time{e.start}
	if length == 1 && e.eachYear(now) {
		return []string{strings.TrimSpace(e.start.Format("01-02") + " " + e.name)}, nil
	}
	if len(e.recurs) > 0 {
		// Calendar programs show DTSTART as a day of the event also if its RRULE does not have that day.
		start := ";VALUE=DATE:" + e.start.Format(day) + "\n"
		text := "DTSTART" + start + "RDATE" + start + strings.Join(e.recurs, "\n")
		r, err := rules.Parse(text, rules.Defaults{})
		if err != nil {
			return nil, err
		}
		if starts, err = r.Between(newYear(now, -1).Add(-1), newYear(now, years+1).Add(-1), 5000); err != nil {
			return nil, err
		}
	}
	for _, t := range starts {
		text := t.Format(time.DateOnly)
		if length > 1 {
			text += ".." + t.AddDate(0, 0, length-1).Format(time.DateOnly)
		}
		list = append(list, strings.TrimSpace(text+" "+e.name))
	}
	return list, nil
}

// plainText returns a TEXT value without its escapes, on one line, and without #, which begins a remark.
func plainText(value string) string {
	value = strings.NewReplacer(`\\`, `\`, `\n`, " ", `\N`, " ", `\,`, ",", `\;`, ";").Replace(value)
	return strings.Join(strings.FieldsFunc(value, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '#' }), " ")
}
