package ical

import (
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
)

// ahead is the number of years whose clock changes are examined. A change that comes each year in the same way, up
// to the last of these years, is written as a rule.
const ahead = 12

// local returns the wall time at which a change happens, with the offset before it.
func local(s *rules.Shift) time.Time {
	at := s.At
	if at.IsZero() {
		at = time.Unix(int64(-s.Before), 0).UTC() // 1970 on the wall clock
	}
	return at.Add(time.Duration(s.Before) * time.Second)
}

// zone writes a VTIMEZONE, for times from an instant on.
func (w *writer) zone(name string, first, made time.Time) error {
	last := max(first.Year(), made.Year()) + ahead
	list, err := rules.Shifts(name, first, time.Date(last+1, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return err
	}
	w.line("BEGIN", "VTIMEZONE")
	w.line("TZID", name)
	var order []rules.Shift
	of := map[rules.Shift][]rules.Shift{}
	for _, s := range list {
		kind := s
		kind.At = time.Time{}
		if of[kind] == nil {
			order = append(order, kind)
		}
		of[kind] = append(of[kind], s)
	}
	for _, kind := range order {
		w.observance(of[kind], last)
	}
	w.line("END", "VTIMEZONE")
	return nil
}

// observance writes changes of one kind. Changes that come each year in the same way are a rule, others are dates.
func (w *writer) observance(list []rules.Shift, last int) {
	c, name := &list[0], "STANDARD"
	if c.Summer {
		name = "DAYLIGHT"
	}
	rule := yearly(list, last)
	w.line("BEGIN", name)
	w.line("DTSTART", local(c).Format(wall))
	w.line("TZOFFSETFROM", offset(c.Before))
	w.line("TZOFFSETTO", offset(c.After))
	w.text("TZNAME", c.Name)
	if rule != "" {
		w.line("RRULE", rule)
	} else {
		for i := range list[1:] {
			w.line("RDATE", local(&list[i+1]).Format(wall))
		}
	}
	w.line("END", name)
}

// yearly returns the rule of changes that come in each year up to the last, on the same weekday of a month: the
// nth, or the last one. It returns an empty text if there is no such rule.
func yearly(list []rules.Shift, last int) string {
	first := local(&list[0])
	nth, final := (first.Day()+6)/7, true
	for i := range list {
		t := local(&list[i])
		if t.Year() != first.Year()+i || t.Month() != first.Month() || t.Weekday() != first.Weekday() || t.Format("150405") != first.Format("150405") {
			return ""
		}
		final = final && t.AddDate(0, 0, 7).Month() != t.Month()
		if (t.Day()+6)/7 != nth {
			nth = 0
		}
	}
	switch {
	case len(list) < ahead || local(&list[len(list)-1]).Year() != last:
		return ""
	case final:
		nth = -1
	case nth == 0:
		return ""
	}
	return fmt.Sprintf("FREQ=YEARLY;BYMONTH=%d;BYDAY=%d%s", first.Month(), nth, strings.ToUpper(first.Weekday().String()[:2]))
}

// offset writes seconds east of UTC as +hhmm, or +hhmmss.
func offset(seconds int) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	text := fmt.Sprintf("%c%02d%02d", sign, seconds/3600, seconds/60%60)
	if seconds%60 != 0 {
		text += fmt.Sprintf("%02d", seconds%60)
	}
	return text
}
