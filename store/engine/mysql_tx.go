package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mysqlBounded makes connections whose COMMIT and ROLLBACK end with the context of their transaction,
// like all other statements. The driver sends these two without a context. Then a server that no
// longer answers, or whose commits wait for a backup's lock, would hold up a pass for ever, whatever
// the budget of the pass. mysqlBounded also bounds the time to connect. The driver bounds only the
// time until the server accepts the connection, and a server may say nothing after that.
type mysqlBounded struct {
	driver.Connector
	timeout time.Duration
}

// Connect implements driver.Connector.
func (c mysqlBounded) Connect(ctx context.Context) (driver.Conn, error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	why := &mysqlLoss{}
	inner, err := c.Connector.Connect(context.WithValue(within, lossOf{}, why))
	switch {
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return nil, fmt.Errorf("%w within %s", errSilent, c.timeout)
	case err != nil:
		return nil, why.told(err)
	}
	whole, ok := inner.(mysqlConn)
	if !ok {
		inner.Close()
		return nil, errors.New("the driver's connections lack a method that dbjobs needs")
	}
	return &boundedConn{mysqlConn: whole, why: why}, nil
}

// mysqlConn lists the interfaces that the driver's connections implement.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type boundedConn struct {
	mysqlConn
	why  *mysqlLoss
	lost bool // the outcome of its transaction is unknown
}

// ExecContext executes a statement.
func (c *boundedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.mysqlConn.ExecContext(ctx, query, args)
	return r, c.why.told(err)
}

// QueryContext executes a statement that returns rows.
func (c *boundedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.mysqlConn.QueryContext(ctx, query, args)
	return r, c.why.told(err)
}

// IsValid reports whether the connection may be used again. Closing it rolls back the uncommitted changes.
func (c *boundedConn) IsValid() bool { return !c.lost && c.mysqlConn.IsValid() }

// BeginTx begins a transaction.
func (c *boundedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if _, err := c.mysqlConn.BeginTx(ctx, o); err != nil {
		return nil, c.why.told(err)
	}
	return boundedTx{ctx, c}, nil
}

type boundedTx struct {
	ctx  context.Context
	conn *boundedConn
}

func (t boundedTx) Commit() error   { return t.end("COMMIT") }
func (t boundedTx) Rollback() error { return t.end("ROLLBACK") }

func (t boundedTx) end(statement string) error {
	_, err := t.conn.ExecContext(t.ctx, statement, nil)
	var answer *mysql.MySQLError
	t.conn.lost = t.conn.lost || err != nil && !errors.As(err, &answer)
	return err
}
