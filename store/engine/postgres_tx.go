package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresBounded makes connections whose transactions wait for a lock no longer than lockWait. The
// setting is sent with the BEGIN in one message: it costs no round trip, and behind a pooling proxy it
// ends with the transaction.
type postgresBounded struct{ driver.Connector }

// Connect connects.
func (c postgresBounded) Connect(ctx context.Context) (driver.Conn, error) {
	whole, err := connectPgx(ctx, c.Connector)
	if err != nil {
		return nil, err
	}
	return &postgresConn{Conn: whole}, nil
}

// connectPgx makes a connection of the driver, with all of its methods.
func connectPgx(ctx context.Context, c driver.Connector) (*stdlib.Conn, error) {
	inner, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := inner.(*stdlib.Conn)
	if !ok {
		_ = inner.Close()
		return nil, errors.New("the driver's connections lack a method that dbjobs needs")
	}
	return whole, nil
}

// execOnPgx executes a statement, and leaves it to the caller whether it may be sent again. The method of the driver would let
// database/sql send a statement again that the server may have executed: see neverSent.
func execOnPgx(ctx context.Context, c *stdlib.Conn, query string, list []driver.NamedValue) (driver.Result, error) {
	if c.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	args := make([]any, len(list))
	for i, a := range list {
		args[i] = a.Value
	}
	tag, err := c.Conn().Exec(ctx, query, args...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

type postgresConn struct {
	*stdlib.Conn
	planned
}

// BeginTx begins a transaction.
func (c *postgresConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	conn := c.Conn.Conn()
	if conn.IsClosed() {
		return nil, driver.ErrBadConn
	}
	begin := fmt.Sprintf("%s; SET LOCAL lock_timeout = %d", postgresBegin(o), lockWait.Milliseconds())
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return nil, err
	}
	return postgresTx{ctx, tx}, nil
}

type postgresTx struct {
	ctx context.Context
	tx  pgx.Tx
}

func (t postgresTx) Commit() error   { return lostOnPostgres(t.tx.Commit(t.ctx)) }
func (t postgresTx) Rollback() error { return t.tx.Rollback(t.ctx) }

// lostOnPostgres says in words that a connection was lost. Where the server answers a statement without arguments by closing
// the connection, the driver drops the reason and says only "conn closed". If the server was killed, it says only "unexpected EOF".
func lostOnPostgres(err error) error {
	switch {
	case errors.Is(err, pgconn.ErrConnClosed):
		return lostError{err, "the connection to the server was lost"}
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return lostError{err, endedByServer}
	}
	return err
}
