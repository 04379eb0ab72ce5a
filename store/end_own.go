package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dbjobs/dbjobs/store/engine"
)

// HoldsOwn reports whether the run of the task is still delivered with this fence, for a job of the login that asks.
// The login needs no right on a table.
func (s *Store) HoldsOwn(ctx context.Context, t *Task) (held bool, err error) {
	err = s.db.Row(ctx, "holds_own", engine.Args{"id": engine.ID(t.Run.ID), "fence": t.Run.Fence}, &held)
	return held, err
}

// endOwn records the end of a step that has succeeded, in a transaction of the job's owner. It calls a routine that
// has the rights of its definer, so the owner needs rights on nothing but the end of his own run. The routine gets
// the same values that EndStep writes.
func (s *Store) endOwn(ctx context.Context, tx *sql.Tx, t *Task, e StepEnd, h Holder) error {
	run := &t.Run
	name := ""
	if st := t.StepAt(e.NextStep); st != nil {
		name = st.Name
	}
	a := engine.Args{"now": s.now(), "id": engine.ID(run.ID), "fence": run.Fence, "number": run.Attempts, "final": engine.Null(e.Final), "step": e.NextStep, "step_name": name,
		"holder": h.Name, "lease_ms": h.Lease.Milliseconds(), "waited_ms": t.Waited.Milliseconds(), "rows": nil, "error": engine.Null(s.kept(t.Job.Owner, e.Error)),
		"run_error": engine.Null(s.kept(t.Job.Owner, e.RunError)), "output": engine.Null(s.told(t.Job.Owner, e.Output)), "result": s.result(t.Job.Owner, e.Result)}
	if e.Rows != nil {
		a["rows"] = *e.Rows
	}
	ended := false
	if err := s.db.In(tx).Row(ctx, "end_own", a, &ended); err != nil {
		return err
	}
	if !ended {
		return fmt.Errorf("end step %d of run %s: %w", run.Step, run.ID, ErrOutdated)
	}
	return nil
}
