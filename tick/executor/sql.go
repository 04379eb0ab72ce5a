package executor

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	"github.com/dbjobs/dbjobs/store"
)

// SQL runs the statements of a step on a connection of its own, thrown away afterwards: whatever a statement does to
// its session goes with it. Statements of a step run one after the other in one session, each by itself; with atomic,
// all in one transaction with the end of the step.
type SQL struct {
	DB *sql.DB
	// Login is who the connections are; empty on SQLite. A job of another owner is refused.
	Login string
	// Instant is the form in which an argument that is an instant is given to the engine.
	Instant func(time.Time) any
}

// ReadSQL reads the spec of a step strictly.
func ReadSQL(spec json.RawMessage) (store.SQLSpec, error) {
	var v store.SQLSpec
	dec := json.NewDecoder(bytes.NewReader(spec))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return v, fmt.Errorf("sql step: %w", err)
	}
	if len(v.SQL) == 0 {
		return v, errors.New("sql step: has no statement")
	}
	if len(v.Args) > 0 && len(v.SQL) > 1 {
		return v, errors.New("sql step: args belong to a single statement; make a step of each")
	}
	return v, nil
}

// Execute runs one attempt.
func (e *SQL) Execute(ctx context.Context, r Request) (Result, error) {
	if owner := r.Task.Job.Owner; e.Login != "" && owner != e.Login {
		return Result{}, fmt.Errorf("the job belongs to %q, and this host has credentials for %q only", owner, e.Login)
	}
	spec, err := ReadSQL(r.Spec)
	if err != nil {
		return Result{}, err
	}
	args, err := e.arguments(spec.Args, Facts(r.Task))
	if err != nil {
		return Result{}, err
	}
	conn, err := e.DB.Conn(ctx)
	if err != nil {
		return Result{}, describe(err)
	}
	// Not back into the pool: ErrBadConn makes database/sql close the connection.
	defer func() { _ = conn.Close() }()
	if spec.Atomic {
		return e.atomic(ctx, conn, spec, args, r)
	}
	rows, err := statements(ctx, conn, spec.SQL, args)
	if err != nil {
		return Result{}, err
	}
	return Result{Rows: &rows}, nil
}

// atomic commits the effects and the end of the step together: exactly once.
//
// Crash window: where the answer to COMMIT is lost, the caller tries to record a failure under the same fence. If the
// COMMIT took place, the run is no longer running and that is refused; if not, it is recorded and the step tried again.
func (e *SQL) atomic(ctx context.Context, conn *sql.Conn, spec store.SQLSpec, args []any, r Request) (Result, error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return Result{}, describe(err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	rows, err := statements(ctx, tx, spec.SQL, args)
	if err != nil {
		return Result{}, err
	}
	if err := r.EndIn(ctx, tx, rows); err != nil {
		return Result{}, err
	}
	if err := tx.Commit(); err != nil {
		return Result{}, describe(err)
	}
	return Result{Rows: &rows, Ended: true}, nil
}

type execer interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

// statements runs them in order and adds up the rows that they affected. Rows that a statement returns are read and
// dropped.
func statements(ctx context.Context, q execer, list []string, args []any) (int64, error) {
	var total int64
	for i, st := range list {
		res, err := q.ExecContext(ctx, st, args...)
		if err != nil {
			if len(list) > 1 {
				err = fmt.Errorf("statement %d: %w", i+1, err)
			}
			return total, describe(err)
		}
		if n, err := res.RowsAffected(); err == nil {
			total += n
		}
	}
	return total, nil
}

func (e *SQL) arguments(list []any, facts map[string]any) ([]any, error) {
	out := make([]any, len(list))
	for i, a := range list {
		v, err := Expand(a, facts)
		if err != nil {
			return nil, err
		}
		switch w := v.(type) {
		case json.Number:
			if n, err := w.Int64(); err == nil {
				v = n
			} else if v, err = w.Float64(); err != nil {
				return nil, fmt.Errorf("argument %s: %w", w, err)
			}
		case time.Time:
			v = e.Instant(w)
		case map[string]any, []any:
			b, err := json.Marshal(w)
			if err != nil {
				return nil, err
			}
			v = string(b)
		}
		out[i] = v
	}
	return out, nil
}

// describe takes from an engine's error what it tells beside the message.
func describe(err error) error {
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	var se *sqlite.Error
	switch {
	case errors.As(err, &pe):
		return &Error{Code: pe.Code, Line: 0, Severity: pe.Severity, Err: err}
	case errors.As(err, &me):
		return &Error{Code: strconv.Itoa(int(me.Number)), Severity: string(me.SQLState[:]), Err: err}
	case errors.As(err, &se):
		return &Error{Code: strconv.Itoa(se.Code()), Err: err}
	}
	return err
}
