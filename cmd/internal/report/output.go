package report

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// usualWidth is the width of a terminal that does not report its own.
const usualWidth = 80

// Output is where a command prints facts. If it is a terminal, it has a width, and tables keep to that width. Into
// a file or a pipe, everything is printed in full, because the next reader may be a program.
type Output struct {
	*bufio.Writer
	Width  int  // of the terminal; 0: there is none
	Colour bool // the terminal has colours, and its user wants them
}

// To returns the output that writes to w. If w is a terminal, the environment may set a width (COLUMNS), or turn
// off colours (NO_COLOR, TERM=dumb).
func To(w io.Writer, env func(name string) (value string, found bool)) *Output {
	o := &Output{Writer: bufio.NewWriter(w)}
	if fd, ok := terminal(w); ok {
		o.Width = usualWidth
		columns, _ := env("COLUMNS")
		if n, err := strconv.Atoi(columns); err == nil && n > 0 {
			o.Width = n
		} else if n, _, err := term.GetSize(fd); err == nil && n > 0 {
			o.Width = n
		}
		unwanted, _ := env("NO_COLOR")
		kind, _ := env("TERM")
		o.Colour = unwanted == "" && kind != "" && kind != "dumb"
	}
	return o
}

// IsTerminal reports whether w is a terminal, so that a person sees at once what is written.
func IsTerminal(w io.Writer) bool {
	_, ok := terminal(w)
	return ok
}

func terminal(w io.Writer) (fd int, ok bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// written is the zone in which people write times; nil: that of this machine.
var written atomic.Pointer[time.Location]

// forPrograms is set if what is shown is for programs.
var forPrograms atomic.Bool

// In sets the zone in which people write times from now on, and in which times are shown to them.
func In(zone *time.Location) { written.Store(zone) }

// Written returns the zone in which people write times.
func Written() *time.Location {
	if z := written.Load(); z != nil {
		return z
	}
	return time.Local
}

// ForPrograms sets whether programs read what is shown from now on: then all times in it are in UTC.
func ForPrograms(is bool) { forPrograms.Store(is) }

// Zone returns the zone in which times are shown.
func Zone() *time.Location {
	if forPrograms.Load() {
		return time.UTC
	}
	return Written()
}

// Instant returns a time as it is shown: in the zone of people, or in UTC for programs, with the offset from UTC, or
// Z. For the zero time, it returns an empty text.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(Zone()).Format("2006-01-02T15:04:05Z07:00")
}
