// Package ical writes a calendar feed (RFC 5545): text that programs such as Thunderbird, Apple's
// Calendar or Google's subscribe to.
package ical

import (
	"bufio"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/rules"
)

// Event is one VEVENT.
type Event struct {
	rules.Event
	UID         string // the same for the same event in each feed
	Summary     string
	Description string
}

// Feed is a calendar.
type Feed struct {
	Name    string
	Product string // the program that wrote it, with its version
	Made    time.Time
	Events  []Event
}

// Write writes the feed, with the time zones that it uses.
func Write(out io.Writer, f Feed) error {
	w := &writer{w: bufio.NewWriter(out)}
	w.line("BEGIN", "VCALENDAR")
	w.line("VERSION", "2.0")
	w.text("PRODID", "-//dbjobs//"+f.Product+"//EN")
	w.line("CALSCALE", "GREGORIAN")
	w.text("X-WR-CALNAME", f.Name)
	w.line("REFRESH-INTERVAL;VALUE=DURATION", "PT6H")
	w.line("X-PUBLISHED-TTL", "PT6H")
	zones := map[string]bool{utc: true}
	for i := range f.Events {
		if name := f.Events[i].Zone; !zones[name] {
			zones[name] = true
			if err := w.zone(name, firstOf(f.Events, name), f.Made); err != nil {
				return err
			}
		}
	}
	for i := range f.Events {
		w.event(&f.Events[i], f.Made)
	}
	w.line("END", "VCALENDAR")
	return w.w.Flush()
}

// firstOf returns the earliest start of the events of a zone.
func firstOf(list []Event, zone string) (first time.Time) {
	for i := range list {
		if e := &list[i]; e.Zone == zone && (first.IsZero() || e.Start.Before(first)) {
			first = e.Start
		}
	}
	return first
}

const (
	utc     = "UTC"
	wall    = "20060102T150405"
	instant = wall + "Z"
)

func (w *writer) event(e *Event, made time.Time) {
	w.line("BEGIN", "VEVENT")
	w.text("UID", e.UID)
	w.line("DTSTAMP", made.UTC().Format(instant))
	if e.Zone == utc {
		w.line("DTSTART", e.Wall+"Z")
	} else {
		w.line("DTSTART;TZID="+e.Zone, e.Wall)
	}
	w.text("SUMMARY", e.Summary)
	if e.Description != "" {
		w.text("DESCRIPTION", e.Description)
	}
	w.line("TRANSP", "TRANSPARENT") // the event does not make anybody busy
	if e.RRule != "" {
		w.line("RRULE", e.RRule)
	}
	for _, t := range e.Dates {
		w.line("RDATE", t.UTC().Format(instant))
	}
	for _, t := range e.Except {
		if e.Zone == utc {
			w.line("EXDATE", t+"Z")
		} else {
			w.line("EXDATE;TZID="+e.Zone, t)
		}
	}
	w.line("END", "VEVENT")
}

// writer writes content lines. Flush returns the error of a write.
type writer struct{ w *bufio.Writer }

// line writes one content line, in parts of at most 75 octets. A part never ends within a character (§3.1).
func (w *writer) line(name, value string) {
	const most = 75
	text, room := name+":"+value, most
	for len(text) > room {
		n := room
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		_, _ = w.w.WriteString(text[:n] + "\r\n ") // see Flush
		text, room = text[n:], most-1
	}
	_, _ = w.w.WriteString(text + "\r\n") // see Flush
}

var escapes = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", "")

// text writes a line whose value is TEXT (§3.3.11).
func (w *writer) text(name, value string) {
	w.line(name, escapes.Replace(strings.ToValidUTF8(value, "�")))
}
