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
	row := s.endingRow(t, &e)
	a := row.args(s.now())
	a["holder"], a["lease_ms"], a["step"], a["step_name"] = h.Name, h.Lease.Milliseconds(), e.NextStep, t.stepName(e.NextStep)
	ended := false
	if err := s.db.In(tx).Row(ctx, "end_own", a, &ended); err != nil {
		return err
	}
	if !ended {
		return fmt.Errorf("end step %d of run %s: %w", t.Run.Step, t.Run.ID, ErrOutdated)
	}
	return nil
}
