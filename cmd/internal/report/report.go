// Package report prints facts: as a table for people, or as JSON for programs, both from the same struct, so that the
// one cannot tell what the other does not.
//
// Times are UTC to the second, lengths as Go writes them. What comes from a database (names, error texts) is shown on
// one line and cannot steer the terminal.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// JSON writes v, indented, with a line end. An empty list is [], never null.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// List is s, or the empty list that JSON prints as one.
func List[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// table lines up columns. Its first row is the heading.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, heading ...string) *table {
	t := &table{tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.StripEscape)}
	t.row(heading...)
	return t
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		if c == "" {
			c = "-"
		}
		fmt.Fprint(t.w, Line(c))
	}
	fmt.Fprint(t.w, "\n")
}

func (t *table) flush() error { return t.w.Flush() }

// facts is a list of names and values; what is empty is left out.
type facts struct{ w *tabwriter.Writer }

func newFacts(w io.Writer) *facts { return &facts{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)} }

func (f *facts) add(name, value string) {
	if value != "" {
		fmt.Fprintf(f.w, "%s:\t%s\n", name, Line(value))
	}
}

func (f *facts) flush() error { return f.w.Flush() }

// Line makes a text fit one line of a terminal: line ends and tabs become blanks, and what else could steer the
// terminal, or is no UTF-8, is written as an escape.
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
			visible(&b, s[i:i+size], r)
		}
		i += size
	}
	return strings.TrimSpace(b.String())
}

// Lines makes a text of several lines fit a terminal as Line does, but keeps its lines and their blanks.
func Lines(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == '\n' {
			b.WriteByte('\n')
		} else {
			visible(&b, s[i:i+size], r)
		}
		i += size
	}
	return b.String()
}

// visible writes a character as it is or, where it could steer the terminal or is no UTF-8, as an escape.
func visible(b *strings.Builder, raw string, r rune) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case !unicode.IsPrint(r) && r != ' ':
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	default:
		b.WriteString(raw)
	}
}

// Instant is a time as it is shown; the zero time is nothing.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// between is how long something took, to the millisecond.
func between(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return to.Sub(from).Round(time.Millisecond).String()
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
