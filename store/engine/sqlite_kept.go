package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
)

// sqliteKeeping makes connections that keep the program's own statements. SQLite compiles statements
// in this process, and most of them take longer to compile than to execute.
type sqliteKeeping struct{ sqliteOfFile }

// Connect connects.
func (c sqliteKeeping) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err // not conn: it would be a driver.Conn that is not nil
	}
	return conn, nil
}

// sqliteConn lists the interfaces that the driver's connections implement.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteStatement lists the interfaces that the driver's statements implement.
type sqliteStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type repeated struct{}

// repeats marks a statement that is likely to come again on its connection. These are the program's
// own statements, which have names and only a few texts. The text of a job is compiled each time.
func repeats(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, repeated{}, name)
}

// keptStatements is a connection with those compiled statements of the program that are not being
// executed. If the schema changes, SQLite compiles a statement again on its own.
type keptStatements struct {
	sqliteConn
	file   *openFile
	opened os.FileInfo
	ready  map[string]sqliteStatement
}

// ResetSession is called before the connection is used again.
func (c *keptStatements) ResetSession(ctx context.Context) error {
	if !c.file.leadsTo(c.opened) {
		return driver.ErrBadConn
	}
	return c.sqliteConn.ResetSession(ctx)
}

// mostKept bounds the memory for statements. Each takes about 10 kB.
const mostKept = 100

// ExecContext executes a statement.
func (c *keptStatements) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if ctx.Value(repeated{}) == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	st, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := st.ExecContext(ctx, args)
	return res, c.give(query, st, err)
}

// QueryContext executes a statement that returns rows.
func (c *keptStatements) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if ctx.Value(repeated{}) == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	st, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, args)
	if err != nil {
		return nil, c.give(query, st, err)
	}
	return keptRows{rows, func(err error) error { return c.give(query, st, err) }}, nil
}

// take returns the compiled statement. It belongs to the caller until give, because its rows may still
// be read when another statement of the same text begins.
func (c *keptStatements) take(ctx context.Context, query string) (sqliteStatement, error) {
	if st, ok := c.ready[query]; ok {
		delete(c.ready, query)
		return st, nil
	}
	inner, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	st, ok := inner.(sqliteStatement)
	if !ok {
		return nil, errors.Join(errors.New("the driver's statements lack a method that dbjobs needs"), inner.Close())
	}
	return st, nil
}

// give keeps a statement that has ended well. It returns the error with which the statement has ended.
func (c *keptStatements) give(query string, st sqliteStatement, err error) error {
	if c.ready[query] != nil || err != nil {
		closed := st.Close()
		if err == nil {
			err = closed
		}
		return err
	}
	for old, one := range c.ready {
		if len(c.ready) < mostKept {
			break
		}
		delete(c.ready, old)
		_ = one.Close() // it has ended before
	}
	c.ready[query] = st
	return nil
}

// Close closes the statements, and the connection.
func (c *keptStatements) Close() error {
	for _, st := range c.ready {
		_ = st.Close() // they have ended before
	}
	clear(c.ready)
	return c.sqliteConn.Close()
}

// keptRows are the rows of a statement. The statement is kept after they have been read.
type keptRows struct {
	driver.Rows
	give func(error) error
}

// Close ends the statement.
func (r keptRows) Close() error { return r.give(r.Rows.Close()) }
