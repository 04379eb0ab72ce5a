package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Runner runs statements by name: a DB runs each alone, a Tx runs all in its transaction.
type Runner interface {
	// Exec runs a statement and returns the number of rows that it found.
	Exec(ctx context.Context, name string, a Args) (int64, error)
	// Query runs a statement and calls scan for each row.
	Query(ctx context.Context, name string, a Args, scan func(*sql.Rows) error) error
	// Row scans the one row of a statement. If there is none, the error wraps ErrNotFound.
	Row(ctx context.Context, name string, a Args, dest ...any) error
	// PartialRow is like Row, but leaves out columns that cannot be read. So a message can still name a row with a
	// bad column, and such a row does not stop a probe.
	PartialRow(ctx context.Context, name string, a Args, dest ...any) error
}

// querier has the methods that a pool of connections and a transaction have in common.
type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// runner is the Runner that DB and Tx share.
type runner struct {
	db *DB
	q  querier
}

// alone reports whether each statement is a transaction of its own.
func (r runner) alone() bool { return r.q == querier(r.db.pool) }

// leave is DB.leave after a statement that is a transaction of its own. A transaction leaves when it is over.
func (r runner) leave(err error) {
	if r.alone() {
		r.db.leave(err)
	}
}

func (r runner) prepare(name string, a Args) (string, []any, error) {
	st, err := r.db.statements.get(name)
	if err != nil {
		return "", nil, err
	}
	return st.bind(r.db.e, a)
}

// Exec runs a named statement and returns the number of rows that it found.
func (r runner) Exec(ctx context.Context, name string, a Args) (n int64, err error) {
	text, bound, err := r.prepare(name, a)
	if err != nil {
		return 0, err
	}
	defer func() { r.leave(err) }()
	ctx, cancel := bounded(repeats(ctx, name))
	defer cancel()
	res, err := insist(ctx, r, writing, func() (sql.Result, error) { return r.q.ExecContext(ctx, text, bound...) })
	if err != nil {
		if r.alone() {
			err = r.db.waited(err)
		}
		return 0, r.db.Wrap(r.action(name), unanswered(ctx, err))
	}
	n, err = res.RowsAffected()
	return n, r.db.Wrap(r.action(name), err)
}

// Query runs a named statement and calls scan for each row.
func (r runner) Query(ctx context.Context, name string, a Args, scan func(*sql.Rows) error) error {
	return r.rows(ctx, reading, name, a, scan)
}

// Write is like Query, for a statement that writes. The rows are about the rows that it wrote.
func (r runner) Write(ctx context.Context, name string, a Args, scan func(*sql.Rows) error) error {
	return r.rows(ctx, writing, name, a, scan)
}

func (r runner) rows(ctx context.Context, kind sent, name string, a Args, scan func(*sql.Rows) error) (err error) {
	text, bound, err := r.prepare(name, a)
	if err != nil {
		return err
	}
	defer func() { r.leave(err) }()
	ctx, cancel := bounded(repeats(ctx, name))
	defer cancel()
	rows, err := insist(ctx, r, kind, func() (*sql.Rows, error) { return r.q.QueryContext(ctx, text, bound...) })
	if err != nil {
		return r.db.Wrap(r.action(name), unanswered(ctx, r.db.spare(name, err)))
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return r.db.Wrap(r.action(name), err)
		}
	}
	return r.db.Wrap(r.action(name), unanswered(ctx, r.db.spare(name, errors.Join(rows.Err(), rows.Close()))))
}

// Row scans the one row of a named statement. If there is none, the error wraps ErrNotFound.
func (r runner) Row(ctx context.Context, name string, a Args, dest ...any) error {
	fault, err := r.one(ctx, name, a, dest)
	if err == nil && fault != "" {
		err = r.db.Wrap(r.action(name), errors.New(fault))
	}
	return err
}

// PartialRow scans the one row of a named statement and leaves out columns that cannot be read.
func (r runner) PartialRow(ctx context.Context, name string, a Args, dest ...any) error {
	_, err := r.one(ctx, name, a, dest)
	return err
}

func (r runner) one(ctx context.Context, name string, a Args, dest []any) (fault string, err error) {
	found := false
	err = r.Query(ctx, name, a, Reads(dest...).Each(func(wrong string) { found, fault = true, JoinFaults(fault, wrong) }))
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", r.action(name), ErrNotFound)
	}
	return fault, err
}

// action says what a statement does, for errors.
func (r runner) action(name string) string {
	if a := r.db.actions[name]; a != "" {
		return a
	}
	return strings.ReplaceAll(name, "_", " ")
}

// sent says whether a statement that is a transaction of its own writes or reads.
type sent int

const (
	writing sent = iota // if its connection broke, it may have taken effect
	reading             // it changes nothing, so it may be sent again
)

// rereads is how often a statement that only reads is sent again if its connection broke: the server may
// have ended the session at the moment the statement was sent.
const rereads = 2

// insist sends a statement that is a transaction of its own again, if no part of it was done. There are two such
// cases. The server may have ended the session before the statement arrived, because the session was idle for too
// long; other idle connections may have ended too, so several may be tried until one is fresh. Or the statement lost
// against another one, as it may in sessions that are serializable by default. A statement that only reads is also
// sent again if its connection broke.
func insist[T any](ctx context.Context, r runner, kind sent, send func() (T, error)) (T, error) {
	for try := 0; ; try++ {
		v, err := send()
		if err == nil || !r.alone() || try > idle || r.db.e.OneWriter { // an engine with one writer waits in its driver
			return v, err
		}
		var never connectError
		switch c := r.db.e.classify(err); {
		case c == gone:
		case c == unreachable && kind == reading && try < rereads && !errors.As(err, &never):
		case c == transient:
			select {
			case <-ctx.Done():
				return v, err
			case <-time.After(RetryDelay(try)):
			}
		default:
			return v, err
		}
	}
}
