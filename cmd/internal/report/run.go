package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/dbjobs/dbjobs/store"
)

// Runs prints the table of run list.
func Runs(w io.Writer, runs []store.Run) error {
	t := newTable(w, "RUN", "JOB", "SCHEDULED FOR", "STATE", "STARTED", "TOOK", "ERROR")
	for _, r := range runs {
		t.row(r.ID, r.Job, scheduled(r), runState(r), Instant(r.StartedAt), between(r.StartedAt, r.FinishedAt), r.Error)
	}
	return t.flush()
}

// runState is the state of a run; of one that waits, what it waits for.
func runState(r store.Run) string {
	if r.HeldBy != "" {
		return "held by " + r.HeldBy
	}
	return r.State
}

// scheduled is the nominal time of a run, or that it was asked for.
func scheduled(r store.Run) string {
	if r.ScheduledFor.IsZero() {
		return "on request"
	}
	return Instant(r.ScheduledFor)
}

// Run prints what run show tells.
func Run(w io.Writer, r store.RunDetail) error {
	f := newFacts(w)
	f.add("run", r.ID)
	f.add("job", r.Job)
	f.add("owner", r.Owner)
	f.add("state", r.State)
	f.add("held by", r.HeldBy)
	f.add("error", r.Error)
	f.add("scheduled for", scheduled(r.Run))
	if !r.IntervalEnd.IsZero() {
		f.add("interval", Instant(r.IntervalStart)+" to "+Instant(r.IntervalEnd))
	}
	f.add("arguments", r.Args)
	f.add("made", Instant(r.CreatedAt))
	if r.State == store.Waiting {
		f.add("ready at", Instant(r.ReadyAt))
	}
	f.add("started", Instant(r.StartedAt))
	f.add("finished", Instant(r.FinishedAt))
	f.add("took", between(r.StartedAt, r.FinishedAt))
	if r.State == store.Running {
		f.add("holder", r.Holder)
		f.add("lease until", Instant(r.LeaseUntil))
	}
	f.add("handed out", count(int64(r.Fence)))
	if err := f.flush(); err != nil || len(r.Tries) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t := newTable(w, "STEP", "TRY", "STATE", "STARTED", "TOOK", "ROWS", "ERROR")
	for _, a := range r.Tries {
		rows := ""
		if a.Rows != nil {
			rows = count(*a.Rows)
		}
		t.row(a.StepName, count(int64(a.Attempt)), a.State, Instant(a.StartedAt), between(a.StartedAt, a.FinishedAt), rows, attemptError(a))
	}
	return t.flush()
}

func attemptError(a store.Attempt) string {
	if a.Error != "" && a.Code != "" && !strings.Contains(a.Error, a.Code) {
		return fmt.Sprintf("%s (%s)", a.Error, a.Code)
	}
	return a.Error
}
