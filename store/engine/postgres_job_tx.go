package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgresBegin is the statement that begins a transaction.
func postgresBegin(o driver.TxOptions) string {
	begin := "BEGIN"
	if level := sql.IsolationLevel(o.Isolation); level != sql.LevelDefault {
		begin += " ISOLATION LEVEL " + level.String()
	}
	if o.ReadOnly {
		begin += " READ ONLY"
	}
	return begin
}

// BeginTx begins a transaction. BEGIN is sent with its first statement, in one trip: of two messages of which the server
// skips the second where the first fails.
func (c *postgresJobConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	c.begin = postgresBegin(o)
	return postgresJobTx{ctx, c}, nil
}

// begun sends BEGIN, where that is left to do. Without it, no statement of the transaction may be sent.
func (c *postgresJobConn) begun(ctx context.Context) error {
	if c.begin == "" {
		return nil
	}
	begin := c.begin
	c.begin = ""
	_, err := c.Conn.Conn().Exec(ctx, begin)
	return c.notBegun(ctx, err)
}

// notBegun closes the connection where a transaction has not begun, so that nothing is executed outside of it.
func (c *postgresJobConn) notBegun(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	_ = c.Conn.Conn().Close(ctx) // the error that counts is err
	if pgconn.SafeToRetry(err) {
		return driver.ErrBadConn
	}
	return err
}

// beginsWith reports whether BEGIN can go along with a text: it is one statement for certain, since only such can be
// sent in this way.
func (c *postgresJobConn) beginsWith(query string) bool {
	return c.begin != "" && oneText.MatchString(query) && slices.Contains(sentWithBegin, verb(query))
}

var sentWithBegin = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}

// beginAnd sends BEGIN and a statement.
func (c *postgresJobConn) beginAnd(ctx context.Context, t *Told, query string, args [][]byte) (affected int64, err error) {
	both := &pgconn.Batch{}
	both.ExecParams(c.begin, nil, nil, nil, nil)
	both.ExecParams(query, args, nil, nil, nil)
	c.begin = ""
	results := c.pg().ExecBatch(ctx, both)
	began := results.NextResult()
	if began {
		_, err := results.ResultReader().Close()
		began = err == nil
	}
	for results.NextResult() {
		affected, _ = t.postgresResult(results.ResultReader()) // its error is also that of the whole
	}
	if err = results.Close(); !began {
		return 0, c.notBegun(ctx, err)
	}
	return affected, err
}

// QueryContext executes a query.
func (c *postgresJobConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.begun(ctx); err != nil {
		return nil, err
	}
	return c.Conn.QueryContext(ctx, query, args)
}

// PrepareContext prepares a statement.
func (c *postgresJobConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.begun(ctx); err != nil {
		return nil, err
	}
	return c.Conn.PrepareContext(ctx, query)
}

type postgresJobTx struct {
	ctx context.Context
	c   *postgresJobConn
}

// Commit commits what there is.
func (t postgresJobTx) Commit() error {
	if t.c.begin != "" {
		t.c.begin = ""
		return nil
	}
	tag, err := t.c.commit(t.ctx)
	switch {
	case err != nil:
		if t.c.pg().TxStatus() != 'I' {
			_ = t.c.Conn.Conn().Close(t.ctx) // the error that counts is err
		}
		return err
	case tag.String() == "ROLLBACK":
		return pgx.ErrTxCommitRollback
	}
	return nil
}

func (c *postgresJobConn) commit(ctx context.Context) (pgconn.CommandTag, error) {
	if c.renewsNext(ctx) {
		return c.commitAndRenew(ctx)
	}
	return c.Conn.Conn().Exec(ctx, "COMMIT")
}

// Rollback undoes it.
func (t postgresJobTx) Rollback() error {
	if t.c.begin != "" {
		t.c.begin = ""
		return nil
	}
	_, err := t.c.Conn.Conn().Exec(t.ctx, "ROLLBACK")
	if err != nil {
		_ = t.c.Conn.Conn().Close(t.ctx) // likewise
	}
	return err
}
