package executor

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"

	"github.com/dbjobs/dbjobs/store"
)

// atomic commits the effects and the end of the step together: exactly once. A savepoint set before the first
// statement is there after the last one, unless the text has ended the transaction: by COMMIT or ROLLBACK, or by DDL
// where that commits (MySQL, MariaDB), also inside a procedure, and also where it began another one.
//
// Crash window: where the answer to COMMIT is lost, the caller tries to record a failure of this attempt. If the COMMIT
// took place, the run has left the attempt and that is refused; if not, it is recorded and the step tried again.
func (e *SQL) atomic(outer, ctx context.Context, conn *sql.Conn, spec store.SQLSpec, args []any, r Request) (Result, error) {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: e.isolation})
	if err != nil {
		return Result{}, describe(err, "")
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	mark := fmt.Sprintf("dbjobs_%016x", rand.Uint64())
	if _, err := tx.ExecContext(ctx, "SAVEPOINT "+mark); err != nil {
		return Result{}, describe(err, "")
	}
	rows, err := statements(outer, ctx, tx, spec.SQL, args)
	if err != nil {
		if !undone(ctx, tx, err) {
			if _, gone := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+mark); noSavepoint(gone) {
				return Result{}, notAtomic(err)
			}
		}
		return Result{}, err
	}
	if _, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT "+mark); noSavepoint(err) {
		return Result{}, notAtomic(nil)
	} else if err != nil {
		return Result{}, describe(err, "")
	}
	if err := r.EndIn(ctx, tx, rows); err != nil {
		return Result{}, err
	}
	if err := tx.Commit(); err != nil {
		return Result{}, describe(err, "")
	}
	return Result{Rows: &rows, Ended: true}, nil
}

// notAtomic is what is told of a step that ended its transaction, and of the failure after that, if there is one.
func notAtomic(failure error) error {
	const what = "%w: its text ended the transaction that was to commit with the record of its success (DDL does on MySQL and MariaDB, " +
		"COMMIT and ROLLBACK everywhere), so part of it may have taken effect; take that out, or set atomic to false"
	if failure == nil {
		return fmt.Errorf(what, ErrNotAtomic)
	}
	return fmt.Errorf(what+"; then it failed: %w", ErrNotAtomic, failure)
}
