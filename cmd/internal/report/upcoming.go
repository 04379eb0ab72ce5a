package report

import (
	"fmt"
	"io"

	"github.com/dbjobs/dbjobs/tick"
)

// Upcoming prints the table of upcoming --all: each time.
func Upcoming(w io.Writer, u tick.UpcomingRuns) error {
	t := newTable(w, "AT", "JOB")
	for _, r := range u.Runs {
		t.row(Instant(r.At), r.Job)
	}
	return t.flush()
}

// NextOfEach prints the table of upcoming: each job with its next time.
func NextOfEach(w io.Writer, u tick.UpcomingRuns) error {
	t := newTable(w, "AT", "JOB", "LATER", "SCHEDULE")
	for _, r := range u.Runs {
		later := ""
		switch {
		case r.LaterMore:
			later = fmt.Sprintf("and more than %d", *r.Later)
		case r.Later != nil && *r.Later > 0:
			later = fmt.Sprintf("and %d more", *r.Later)
		}
		t.row(Instant(r.At), r.Job, later, r.Schedule)
	}
	return t.flush()
}
