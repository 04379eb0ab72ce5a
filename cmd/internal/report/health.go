package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Level is the verdict of check, and the exit code of a monitoring plugin.
type Level int

// The levels.
const (
	OK Level = iota
	Warning
	Critical
	Unknown
)

func (l Level) String() string { return [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[l] }

// MarshalText makes JSON hold the word.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Health is what check finds.
type Health struct {
	Level    Level          `json:"level"`
	Problems []string       `json:"problems"`
	Now      time.Time      `json:"now,omitzero"`       // by the clock of the database
	Trigger  string         `json:"trigger,omitempty"`  // of the last pass
	LastPass time.Time      `json:"last_pass,omitzero"` // zero: none is on record
	Jobs     int            `json:"jobs"`
	Overdue  store.Duration `json:"overdue"` // the longest
	Failing  int            `json:"failing"`
	Parked   int            `json:"parked"`
	Running  int            `json:"running"` // runs
	Unknown  string         `json:"error,omitempty"`
	// Calendars that schedules keep, and that have to be renewed, each with the problem.
	Calendars []string `json:"calendars,omitempty"`

	latest, failing, parked string // a job of each kind
}

// Add counts a job. One that is disabled or paused is only a job.
func (h *Health) Add(j store.JobStatus) {
	h.Jobs++
	h.Running += j.RunsRunning
	if j.Disabled || j.Paused != nil {
		return
	}
	if j.Overdue > h.Overdue {
		h.Overdue, h.latest = j.Overdue, j.FullName()
	}
	if j.Streak > 0 {
		if h.Failing++; h.failing == "" {
			h.failing = j.FullName()
		}
	}
	if j.Parked != "" {
		if h.Parked++; h.parked == "" {
			h.parked = j.FullName()
		}
	}
}

// AddCalendars looks for calendars that schedules keep and that have to be renewed.
func (h *Health) AddCalendars(list []store.Calendar) {
	for i := range list {
		if why := Outdated(&list[i], h.Now); why != "" && list[i].Schedules > 0 {
			h.Calendars = append(h.Calendars, "calendar "+list[i].Name+": "+why)
		}
	}
}

// Judge finds the level, with the problems, the worst first.
func (h *Health) Judge(lastPass, overdue time.Duration) {
	h.Problems = []string{}
	find := func(l Level, format string, args ...any) {
		h.Level = max(h.Level, l)
		h.Problems = append(h.Problems, fmt.Sprintf(format, args...))
	}
	switch age := h.Now.Sub(h.LastPass).Truncate(time.Second); {
	case h.Unknown != "":
		find(Unknown, "%s", h.Unknown)
		return
	case h.LastPass.IsZero():
		find(Critical, "no pass of a tick is on record")
	case age > lastPass:
		find(Critical, "the last pass was %s ago", store.Duration(age))
	}
	if late := time.Duration(h.Overdue); late > overdue {
		find(Critical, "job %s is overdue by %s", h.latest, store.Duration(late.Truncate(time.Second)))
	}
	if h.Parked > 0 {
		find(Warning, "%s", some(h.Parked, h.parked, "parked"))
	}
	if h.Failing > 0 {
		find(Warning, "%s", some(h.Failing, h.failing, "failing"))
	}
	for _, problem := range h.Calendars {
		find(Warning, "%s", problem)
	}
}

func some(n int, first, what string) string {
	if n == 1 {
		return "job " + first + " is " + what
	}
	return fmt.Sprintf("%d jobs are %s, such as %s", n, what, first)
}

// Print writes the line of a monitoring plugin: the verdict, and the figures after a sign |.
func (h *Health) Print(w io.Writer) error {
	text := strings.Join(h.Problems, "; ")
	if h.Level == OK {
		text = fmt.Sprintf("the last pass was %s ago; %s", store.Duration(h.Now.Sub(h.LastPass).Truncate(time.Second)), Plural(h.Jobs, "job"))
	}
	text = strings.ReplaceAll(Line(text), "|", "/")
	figures := ""
	if h.Unknown == "" {
		age := ""
		if !h.LastPass.IsZero() {
			age = fmt.Sprintf("last_pass=%ds ", int64(h.Now.Sub(h.LastPass).Seconds()))
		}
		figures = fmt.Sprintf(" | %soverdue=%ds failing=%d parked=%d running=%d jobs=%d", age, int64(time.Duration(h.Overdue).Seconds()), h.Failing, h.Parked, h.Running, h.Jobs)
	}
	_, err := fmt.Fprintf(w, "%s: %s%s\n", h.Level, text, figures)
	return err
}
