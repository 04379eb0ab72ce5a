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
	RunError string // what the run says of it; empty: the same
	Intended bool   // the step has succeeded, and its way on is to fail
	Code     string
	Line     int
	Severity string
	Detail   string
	Hint     string
	Output   string // what it told; the record keeps of it what Output does
	Result   string // what later steps may name, as JSON; empty: none does

	// One of these. With none, the run ends as Final says.
	NextStep  int  // goes on with this step
	Retry     bool // tries the step again after Backoff
	Backoff   time.Duration
	Redeliver bool   // cut short, or never begun: delivered again after Backoff; uses up a delivery, not an attempt
	Final     string // succeeded, failed, cancelled

	Pause string // why the job is paused with this end; empty: it is not

	Recorded bool // the attempt has ended, in the transaction of the step: only the run's end is to be written, see EndStepIn
	InDoubt  bool // the step may have succeeded, and recorded that: then this end is refused with ErrRecorded
}

// EndStep records the end of the task's attempt and moves its run, in one transaction and only with the fence of the
// delivery: ErrOutdated says that the run was delivered again meanwhile, and nothing was written. The task's run is
// brought up to date. ErrRecorded says that the attempt has succeeded, as its own transaction has recorded: nothing was
// written either.
//
// Crash window: before COMMIT the attempt counts as running; the lease ends, and the step is tried again by the next
// delivery, with the same run id. After COMMIT it never runs again.
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

// EndStepIn records the end of an atomic step within the transaction of its effects: the two commit together. Where the
// run goes on, that is all that EndStep does. Where the run succeeds with it, it is the end of the attempt alone, the
// least that makes it exactly once, under the lock of the run: the run's own end is to be recorded next, by EndSteps with
// Recorded, together with those of others.
//
// Crash window: between that COMMIT and the record of the run's end, the run counts as running. Its lease ends, and the
// next decision finds the attempt that has succeeded: the run has succeeded at that instant, and never executes again.
// See decision.recoverExpired (tick/decide/ended_runs.go).
func (s *Store) EndStepIn(ctx context.Context, tx *sql.Tx, t *Task, e StepEnd, h Holder) (commit func(), err error) {
	run := t.Run
	switch {
	case h.Login != "" && t.Job.Owner != h.Login:
		err = s.endOwn(ctx, tx, t, e, h)
		if run.Error = s.kept(cmp.Or(e.RunError, e.Error)); e.NextStep > 0 {
			run.Step, run.Attempt, run.Attempts = e.NextStep, 1, run.Attempts+1
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

// Succeeds reports whether the run succeeds with this end, and nothing else is to be written with it.
func (e *StepEnd) Succeeds() bool {
	return e.Finishes() && e.State == Succeeded && e.Final == Succeeded
}

// recordAttempt records the success of the attempt, and leaves the run as it is, for as long as that is still ours: the
// lock of its row keeps everybody from delivering it again before COMMIT.
func (s *Store) recordAttempt(ctx context.Context, q engine.Runner, t *Task, e *StepEnd) error {
	run := &t.Run
	a := engine.Args{"now": s.now(), "id": engine.ID(run.ID), "fence": run.Fence, "number": run.Attempts, "waited_ms": t.Waited.Milliseconds(),
		"rows": nil, "output": engine.Null(s.told(e.Output)), "result": s.result(e.Result)}
	if e.Rows != nil {
		a["rows"] = *e.Rows
	}
	n, err := q.Exec(ctx, "record_attempt", a)
	if err == nil && n == 0 {
		err = fmt.Errorf("end step %d of run %s: %w", run.Step, run.ID, ErrOutdated)
	}
	return err
}

func (s *Store) endStep(ctx context.Context, q engine.Runner, run *Run, t *Task, e StepEnd, h Holder) error {
	if e.RunError == "" {
		e.RunError = e.Error
	}
	a := engine.Args{"now": s.now(), "id": engine.ID(run.ID), "fence": run.Fence, "number": run.Attempts, "error": engine.Null(s.kept(e.Error)), "run_error": engine.Null(s.kept(e.RunError)), "code": engine.Null(clip(e.Code)),
		"line": positive(int64(e.Line)), "severity": engine.Null(clip(e.Severity)), "detail": engine.Null(s.kept(e.Detail)), "hint": engine.Null(s.kept(e.Hint)),
		"output": engine.Null(s.told(e.Output)), "result": s.result(e.Result),
		"rows": nil, "holder": h.Name, "lease_ms": h.Lease.Milliseconds(), "waited_ms": t.Waited.Milliseconds(),
		"state": e.State, "final": e.Final}
	if e.Rows != nil {
		a["rows"] = *e.Rows
	}
	move := "finish"
	switch {
	case e.NextStep > 0:
		move = "next_step"
		a["step"] = e.NextStep
		run.Step, run.Attempt, run.Attempts = e.NextStep, 1, run.Attempts+1
	case e.Retry:
		move, run.State = "back_off", Waiting
		a["later_ms"] = e.Backoff.Milliseconds()
	case e.Redeliver:
		move, run.State = "redeliver", Waiting
		a["later_ms"] = e.Backoff.Milliseconds()
	default:
		run.State = e.Final
	}
	// The run first: its row is the lock, and its fence decides.
	n, err := q.Exec(ctx, move, a)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("end step %d of run %s: %w", run.Step, run.ID, ErrOutdated)
	}
	run.Error = s.kept(e.RunError)
	if e.Pause != "" {
		if err := s.pauseFailing(ctx, q, a["now"], []changeRow{{SubjectID: run.JobID, Subject: t.Job.FullName(), Reason: e.Pause}}); err != nil {
			return err
		}
	}
	if e.Recorded {
		return nil
	}
	if err := s.endAttempt(ctx, q, a); err != nil || move != "next_step" {
		return err
	}
	name := ""
	if st := t.StepAt(e.NextStep); st != nil {
		name = st.Name
	}
	_, err = q.Exec(ctx, "begin_attempt", engine.Args{"now": s.now(), "id": engine.ID(run.ID), "number": run.Attempts, "step": run.Step,
		"step_name": name, "attempt": run.Attempt, "fence": run.Fence, "holder": h.Name})
	return err
}

// endAttempt ends the attempt, unless it has succeeded: an atomic step has recorded that, and the answer to its COMMIT
// was lost.
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

// clip makes a message fit for every engine: an engine may quote a whole statement of megabytes, or bytes that are no
// text.
func clip(s string) string {
	const most = 4000
	if s = harmless(s); len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}
