// Package report prints facts: as a table for people, or as JSON for programs. Both are made from the same struct,
// so that they contain the same facts.
//
// For people, times are in their zone, to the second, and tables fit their terminal; JSON is in UTC, and in
// full. Durations are written as in Go. Texts from a database (names, errors) are shown on one line and
// cannot control the terminal.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/cmd/internal/visible"
)

// JSON writes v, indented, with a line end. An empty list is [], never null. Characters that could control a
// terminal are written as escapes, also those that JSON would allow as they are.
func JSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(visible.JSON(text.Bytes()))
	return err
}

// List returns s, or an empty list instead of nil, which JSON would print as null.
func List[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// facts is a list of names and values. Empty values are left out. On a terminal, a long value continues on the
// next line, below its beginning.
type facts struct {
	to   io.Writer
	list [][2]string
}

func newFacts(w io.Writer) *facts { return &facts{to: w} }

func (f *facts) add(name, value string) {
	if value = Line(value); value != "" {
		f.list = append(f.list, [2]string{name + ":", value})
	}
}

// flush prints the facts.
func (f *facts) flush() error {
	indent, room := 0, 0
	for _, fact := range f.list {
		indent = max(indent, cells(fact[0])+gap)
	}
	if o, ok := f.to.(*Output); ok && o.Width > 0 {
		room = max(o.Width-indent, 20)
	}
	var b strings.Builder
	for _, fact := range f.list {
		b.WriteString(fact[0] + strings.Repeat(" ", indent-cells(fact[0])))
		for i, line := range wrapped(fact[1], room) {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", indent))
			}
			b.WriteString(paint(f.to, strings.TrimSuffix(fact[0], ":"), line) + "\n")
		}
	}
	_, err := io.WriteString(f.to, b.String())
	return err
}

// wrapped returns the lines of a text. Each has at most room cells, unless a single word is longer. If room is 0,
// the text is one line.
func wrapped(text string, room int) (lines []string) {
	if room == 0 || cells(text) <= room {
		return []string{text}
	}
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && cells(line)+1+cells(word) > room {
			lines, line = append(lines, line), word
		} else if line == "" {
			line = word
		} else {
			line += " " + word
		}
	}
	return append(lines, line)
}

// Line makes a text fit one line of a terminal. Line ends and tabs become blanks. Other characters that
// could control the terminal, and bytes that are not UTF-8, are written as escapes.
func Line(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch r {
		case '\n', '\t', '\r':
			if !strings.HasSuffix(b.String(), " ") {
				b.WriteByte(' ')
			}
		default:
			show(&b, s[i:i+size], r)
		}
		i += size
	}
	return strings.TrimSpace(b.String())
}

// Lines does for a text of several lines what Line does for one. It keeps the line ends and the blanks.
func Lines(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == '\n' {
			b.WriteByte('\n')
		} else {
			show(&b, s[i:i+size], r)
		}
		i += size
	}
	return b.String()
}

// show writes a character as it is. It writes a character that could control the terminal, or that is not UTF-8,
// as an escape.
func show(b *strings.Builder, raw string, r rune) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case !unicode.IsPrint(r) && r != ' ':
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	default:
		b.WriteString(raw)
	}
}

// between is the time from one instant to another, to the millisecond. It is empty if it is not known, as where the database's
// clock was set back in the meantime.
func between(from, to time.Time) string {
	if from.IsZero() || to.Before(from) {
		return ""
	}
	return to.Sub(from).Round(time.Millisecond).String()
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
