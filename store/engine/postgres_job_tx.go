package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
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

// BeginTx begins a transaction. It does not send BEGIN yet: BEGIN is sent with the first statement of the
// transaction, in one trip. They are two messages, and the server skips the second one if the first one fails.
func (c *postgresJobConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	c.begin, c.record = postgresBegin(o), nil
	return postgresJobTx{ctx, c}, nil
}

// begun sends BEGIN if it was not sent yet. No statement of the transaction may be sent before BEGIN.
func (c *postgresJobConn) begun(ctx context.Context) error {
	if c.begin == "" {
		return nil
	}
	begin := c.begin
	c.begin = ""
	_, err := c.Conn.Conn().Exec(ctx, begin)
	return c.notBegun(ctx, err)
}

// notBegun closes the connection if a transaction has not begun, so that nothing is executed outside of it.
func (c *postgresJobConn) notBegun(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	_ = c.Conn.Conn().Close(ctx) // the error that counts is err
	if neverSent(err) {
		return driver.ErrBadConn
	}
	return err
}

// beginsWith reports whether BEGIN can be sent along with a text. The text must certainly be only
// one statement, because the message holds no more than one.
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

// Commit commits the transaction, if it was begun.
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
		return lostOnPostgres(err)
	case tag.String() == "ROLLBACK":
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// commit sends COMMIT. In the same trip, it sends the record that goes with the COMMIT, if there is one, before
// it. After the COMMIT, it sends the commands that make the session like a new one, if renewsNext allows this.
func (c *postgresJobConn) commit(ctx context.Context) (tag pgconn.CommandTag, err error) {
	record, renew := c.record, c.renewsNext(ctx)
	if c.record = nil; record == nil && !renew {
		return c.Conn.Conn().Exec(ctx, "COMMIT")
	}
	to := c.pg().Frontend()
	if record != nil {
		to.Send(record)
	}
	to.SendQuery(&pgproto3.Query{String: "COMMIT"})
	if renew {
		c.sendRenewal()
	}
	if err := to.Flush(); err != nil {
		return tag, err
	}
	var refused error
	if record != nil { // if it is refused, COMMIT rolls back
		_, refused = c.answer(ctx, &Told{})
	}
	if !c.Conn.Conn().IsClosed() {
		tag, err = c.answer(ctx, &Told{})
	}
	if refused != nil {
		err = refused
	}
	if err == nil || c.Conn.Conn().IsClosed() {
		return tag, err
	}
	if err := c.skipRenewal(ctx); err != nil { // the transaction may be tried again in the session, so all answers are read
		_ = c.Conn.Conn().Close(ctx) // the error that counts is that of COMMIT
	}
	return tag, err
}

type withCommit struct{}

// WithCommit says that the statement of this context is the last one of its transaction, and that
// the caller also accepts its error from COMMIT. So the statement may be sent together with COMMIT.
func WithCommit(ctx context.Context) context.Context {
	return context.WithValue(ctx, withCommit{}, true)
}

// goesWithCommit keeps the record of an atomic step until COMMIT, and reports whether it did. It does so
// only if the session of the server belongs to this connection alone, and was made like a new one before.
func (c *postgresJobConn) goesWithCommit(ctx context.Context, query string, list []driver.NamedValue) bool {
	if c.renews.record == 0 || ctx.Value(withCommit{}) == nil || c.begin != "" || c.pg().TxStatus() != 'T' || !strings.HasPrefix(query, "SELECT dbjobs.record_attempt(") {
		return false
	}
	args := make([][]byte, len(list))
	for i, a := range list {
		v, err := driver.DefaultParameterConverter.ConvertValue(a.Value)
		if err != nil {
			return false
		}
		switch v := v.(type) {
		case nil:
		case string:
			args[i] = append([]byte{}, v...) // empty is not NULL
		case []byte:
			args[i] = v
		case int64:
			args[i] = strconv.AppendInt(nil, v, 10)
		case time.Time:
			args[i] = v.AppendFormat(nil, time.RFC3339Nano)
		default:
			return false
		}
	}
	c.record = &pgproto3.FunctionCall{Function: c.renews.record, Arguments: args}
	c.renews.plans = true
	return true
}

// Rollback rolls the transaction back, if it was begun.
func (t postgresJobTx) Rollback() error {
	t.c.record = nil
	if t.c.begin != "" {
		t.c.begin = ""
		return nil
	}
	_, err := t.c.Conn.Conn().Exec(t.ctx, "ROLLBACK")
	if err != nil {
		_ = t.c.Conn.Conn().Close(t.ctx) // the error that counts is err
	}
	return err
}
