package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// Tick prints what a pass did. A pass that did nothing prints nothing, since cron mails what is printed, unless it had no time for what
// is due.
func Tick(w io.Writer, r tick.Report) error {
	if r.DryRun {
		return due(w, r)
	}
	if r.Frozen {
		_, err := fmt.Fprintln(w, "everything is paused: nothing was decided or taken")
		return err
	}
	if r.Decided+r.Started == 0 && (r.CutShort == "" || !r.MoreDue) {
		return nil
	}
	return worked(w, r, fmt.Sprintf("%s; %s made%s; ", Plural(r.Decided, "decision"), Plural(r.Made, "run"), gaps(r.Gaps)))
}

// Work prints what a worker did. A worker that did nothing prints nothing.
func Work(w io.Writer, r tick.Report) error {
	if r.Frozen {
		_, err := fmt.Fprintln(w, "everything is paused: nothing was taken")
		return err
	}
	if r.Started == 0 && r.ByDecision == (tick.Unexecuted{}) {
		return nil
	}
	return worked(w, r, "")
}

// worked lists the runs and adds a summary. The text about the decisions comes first.
func worked(w io.Writer, r tick.Report, decided string) error {
	if len(r.Runs) > 0 {
		t := newTable(w, "RUN", "SCHEDULED FOR", "STATE", "ERROR")
		for _, e := range r.Runs {
			run := store.Run{ID: e.ID, Job: e.Job, Number: e.Number, ScheduledFor: e.ScheduledFor, Occurrence: e.Occurrence}
			t.row(run.Label(), scheduled(&run), e.State, e.Error)
		}
		if err := t.flush(); err != nil {
			return err
		}
		if r.MoreRuns > 0 {
			if _, err := fmt.Fprintf(w, "and %s: dbjobs run list\n", Plural(r.MoreRuns, "more run")); err != nil {
				return err
			}
		}
	}
	text := decided + started(r)
	if r.Passes > 1 {
		text += fmt.Sprintf("; %d passes", r.Passes)
	}
	if r.CutShort != "" {
		text += "; cut short: " + r.CutShort
	}
	if next := Instant(r.NextRun); next != "" && decided != "" {
		if r.MoreDue {
			next = "is due already"
		}
		text += "; next " + next
	}
	_, err := fmt.Fprintln(w, Line(text))
	return err
}

// started counts the runs of a pass: those that it has executed, then those that it has ended without that.
func started(r tick.Report) string {
	other := r.ByDecision
	text := fmt.Sprintf("%d started: %d succeeded, %d failed", r.Started, r.Succeeded, r.Failed-other.Failed)
	if n := r.Cancelled - other.Cancelled; n > 0 {
		text += fmt.Sprintf(", %d cancelled", n)
	}
	if r.Waiting > 0 {
		text += fmt.Sprintf(", %d to be tried again", r.Waiting)
	}
	if other.Failed > 0 {
		text += fmt.Sprintf("; %d failed by decision", other.Failed)
	}
	if other.Cancelled > 0 {
		text += fmt.Sprintf("; %d cancelled by decision", other.Cancelled)
	}
	return text
}

// Summary returns a pass in one line.
func Summary(r tick.Report) string {
	if r.Frozen {
		return "everything is paused"
	}
	return fmt.Sprintf("%s; %s made; %s", Plural(r.Decided, "decision"), Plural(r.Made, "run"), started(r))
}

// Wrong returns the report without the runs that succeeded, and without those that wait for another attempt.
func Wrong(r tick.Report) tick.Report {
	r.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(e tick.Ended) bool { return !e.Wrong() })
	r.MoreRuns = r.Failed - len(r.Runs)
	return r
}

// Plural counts things: 1 run, 2 runs.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// gaps counts the gaps that were recorded or extended, by reason.
func gaps(byReason map[string]int) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		parts = append(parts, fmt.Sprintf("%d %s", byReason[reason], reason))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", gaps: " + strings.Join(parts, ", ")
}

// due prints what a pass would do. While everything is paused, it still lists the jobs for which a pass decides afterwards.
func due(w io.Writer, r tick.Report) error {
	var text []string
	switch {
	case r.Frozen && r.FrozenUntil.IsZero():
		text = append(text, "everything is paused: a tick decides and takes nothing")
	case r.Frozen:
		text = append(text, "everything is paused until "+Instant(r.FrozenUntil)+": a tick decides and takes nothing")
	case len(r.Due) == 0:
		text = append(text, "nothing needs a decision")
	}
	if r.Queued && !r.Frozen {
		queued := "a tick executes queued runs"
		if since := Instant(r.QueuedSince); since != "" {
			queued += ", the first of them ready since " + since
		}
		text = append(text, queued)
	}
	if next := Instant(r.NextRun); next != "" && len(r.Due) == 0 && !r.Frozen {
		text = append(text, "next "+next)
	}
	if len(text) > 0 {
		if _, err := fmt.Fprintln(w, strings.Join(text, "; ")); err != nil || len(r.Due) == 0 {
			return err
		}
	}
	t := newTable(w, "JOB", "NEEDS A DECISION", "SINCE")
	told := map[string]bool{} // a new job has several reasons; the first one is printed
	for _, d := range r.Due {
		if told[d.Job] {
			continue
		}
		told[d.Job] = true
		t.row(d.Job, d.Need, Instant(d.Due))
	}
	return t.flush()
}
