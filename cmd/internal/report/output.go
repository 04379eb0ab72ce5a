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

// usualWidth is that of a terminal that does not tell its own.
const usualWidth = 80

// Output is where a command prints facts. A terminal has a width, which tables keep to. Into a file or a
// pipe everything is printed in full, because the next reader may be a program.
type Output struct {
	*bufio.Writer
	Width  int  // of the terminal; 0: there is none
	Colour bool // the terminal has colours, and its user wants them
}

// To returns the output that leads to w. Where that is a terminal, the environment may ask for a width
// (COLUMNS), and for no colours (NO_COLOR, TERM=dumb).
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

// IsTerminal reports whether a person sees at once what is written to w.
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

// shown is the zone in which times are shown to people; nil: that of this machine.
var shown atomic.Pointer[time.Location]

// In makes times appear in a zone, from now on.
func In(zone *time.Location) { shown.Store(zone) }

// Zone is the zone in which times are shown to people, and in which they write them.
func Zone() *time.Location {
	if z := shown.Load(); z != nil {
		return z
	}
	return time.Local
}

// Instant is a time as it is shown to people: in their zone, with the offset from UTC, or Z. The zero time
// is shown as nothing.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(Zone()).Format("2006-01-02T15:04:05Z07:00")
}
