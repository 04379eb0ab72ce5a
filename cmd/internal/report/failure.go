package report

import (
	"cmp"
	"io"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// Failures prints the table of errors.
func Failures(w io.Writer, list []store.FailedAttempt) error {
	t := newTable(w, "WHEN", "RUN", "STEP", "TRY", "NUMBER", "LINE", "SEVERITY", "ERROR")
	t.message = 40
	for _, v := range list {
		run := store.Run{Job: v.Job, Number: v.RunNumber, ID: v.RunID}
		a, silent := v.Attempt, "the process that executed it did not report its end"
		if v.Number == 0 && v.RunState == store.Failed { // a worker in SQL may end a run without an error
			silent = "a worker reported the failure without an error"
		}
		a.Code, a.Line = "", 0 // code and line have columns of their own
		t.row(Instant(v.FinishedAt), run.Label(), v.StepName, count(int64(v.Attempt.Attempt)), v.Code, positive(v.Line), v.Severity,
			cmp.Or(attemptError(a), silent))
	}
	return t.flush()
}

// Missed prints the table of missed.
func Missed(w io.Writer, list []tick.MissedTimes) error {
	t := newTable(w, "JOB", "REASON", "TIMES", "FIRST", "LAST")
	for _, v := range list {
		n, first, last := missed(&v)
		t.row(v.Job, v.Reason, n, first, last)
	}
	return t.flush()
}

// missed returns how many times a gap has, with the first and the last of them.
func missed(v *tick.MissedTimes) (times, first, last string) {
	if v.Times == nil { // the times are not known: they lie after From, up to Through
		return "?", "after " + Instant(v.From), Instant(v.Through)
	}
	return count(*v.Times), Instant(v.First), Instant(v.Last)
}
