package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// StepEnd is how an attempt ended and what the run does next.
type StepEnd struct {
	State    string // of the attempt: succeeded, failed, cancelled, cut
	Rows     *int64
	Error    string
	RunError string // the error that the run shows; empty: the same as Error
	Intended bool   // the step has succeeded, and its definition says that the run fails next
	Code     string
	Line     int
	Severity string
	Detail   string
	Hint     string
	Output   string // the output of the step; the record keeps as much of it as Output says
	Result   string // the values that later steps may name, as JSON; empty: there are none

	// At most one of these. With none, the run ends as Final says.
	NextStep  int  // the run goes on with this step
	Retry     bool // the step is tried again after Backoff
	Backoff   time.Duration
	Redeliver bool   // stopped early, or never begun: the run is delivered again after Backoff; that uses up no attempt
	Idle      bool   // with Redeliver: the delivery had no effect, and does not count as lost
	Final     string // succeeded, failed, cancelled, lost

	Pause string // why the job is paused together with this end; empty: it is not paused

	// Recorded: the transaction of the step has recorded the end of the attempt, and only the end of the run is still to be written,
	// see EndStepIn. If the record is not there, this end is refused with ErrUncommitted.
	Recorded bool
	InDoubt  bool // the step may have succeeded and recorded its success: in that case this end is refused with ErrRecorded
}

// EndStep records the end of the task's attempt and moves its run, in one transaction and only with the fence of the
// delivery. It also updates the task's run. ErrOutdated says that the run is no longer ours. ErrRecorded
// says that the attempt has succeeded, and that its own transaction has recorded the success. In both cases nothing
// was written.
//
// Crash window: before COMMIT the attempt counts as running; the lease ends, and the next delivery tries the step
// again, with the same run id. After COMMIT the attempt never runs again.
func (s *Store) EndStep(ctx context.Context, t *Task, e StepEnd, h Holder) error {
	var run Run
	err := s.db.InTx(ctx, func(tx *engine.Tx) error {
		run = t.Run
		return s.endStep(ctx, tx, &run, t, e, h)
	})
	if err == nil {
		t.Run = run
	}
	return err
}

// EndStepIn records the end of an atomic step within the transaction of its effects: both commit together. If the run
// goes on, it does the same as EndStep. If the run succeeds with this end, it records only the end of the attempt,
// under the lock of the run: that is the least that makes the step execute exactly once. The caller then records the
// end of the run by EndSteps with Recorded, together with the ends of other runs.
//
// Crash window: between that COMMIT and the record of the run's end, the run counts as running. Its lease ends, and
// the next decision finds the attempt that has succeeded: the run has succeeded at that instant, and never executes
// again. See decision.recoverExpired (tick/decide/ended_runs.go).
func (s *Store) EndStepIn(ctx context.Context, tx *sql.Tx, t *Task, e StepEnd, h Holder) (commit func(), err error) {
	run := t.Run
	switch {
	case h.Login != "" && t.Job.Owner != h.Login:
		err = s.endOwn(ctx, tx, t, e, h)
		if run.Error = s.kept(t.Job.Owner, cmp.Or(e.RunError, e.Error)); e.NextStep > 0 {
			run.goOn(e.NextStep)
		} else if !e.Succeeds() {
			run.State = e.Final
		}
	case e.Succeeds():
		err = s.recordAttempt(ctx, s.db.In(tx), t, &e)
	default:
		err = s.endStep(ctx, s.db.In(tx), &run, t, e, h)
	}
	if err != nil {
		return nil, err
	}
	return func() { t.Run = run }, nil
}

// goOn moves the run to its next step. Deliveries that did not come back count for the step in which they were lost: a
// run that makes progress in each pass is never lost.
func (r *Run) goOn(step int) {
	r.Step, r.Attempt, r.Attempts, r.Losses = step, 1, r.Attempts+1, 0
}

// Succeeds reports whether the run succeeds with this end, and nothing else has to be written with it.
func (e *StepEnd) Succeeds() bool {
	return e.Finishes() && e.State == Succeeded && e.Final == Succeeded
}

// recordAttempt records the success of the attempt, if this process still holds the run, and leaves the run as it is.
// The lock of the run's row keeps every other process from delivering it again before COMMIT.
func (s *Store) recordAttempt(ctx context.Context, q engine.Runner, t *Task, e *StepEnd) error {
	row := s.endingRow(t, e)
	n, err := q.Exec(engine.WithCommit(ctx), "record_attempt", row.args(s.now()))
	if err == nil && n == 0 {
		err = fmt.Errorf("end step %d of run %s: %w", t.Run.Step, t.Run.ID, ErrOutdated)
	}
	return err
}

func (s *Store) endStep(ctx context.Context, q engine.Runner, run *Run, t *Task, e StepEnd, h Holder) error {
	row := s.endingRow(t, &e)
	a := row.args(s.now())
	a["holder"], a["lease_ms"] = h.Name, h.Lease.Milliseconds()
	move := "finish"
	switch {
	case e.NextStep > 0:
		move = "next_step"
		a["step"] = e.NextStep
		run.goOn(e.NextStep)
	case e.Retry:
		move, run.State = "back_off", Waiting
		a["later_ms"] = e.Backoff.Milliseconds()
	case e.Redeliver:
		move, run.State = "redeliver", Waiting
		a["later_ms"], a["lost"] = e.Backoff.Milliseconds(), 1
		if e.Idle {
			a["lost"] = 0
		}
	default:
		run.State = e.Final
	}
	// The run is written first: its row is the lock, and its fence decides.
	n, err := q.Exec(ctx, move, a)
	if err == nil && n == 0 && run.State == Lost { // if the run is to be cancelled, it waits instead, and a decision cancels it
		run.State, a["later_ms"], a["lost"] = Waiting, 0, 1
		n, err = q.Exec(ctx, "redeliver", a)
	}
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("end step %d of run %s: %w", run.Step, run.ID, ErrOutdated)
	}
	run.Error = row.RunError
	if e.Pause != "" {
		if err := s.pauseFailing(ctx, q, a["now"], []changeRow{{SubjectID: run.JobID, Subject: t.Job.FullName(), Reason: e.Pause}}); err != nil {
			return err
		}
	}
	if e.Recorded {
		recorded := 0
		if err := q.Row(ctx, "is_recorded", a, &recorded); err != nil || recorded > 0 {
			return err
		}
		return fmt.Errorf("end step %d of run %s: %w", run.Step, run.ID, ErrUncommitted)
	}
	if err := s.endAttempt(ctx, q, a); err != nil || move != "next_step" {
		return err
	}
	_, err = q.Exec(ctx, "begin_attempt", engine.Args{"now": s.now(), "id": engine.ID(run.ID), "number": run.Attempts, "step": run.Step,
		"step_name": t.stepName(run.Step), "attempt": run.Attempt, "fence": run.Fence, "holder": h.Name})
	return err
}

// endAttempt ends the attempt, unless the attempt has succeeded: then an atomic step has recorded its success, and
// the answer to its COMMIT was lost.
func (s *Store) endAttempt(ctx context.Context, q engine.Runner, a engine.Args) error {
	n, err := q.Exec(ctx, "end_attempt", a)
	if err != nil || n > 0 {
		return err
	}
	recorded := 0
	if err := q.Row(ctx, "is_recorded", a, &recorded); err != nil || recorded == 0 {
		return err
	}
	return fmt.Errorf("end the attempt: %w", ErrRecorded)
}

// IdleDeliveries counts the deliveries of the current try of the task's step that had no effect: those that left an attempt, and are
// not among the losses. The losses are those of all tries of the step, so in a later try it may count too few, and never too many.
// Of the newest of them, as many as last says, and the current one, took is the time from the first to the last.
func (s *Store) IdleDeliveries(ctx context.Context, t *Task, last int) (n int, took time.Duration, err error) {
	var at engine.Moment
	var began []time.Time
	err = s.db.Query(ctx, "vain_deliveries", engine.Args{"id": engine.ID(t.Run.ID), "number": t.Run.Attempts}, engine.Reads(&at).Each(func(string) {
		began = append(began, at.Time)
	}))
	if len(began) > last {
		took = began[0].Sub(began[last])
	}
	return max(0, len(began)-1-max(0, t.Run.Losses)), took, err // by hand, losses may be below zero
}

// clip makes a message fit for every engine: an engine may quote a whole statement of megabytes, or bytes that are
// not valid text.
func clip(s string) string {
	const most = 4000
	if s = harmless(s); len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}
