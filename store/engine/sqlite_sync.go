package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// syncWithLedger leaves it to the ledger to sync what a step has committed. Both are in one file, whose log keeps commits in
// their order: the commit that records the end of the step syncs the log, and with it all that the step has committed before. So
// no end is on record of which an effect could still be lost, and a file on a disk is synced once for many ends, instead of once
// more for each step. A commit that has the end of the run itself is synced by itself, see BeginTx.
//
// Crash window: where the machine loses its power before the end of a step is on record, its effects may be gone as well as not,
// and the step runs again. Those of an atomic step are gone together with the record of its attempt, or both are there. Where the file has no log of that kind, each commit is synced.
func (c *sqliteJobConn) syncWithLedger(ctx context.Context) error {
	mode, err := c.pragma(ctx, "PRAGMA journal_mode")
	if c.synced = true; err != nil || mode != "wal" {
		return err
	}
	c.later = true
	return c.syncs(ctx, false)
}

// syncs says whether the next commits are synced, where others may be synced later. SQLite heeds it when the text is compiled: it
// is not one to be kept.
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

// relax leaves the sync of what is not atomic to the ledger. Where that cannot be, as within a transaction whose COMMIT has failed,
// it is synced.
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

// EndFollows says of the transaction of an atomic step that the ledger records the end of its run right after it.
func EndFollows(ctx context.Context) context.Context {
	return context.WithValue(ctx, endFollows{}, true)
}

// BeginTx begins the transaction of an atomic step. Its commit is synced, unless the ledger records the end of the run after it:
// else it has that end itself.
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

// syncedTx is such a transaction.
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
