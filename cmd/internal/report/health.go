package report

import (
	"fmt"
	"io"
	"slices"
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

// MarshalText makes JSON contain the word.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Health is what check finds.
type Health struct {
	Level    Level          `json:"level"`
	Problems []string       `json:"problems"`
	Now      time.Time      `json:"now,omitzero"`       // by the clock of the database
	Trigger  string         `json:"trigger,omitempty"`  // of the last pass
	LastPass time.Time      `json:"last_pass,omitzero"` // zero: no pass is on record
	Jobs     int            `json:"jobs"`
	Overdue  store.Duration `json:"overdue"` // the longest
	Failing  int            `json:"failing"`
	Parked   int            `json:"parked"`
	Running  int            `json:"running"` // runs
	Stuck    int            `json:"stuck"`   // runs
	Longest  store.Duration `json:"longest"` // how long the run that has executed for the longest time has been under way
	Paused   int            `json:"paused"`  // jobs that a pause holds
	Itself   int            `json:"paused_itself"`
	Ahead    int            `json:"ahead_jobs,omitempty"` // jobs that sleep, because the clock of the database was ahead
	Frozen   bool           `json:"frozen"`               // everything is paused
	Unknown  string         `json:"error,omitempty"`
	// PassesHidden says that row security hides the ticks of other logins: that no pass is on record says nothing then.
	PassesHidden bool `json:"passes_hidden,omitempty"`
	// Calendars that schedules use and that need new days, each with the problem.
	Calendars []string `json:"calendars,omitempty"`

	aheadUntil                             time.Time       // the last of Ahead
	passes                                 []store.Trigger // each trigger with its last pass
	latest, failing, parked, stuck, itself string          // one job of each kind, as an example
	longest                                string          // the run of Longest
	stuckFor                               time.Duration
	unseen                                 bool   // no pass is seen that says whether ticks come: those that do may be hidden
	unplanned                              string // the job that has waited for its first pass for the longest time
	unplannedSince                         time.Time
}

// Stand records the state of jobs and runs. While everything is paused, nothing is trouble.
func (h *Health) Stand(st store.Standing, f store.Figures, pauses []store.Pause) {
	h.Now, h.Jobs, h.Running = st.Now, f.Jobs, f.Running
	h.Frozen = slices.ContainsFunc(pauses, func(p store.Pause) bool { return p.Scope == store.ScopeAll })
	if h.Frozen {
		return
	}
	if len(st.Overdue.First) > 0 {
		h.Overdue, h.latest = st.Overdue.First[0].Overdue, st.Overdue.First[0].FullName()
	}
	h.Failing, h.failing = st.Failing.Count, first(st.Failing)
	h.Parked, h.parked = st.Parked.Count, first(st.Parked)
	if h.Stuck = f.Stuck; f.Stuck > 0 {
		h.stuck, h.stuckFor = f.StuckJob, h.Now.Sub(f.StuckSince).Truncate(time.Second)
	}
}

// Execute records the run that has executed for the longest time. A freeze does not stop it.
func (h *Health) Execute(r *store.Run) {
	if r.Begun() {
		h.longest, h.Longest = r.Label(), store.Duration(h.Now.Sub(r.StartedAt).Truncate(time.Millisecond))
	}
}

// Pause records how many jobs are paused, and how many of them have paused themselves, such as first.
func (h *Health) Pause(paused, itself int, first string) {
	if h.Paused = paused; !h.Frozen {
		h.Itself, h.itself = itself, first
	}
}

// first names one of the jobs of a kind; empty: none is known.
func first(k store.Kind) string {
	if len(k.First) == 0 {
		return ""
	}
	return k.First[0].FullName()
}

// AddTrigger records the last pass of a trigger.
func (h *Health) AddTrigger(t *store.Trigger) {
	h.passes = append(h.passes, *t)
	if t.LastAt.After(h.LastPass) {
		h.Trigger, h.LastPass = t.Name, t.LastAt
	}
}

// Hide records that row security hides the ticks of other logins, and the job that has waited for its first pass for the
// longest time: that such a job waits, or is overdue, is then the sign that no tick comes. An old pass of the login's own says
// as little as none.
func (h *Health) Hide(unplanned string, since time.Time) {
	h.PassesHidden, h.unplanned, h.unplannedSince = true, unplanned, since
}

// Sleep records how many jobs were decided while the clock of the database was ahead, and until when they sleep.
func (h *Health) Sleep(jobs int, until time.Time) {
	if !h.Frozen {
		h.Ahead, h.aheadUntil = jobs, until
	}
}

// AddCalendars looks for calendars that schedules use and that need new days.
func (h *Health) AddCalendars(list []store.Calendar) {
	for i := range list {
		if why := needsDays(&list[i], h.Now); why != "" && !h.Frozen {
			h.Calendars = append(h.Calendars, why)
		}
	}
}

// Judge sets the level and the problems, the worst problem first.
func (h *Health) Judge(lastPass, overdue, running time.Duration) {
	h.Problems = []string{}
	find := func(l Level, format string, args ...any) {
		h.Level = max(h.Level, l)
		h.Problems = append(h.Problems, fmt.Sprintf(format, args...))
	}
	h.PassOver(h.Now.Add(lastPass))
	age := h.Now.Sub(h.LastPass).Truncate(time.Second)
	h.unseen = h.PassesHidden && (h.LastPass.IsZero() || age > lastPass)
	switch {
	case h.Unknown != "":
		find(Unknown, "%s", h.Unknown)
		return
	case h.unseen:
		if waits := h.Now.Sub(h.unplannedSince).Truncate(time.Second); h.unplanned != "" && !h.Frozen && waits > lastPass {
			find(Critical, "job %s has waited for its first pass for %s", h.unplanned, store.Duration(waits))
		}
	case h.LastPass.IsZero():
		find(Critical, "no pass of a tick is on record")
	case age > lastPass:
		find(Critical, "the last pass was %s ago", store.Duration(age))
	case age < -lastPass:
		find(Critical, "no tick has come since the clock of the database was set back: the last pass is on record at %s", Instant(h.LastPass))
	}
	if late := time.Duration(h.Overdue); late > overdue {
		find(Critical, "job %s is overdue by %s", h.latest, store.Duration(late.Truncate(time.Second)))
	}
	for i := range h.passes { // one that comes no more is no trouble if another one comes
		if t := &h.passes[i]; t.Error != "" && h.Now.Sub(t.LastAt).Truncate(time.Second) <= lastPass {
			find(Warning, "the last pass of the trigger %s has failed: %s", t.Name, t.Error)
		}
	}
	if h.Ahead > 0 {
		find(Warning, "%s", asleep(h.Ahead, h.aheadUntil))
	}
	if h.Parked > 0 {
		find(Warning, "%s", some(h.Parked, h.parked, "parked"))
	}
	switch {
	case h.Itself == 1:
		find(Warning, "job %s has paused itself", h.itself)
	case h.Itself > 1:
		find(Warning, "%d jobs have paused themselves, such as %s", h.Itself, h.itself)
	}
	if h.Failing > 0 {
		find(Warning, "%s", some(h.Failing, h.failing, "failing"))
	}
	if h.Stuck > 0 {
		of := ""
		if h.stuck != "" {
			of = " of job " + h.stuck
		}
		if h.Stuck == 1 {
			find(Warning, "a run%s has been stuck for %s", of, store.Duration(h.stuckFor))
		} else {
			find(Warning, "%d runs have been stuck, the first one%s for %s", h.Stuck, of, store.Duration(h.stuckFor))
		}
	}
	if long := time.Duration(h.Longest); long > running {
		find(Warning, "run %s has been under way for %s", h.longest, store.Duration(long.Truncate(time.Second)))
	}
	for _, problem := range h.Calendars {
		find(Warning, "%s", problem)
	}
}

// PassOver takes another trigger's last pass, if the latest one lies in the future: a clock that was ahead recorded it, and
// it does not show that ticks come.
func (h *Health) PassOver(future time.Time) {
	if !h.LastPass.After(future) {
		return
	}
	for i := range h.passes {
		if t := &h.passes[i]; !t.LastAt.After(future) && (h.LastPass.After(future) || t.LastAt.After(h.LastPass)) {
			h.Trigger, h.LastPass = t.Name, t.LastAt
		}
	}
}

// asleep says which jobs sleep because the clock of the database was ahead.
func asleep(jobs int, until time.Time) string {
	return fmt.Sprintf("%s will not run before %s, because the clock of the database was ahead: dbjobs job replan plans from now", Plural(jobs, "job"), Instant(until))
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
		text = h.fine()
	}
	text = strings.ReplaceAll(Line(text), "|", "/")
	figures := ""
	if h.Unknown == "" {
		age := ""
		if !h.LastPass.IsZero() {
			age = fmt.Sprintf("last_pass=%ds ", int64(h.Now.Sub(h.LastPass).Seconds()))
		}
		frozen := 0
		if h.Frozen {
			frozen = 1
		}
		figures = fmt.Sprintf(" | %soverdue=%ds failing=%d parked=%d running=%d stuck=%d jobs=%d paused=%d frozen=%d longest=%ds", age,
			int64(time.Duration(h.Overdue).Seconds()), h.Failing, h.Parked, h.Running, h.Stuck, h.Jobs, h.Paused, frozen, int64(time.Duration(h.Longest).Seconds()))
	}
	_, err := fmt.Fprintf(w, "%s: %s%s\n", h.Level, text, figures)
	return err
}

// fine is the text if all is well. It names what is held on purpose.
func (h *Health) fine() string {
	text := Plural(h.Jobs, "job")
	if h.unseen {
		text = "nothing waits for a pass; this login does not see the ticks of others; " + text
	} else {
		text = fmt.Sprintf("the last pass was %s ago; %s", store.Duration(h.Now.Sub(h.LastPass).Truncate(time.Second)), text)
	}
	switch {
	case h.Frozen:
		return "everything is frozen; " + text
	case h.Paused > 0:
		return text + fmt.Sprintf(", %d of them paused", h.Paused)
	}
	return text
}
