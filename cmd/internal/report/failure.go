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
	for _, v := range list {
		run := store.Run{Job: v.Job, Number: v.RunNumber, ID: v.RunID}
		a := v.Attempt
		a.Code, a.Line = "", 0 // they have columns
		t.row(Instant(v.FinishedAt), run.Label(), v.StepName, count(int64(v.Attempt.Attempt)), v.Code, positive(v.Line), v.Severity,
			cmp.Or(attemptError(a), "the process that executed it did not come back"))
	}
	return t.flush()
}

// Missed prints the table of missed.
func Missed(w io.Writer, list []tick.MissedTimes) error {
	t := newTable(w, "JOB", "REASON", "TIMES", "AFTER", "THROUGH")
	for _, v := range list {
		n := "?"
		if v.Times != nil {
			n = count(*v.Times)
		}
		t.row(v.Job, v.Reason, n, Instant(v.From), Instant(v.Through))
	}
	return t.flush()
}
