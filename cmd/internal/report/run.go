package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// Runs prints the table of run list. For a run that still executes, the table shows the time from its start until
// now.
func Runs(w io.Writer, runs []store.Run, now time.Time) error {
	t := newTable(w, "RUN", "SCHEDULED FOR", "STATE", "STARTED", "TOOK", "ID", "ERROR")
	for _, r := range runs {
		took := between(r.StartedAt, r.FinishedAt)
		if r.State == store.Running && !now.IsZero() {
			took = span(now.Sub(r.StartedAt))
		}
		t.row(r.Label(), scheduled(&r), runState(r), Instant(r.StartedAt), took, r.ID, r.Error)
	}
	return t.flush()
}

// Aborted is what job abort did.
type Aborted struct {
	Job      string   `json:"job"`
	Disabled bool     `json:"disabled"`
	Runs     []string `json:"runs"` // ids of the runs that will be cancelled
}

// String returns the same in one line.
func (a Aborted) String() string {
	text := fmt.Sprintf("aborted job %s: cancelling %s", a.Job, Plural(len(a.Runs), "run"))
	if a.Disabled {
		text += "; the job is disabled until dbjobs job enable"
	}
	return text
}

// runState returns the state of a run. If something holds the run back, runState says what.
func runState(r store.Run) string {
	if r.HeldBy != "" {
		return "held by " + r.HeldBy
	}
	return r.State
}

// scheduled is the nominal time of a run, or the event that it was made for.
func scheduled(r *store.Run) string {
	return cmp.Or(Instant(r.ScheduledFor), Origin(r))
}

// Origin returns the event that a run was made for; it is empty for a run of a nominal time.
func Origin(r *store.Run) string {
	switch {
	case !r.ScheduledFor.IsZero():
		return ""
	case r.Predecessor() != "":
		return "after a run"
	case r.Meeting() != "":
		return "after runs"
	case r.StartupID() != "":
		return "at start-up"
	case r.Event() != "":
		return "by a hook"
	}
	return "on request"
}

// Run prints the facts of run show.
func Run(w io.Writer, r store.RunDetail) error {
	f := newFacts(w)
	f.add("run", r.Label())
	f.add("id", r.ID)
	f.add("job", r.Job)
	f.add("owner", r.Owner)
	f.add("state", r.State)
	f.add("held by", holding(&r))
	if r.Queue != tick.OwnQueue {
		f.add("queue", r.Queue)
	}
	f.add("error", r.Error)
	f.add("scheduled for", scheduled(&r.Run))
	f.add("after run", r.Predecessor())
	f.add("after runs", r.Meeting())
	f.add("start-up", r.StartupID())
	f.add("event", r.Event())
	if !r.IntervalEnd.IsZero() {
		f.add("interval", Instant(r.IntervalStart)+" to "+Instant(r.IntervalEnd))
	}
	f.add("arguments", r.Args)
	f.add("made", Instant(r.CreatedAt))
	if r.State == store.Waiting || r.State == store.Queued {
		f.add("ready at", Instant(r.ReadyAt))
	}
	f.add("started", Instant(r.StartedAt))
	f.add("finished", Instant(r.FinishedAt))
	f.add("took", between(r.StartedAt, r.FinishedAt))
	if r.State == store.Running {
		f.add("holder", r.Holder)
		f.add("lease until", Instant(r.LeaseUntil))
	}
	if !r.CancelAt.IsZero() {
		f.add("cancel requested", Instant(r.CancelAt)+" by "+r.CancelBy)
	}
	f.add("deliveries", count(int64(r.Fence)))
	if err := f.flush(); err != nil || len(r.Tries) == 0 {
		return err
	}
	fmt.Fprintln(w)
	if older := r.Attempts - len(r.Tries); older > 0 {
		fmt.Fprintf(w, "%s left out; `dbjobs errors --job %s` shows those that failed\n", Plural(older, "earlier attempt"), Line(r.FullJob()))
	}
	t := newTable(w, "STEP", "TRY", "STATE", "STARTED", "TOOK", "ROWS", "ERROR")
	for _, a := range r.Tries {
		rows := ""
		if a.Rows != nil {
			rows = count(*a.Rows)
		}
		t.row(a.StepName, count(int64(a.Attempt)), a.State, Instant(a.StartedAt), between(a.StartedAt, a.FinishedAt), rows, attemptError(a))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, a := range r.Tries {
		if a.Output != "" {
			fmt.Fprintf(w, "\noutput of %s, try %d:\n%s", Line(a.StepName), a.Attempt, indented(a.Output))
		}
	}
	return nil
}

// holding says what a run waits for, with the pause, or the runs that keep its place.
func holding(r *store.RunDetail) string {
	text := strings.TrimSpace(r.HeldBy + " " + r.Group)
	switch {
	case r.Paused != nil:
		text += ": " + Paused(*r.Paused)
	case len(r.Behind) > 0:
		text += ": " + strings.Join(r.Behind, ", ")
	}
	return text
}

// indented returns the lines of a text, indented, to stand below a heading. The result ends with a line end.
func indented(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(strings.TrimRight(text, "\r\n"))
	return "  " + strings.ReplaceAll(Lines(text), "\n", "\n  ") + "\n"
}

func attemptError(a store.Attempt) string {
	text := a.Error
	if text == "" {
		return ""
	}
	if a.Code != "" && !says(text, a.Code) {
		text += fmt.Sprintf(" (%s)", a.Code)
	}
	if line := fmt.Sprintf("line %d", a.Line); a.Line > 0 && !says(text, line) {
		text += ", " + line
	}
	if a.Detail != "" {
		text += "; detail: " + a.Detail
	}
	if a.Hint != "" {
		text += "; hint: " + a.Hint
	}
	return text
}

// says reports whether a text has these words. The words line 1 are not those of line 12.
func says(text, words string) bool {
	return regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(words) + `(\W|$)`).MatchString(text)
}

// Removed is a definition that a command removed.
type Removed struct {
	Kind string `json:"kind"` // job, calendar, schedule
	Name string `json:"name"`
}

// RemovedSchedule is what schedule remove did, or would do. Of all schedules that no job uses, Removed is nil.
type RemovedSchedule struct {
	*Removed
	Altered
}

// Backfilled is the result of job backfill.
type Backfilled struct {
	Job       string           `json:"job"`
	DryRun    bool             `json:"dry_run"`
	Runs      []store.Run      `json:"runs"`
	Intervals []store.Interval `json:"intervals,omitzero"`  // of a dry run: of the runs that it would request; their ends are the nominal times
	More      time.Time        `json:"more,omitzero"`       // the first nominal time beyond the limit
	KeptSince time.Time        `json:"kept_since,omitzero"` // runs before it are not kept, and some of the times are: they may have run
	Held      *store.Pause     `json:"-"`                   // holds the runs back
	Does      string           `json:"-"`                   // what the next tick does with them; empty: that is not known, or they are held
	Waits     string           `json:"-"`                   // what the first of them waits for; empty: for nothing but a tick
}

// Print prints the runs, or the nominal times of a dry run.
func (b Backfilled) Print(w io.Writer) error {
	if !b.DryRun {
		return Runs(w, b.Runs, time.Time{}) // none of them executes
	}
	t := newTable(w, "SCHEDULED FOR", "INTERVAL START")
	for _, n := range b.Intervals {
		t.row(Instant(n.End), Instant(n.Start))
	}
	return t.flush()
}

// String returns the same in one line.
func (b Backfilled) String() string {
	if len(b.Runs)+len(b.Intervals) == 0 {
		return "job " + b.Job + ": nothing to request: no nominal time in the range is decided and without a run"
	}
	text := fmt.Sprintf("job %s: ", b.Job)
	switch {
	case b.DryRun:
		text += "would request runs for " + Plural(len(b.Intervals), "nominal time")
	default:
		text += "requested runs for " + Plural(len(b.Runs), "nominal time")
	}
	switch {
	case b.Waits != "":
		text += "; the first one " + b.Waits
	case b.Does != "":
		text += "; the next dbjobs tick " + b.Does
	}
	if !b.More.IsZero() {
		text += "; --limit left out those from " + Instant(b.More)
	}
	if !b.KeptSince.IsZero() {
		text += "; runs before " + Instant(b.KeptSince) + " are no longer kept, so times before it may have run already"
	}
	if b.Held != nil {
		text += "; the job is paused: " + Paused(*b.Held)
	}
	if b.DryRun {
		text += " (dry run: nothing was written)"
	}
	return text
}
