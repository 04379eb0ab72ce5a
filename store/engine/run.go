package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Runner runs statements by name: a DB each by itself, a Tx all of them in its transaction.
type Runner interface {
	// Exec runs a statement and counts the rows that it found.
	Exec(ctx context.Context, name string, a Args) (int64, error)
	// Query runs a statement and hands each row to scan.
	Query(ctx context.Context, name string, a Args, scan func(*sql.Rows) error) error
	// Row scans the one row of a statement; ErrNotFound where there is none.
	Row(ctx context.Context, name string, a Args, dest ...any) error
	// PartialRow is Row as far as the row can be read: a name is told even where it is no proper text, and a probe stops
	// for no row.
	PartialRow(ctx context.Context, name string, a Args, dest ...any) error
}

// querier is what a pool of connections and a transaction have in common.
type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// runner is the Runner that a DB and a Tx have in common.
type runner struct {
	db *DB
	q  querier
}

// alone reports whether each statement stands alone.
func (r runner) alone() bool { return r.q == querier(r.db.pool) }

func (r runner) prepare(name string, a Args) (string, []any, error) {
	st, err := r.db.statements.get(name)
	if err != nil {
		return "", nil, err
	}
	return st.bind(r.db.e, a)
}

// Exec runs a named statement and counts the rows that it found.
func (r runner) Exec(ctx context.Context, name string, a Args) (int64, error) {
	text, bound, err := r.prepare(name, a)
	if err != nil {
		return 0, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	res, err := insist(ctx, r, writing, func() (sql.Result, error) { return r.q.ExecContext(ctx, text, bound...) })
	if err != nil {
		if r.alone() {
			err = r.db.waited(err)
		}
		return 0, r.db.Wrap(r.action(name), unanswered(ctx, err))
	}
	n, err := res.RowsAffected()
	return n, r.db.Wrap(r.action(name), err)
}

// Query runs a named statement and hands each row to scan.
func (r runner) Query(ctx context.Context, name string, a Args, scan func(*sql.Rows) error) error {
	return r.rows(ctx, reading, name, a, scan)
}

// Write is Query for a statement that writes, and tells of what it wrote by rows.
func (r runner) Write(ctx context.Context, name string, a Args, scan func(*sql.Rows) error) error {
	return r.rows(ctx, writing, name, a, scan)
}

func (r runner) rows(ctx context.Context, kind sent, name string, a Args, scan func(*sql.Rows) error) error {
	text, bound, err := r.prepare(name, a)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := insist(ctx, r, kind, func() (*sql.Rows, error) { return r.q.QueryContext(ctx, text, bound...) })
	if err != nil {
		return r.db.Wrap(r.action(name), unanswered(ctx, err))
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return r.db.Wrap(r.action(name), err)
		}
	}
	return r.db.Wrap(r.action(name), unanswered(ctx, errors.Join(rows.Err(), rows.Close())))
}

// Row scans the one row of a named statement; ErrNotFound where there is none.
func (r runner) Row(ctx context.Context, name string, a Args, dest ...any) error {
	return r.one(ctx, name, a, dest, func(fault string) error {
		if fault != "" {
			return errors.New(fault)
		}
		return nil
	})
}

// PartialRow reads the one row of a named statement as far as it can be read.
func (r runner) PartialRow(ctx context.Context, name string, a Args, dest ...any) error {
	return r.one(ctx, name, a, dest, func(string) error { return nil })
}

func (r runner) one(ctx context.Context, name string, a Args, dest []any, judge func(fault string) error) error {
	found := false
	err := r.Query(ctx, name, a, Reads(dest...).Each(func(fault string) error {
		found = true
		return judge(fault)
	}))
	if err == nil && !found {
		return fmt.Errorf("%s: %w", r.action(name), ErrNotFound)
	}
	return err
}

// action says what a statement does, for errors.
func (r runner) action(name string) string {
	if a := r.db.actions[name]; a != "" {
		return a
	}
	return strings.ReplaceAll(name, "_", " ")
}

// sent says what a statement that stands alone does.
type sent int

const (
	writing sent = iota // it may have been done where its connection broke
	reading             // it changes nothing, and may be sent again
)

// rereads is how often a statement that only reads is sent again where its connection broke under it: the server may have
// ended the session in the moment in which it was sent.
const rereads = 2

// insist sends a statement that stands alone again where nothing of it is done. The server had ended the session before it
// got the statement, as it does with sessions that were idle for longer than it allows: these are found out one by one until
// a connection is a fresh one. Or the statement lost against another, as it may in sessions that are serializable by
// default. One that only reads is sent again, too, where its connection broke under it.
func insist[T any](ctx context.Context, r runner, kind sent, send func() (T, error)) (T, error) {
	for try := 0; ; try++ {
		v, err := send()
		if err == nil || !r.alone() || try > idle || r.db.e.OneWriter { // which waits by itself
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
