package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// syncWithLedger leaves it to the ledger to sync the commits of a step. Both are in one file, whose log keeps commits
// in their order. The commit that records the end of the step syncs the log, and with it all earlier commits of the
// step. So no end is on record while an effect could still be lost. A file on a disk is synced once for many ends,
// instead of once more for each step. A commit that has the end of the run in it is synced separately: see BeginTx.
//
// Crash window: the machine may lose power before the end of a step is on record. Then its effects may
// be lost or not, and the step runs again. The effects of an atomic step and the record of its attempt
// are either both lost or both there. If the file has no log of that kind, each commit is synced.
func (c *sqliteJobConn) syncWithLedger(ctx context.Context) error {
	mode, err := c.pragma(ctx, "PRAGMA journal_mode")
	if c.synced = true; err != nil || mode != "wal" {
		return err
	}
	c.later = true
	return c.syncs(ctx, false)
}

// syncs sets whether each of the next commits is synced, or may be synced later. SQLite applies the setting when it
// compiles the text, so this statement must not be kept.
func (c *sqliteJobConn) syncs(ctx context.Context, each bool) error {
	if !c.later || c.synced == each {
		return nil
	}
	text := "PRAGMA synchronous = NORMAL"
	if each {
		text = "PRAGMA synchronous = FULL"
	}
	_, err := c.sqliteConn.ExecContext(ctx, text, nil)
	if err == nil {
		c.synced = each
	}
	return err
}

// relax leaves the sync of commits that are not atomic to the ledger. If that is impossible, as within
// a transaction whose COMMIT has failed, they are synced.
func (c *sqliteJobConn) relax(ctx context.Context) {
	if !c.atomic {
		_ = c.syncs(ctx, false)
	}
}

func (c *sqliteJobConn) pragma(ctx context.Context, text string) (value string, err error) {
	rows, err := c.sqliteConn.QueryContext(ctx, text, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	value, _ = values[0].(string)
	return value, nil
}

// QueryContext executes a statement that returns rows.
func (c *sqliteJobConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.relax(ctx)
	return c.keptStatements.QueryContext(ctx, query, args)
}

type endFollows struct{}

// EndFollows marks the transaction of an atomic step for which the ledger records the end of the run right after it.
func EndFollows(ctx context.Context) context.Context {
	return context.WithValue(ctx, endFollows{}, true)
}

// BeginTx begins the transaction of an atomic step. Its commit is synced, unless the ledger records the end of the
// run after it: without EndFollows, the commit has that end in it.
func (c *sqliteJobConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.syncs(ctx, ctx.Value(endFollows{}) == nil); err != nil {
		return nil, err
	}
	tx, err := c.keptStatements.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.atomic = true
	return syncedTx{tx, c}, nil
}

// syncedTx is the transaction of an atomic step.
type syncedTx struct {
	driver.Tx
	c *sqliteJobConn
}

// Commit commits.
func (t syncedTx) Commit() error {
	t.c.atomic = false
	return t.Tx.Commit()
}

// Rollback rolls back.
func (t syncedTx) Rollback() error {
	t.c.atomic = false
	return t.Tx.Rollback()
}
