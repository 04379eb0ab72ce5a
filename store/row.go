package store

import (
	"database/sql"
	"encoding/json"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Columns that several statements read, in the order in which the functions below scan them. They stand for
// @run_columns and @pause_columns in the statements of every engine; the columns of a job come from its policies.
const (
	runColumns = `r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error`

	// runJob follows on @run_columns in a list of runs: of the job j of the run, and whether it was removed. See Store.listRuns.
	runJob = `j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN @false ELSE @true END`

	// jobFacts follow on @job_columns: what statuses reads of a job's plan and its runs, and from where.
	// What is of one row of a long table has a subquery for each column: of a join, PostgreSQL reads all runs that
	// ever were, and all changes, once jobs are many.
	jobFacts = `p.next_run, p.decided_through, p.parked, p.last_state, p.last_scheduled_for, p.last_finished_at, p.last_success_at,
  p.last_error, p.streak, p.cycles, p.runs_made, p.repeat_from,
  (SELECT CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END FROM dbjobs.runs r WHERE r.id = p.last_run_id),
  (SELECT r.started_at FROM dbjobs.runs r WHERE r.id = p.last_run_id),
  (SELECT c.action FROM dbjobs.changes c WHERE c.id = ` + lastChange + `),
  (SELECT c.changed_at FROM dbjobs.changes c WHERE c.id = ` + lastChange + `),
  (SELECT COUNT(*) FROM dbjobs.runs @by_open WHERE @open = j.id),
  (SELECT COUNT(*) FROM dbjobs.runs @by_open WHERE @open = j.id AND state = 'running'), CASE WHEN @stale THEN 1 ELSE 0 END, p.skips
FROM dbjobs.jobs j
LEFT JOIN dbjobs.plans p ON p.job_id = j.id`

	// lastChange is the change that determines the state of the job j.
	lastChange = `(SELECT MAX(l.id) FROM dbjobs.changes l @by_defined WHERE @defined = j.id AND @of_state)`

	// runSelected are conditions of a RunFilter. The schedules of a run's job are found by key.
	runSelected = `r.created_at >= :since AND r.created_at < :until
AND (:schedule = @zero OR (SELECT COUNT(*) FROM dbjobs.job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = :schedule) > 0)`

	// runTried: the run tried the step. Its attempts are found by key: for an EXISTS, MariaDB would make a table of
	// all attempts.
	runTried = `(SELECT COUNT(*) FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.step_name = :step) > 0`

	attemptColumns = `a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint`

	pauseColumns = `p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed`
)

// scanPlan returns the destinations of the columns of batch_plans, but for the last one.
func scanPlan(l *Plan) []any {
	return []any{&l.JobID, &l.owner, &l.Version, engine.At(&l.NextRun), engine.At(&l.DecidedThrough), engine.Nullable(&l.Parked), engine.At(&l.LastScheduledFor), engine.Nullable(&l.LastRunID),
		engine.Nullable(&l.LastState), engine.At(&l.LastFinishedAt), engine.At(&l.LastSuccessAt), engine.Nullable(&l.LastError), must{counter[int]{&l.Streak}}, must{counter[int64]{&l.Cycles}}, must{counter[int64]{&l.RunsMade}}, engine.Nullable(&l.StartupIDs), engine.At(&l.RepeatFrom), engine.Nullable(&l.Skips)}
}

// scanRun returns the destinations of @run_columns.
func scanRun(r *Run) []any {
	return []any{key{&r.ID}, &r.JobID, engine.Nullable(&r.Number), &r.Occurrence, &r.State, engine.Nullable(&r.HeldBy), &r.Queue, &r.Priority, engine.At(&r.ScheduledFor), engine.At(&r.IntervalStart), engine.At(&r.IntervalEnd),
		jsonInto{&r.Args}, must{engine.At(&r.ReadyAt)}, &r.Step, must{counter[int]{&r.Attempt}}, must{counter[int]{&r.Attempts}}, must{counter[int]{&r.Fence}}, must{counter[int]{&r.Losses}}, engine.At(&r.LeaseUntil), engine.Nullable(&r.Holder), engine.At(&r.CancelAt), engine.Nullable(&r.CancelBy), engine.At(&r.CreatedAt), engine.At(&r.StartedAt),
		engine.At(&r.FinishedAt), engine.At(&r.SettledAt), engine.Nullable(&r.Error)}
}

// scanAttempt returns the destinations of @attempt_columns.
func scanAttempt(a *Attempt) []any {
	return []any{&a.RunID, &a.Number, &a.Step, &a.StepName, &a.Attempt, &a.Fence, &a.Holder, &a.State, engine.At(&a.StartedAt), engine.At(&a.FinishedAt), optional[int64]{&a.Rows},
		engine.Nullable(&a.Error), engine.Nullable(&a.Code), engine.Nullable(&a.Line), engine.Nullable(&a.Severity), engine.Nullable(&a.Detail), engine.Nullable(&a.Hint)}
}

// scanStep returns the destinations of a row of steps.
func scanStep(jobID *int64, position *int, s *Step) []any {
	return []any{jobID, position, &s.Name, &s.Executor, jsonInto{&s.Spec}, ms{&s.Timeout}, optional[Attempts]{&s.Retry.Attempts}, milliseconds{&s.Retry.Backoff},
		milliseconds{&s.Retry.MaxBackoff}, optional[int]{&s.Retry.Jitter}, &s.OnSuccess, &s.OnFailure}
}

// scanPause returns the destinations of @pause_columns.
func scanPause(p *Pause) []any {
	return []any{&p.ID, &p.Scope, engine.Nullable(&p.SubjectID), engine.Nullable(&p.Subject), &p.Reason, &p.By, engine.At(&p.Since), engine.At(&p.Until), engine.Nullable(&p.UntilAs), engine.At(&p.ResumedAt), engine.Nullable(&p.ResumedBy), &p.Missed}
}

// not scans a boolean into a field that has the opposite meaning.
type not struct{ p *bool }

func (n not) Scan(src any) error {
	var v bool
	err := engine.Assign(&v, src)
	*n.p = err == nil && !v
	return err
}

// key scans a text by which a row is looked up later. SQLite stores any bytes as text. Bytes that are not UTF-8 would
// become another text when they are sent back, and no row would be found.
type key struct{ p *string }

func (k key) Scan(src any) error {
	err := engine.Assign(k.p, src)
	if err == nil && !utf8.ValidString(*k.p) {
		return engine.Holds(src, "UTF-8")
	}
	return err
}

// must scans a column that may not be NULL, even if somebody changed the table to allow it.
type must struct{ sql.Scanner }

func (r must) Scan(src any) error {
	if src == nil {
		return engine.Holds(nil, "a value")
	}
	return r.Scanner.Scan(src)
}

// optional scans a number into a field that is nil if the column is NULL.
type optional[N ~int | ~int64] struct{ p **N }

func (o optional[N]) Scan(src any) error {
	*o.p = nil
	var n int64
	if src == nil {
		return nil
	}
	err := engine.Assign(&n, src)
	if err == nil {
		*o.p = new(N(n))
	}
	return err
}

// milliseconds scans a duration in the same way.
type milliseconds struct{ p **Duration }

func (m milliseconds) Scan(src any) error {
	*m.p = nil
	var d Duration
	if src == nil {
		return nil
	}
	err := ms{&d}.Scan(src)
	if err == nil {
		*m.p = &d
	}
	return err
}

// stepRow is the row of insert_steps.
func stepRow(e *engine.Engine, job int64, position int, st *Step) json.RawMessage {
	b := e.AppendField(e.AppendField(nil, "job_id", job), "position", position)
	b = e.AppendField(e.AppendField(b, "name", st.Name), "executor", st.Executor)
	b = e.AppendField(e.AppendField(b, "spec", engine.Document(st.Spec)), "timeout_ms", positive(st.Timeout.ms()))
	if r := st.Retry.Attempts; r != nil {
		b = e.AppendField(b, "retry_attempts", int(*r))
	}
	if r := st.Retry.Backoff; r != nil {
		b = e.AppendField(b, "retry_backoff_ms", r.ms())
	}
	if r := st.Retry.MaxBackoff; r != nil {
		b = e.AppendField(b, "retry_max_backoff_ms", r.ms())
	}
	if r := st.Retry.Jitter; r != nil {
		b = e.AppendField(b, "retry_jitter", *r)
	}
	return engine.EndRow(e.AppendField(e.AppendField(b, "on_success", st.OnSuccess), "on_failure", st.OnFailure))
}

// positive returns a number, or NULL for zero.
func positive(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// tags scans an array. Elements that are not texts were put there by hand, and are not tags.
type tags struct{ p *[]string }

func (t tags) Scan(src any) error {
	var list []any
	*t.p = nil
	if err := (jsonInto{&list}).Scan(src); err != nil {
		return err
	}
	for _, v := range list {
		if s, ok := v.(string); ok {
			*t.p = append(*t.p, s)
		}
	}
	return nil
}
