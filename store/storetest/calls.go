package storetest

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
)

// The kinds of calls of a database.
const (
	Connect  = "connect"
	Prepare  = "prepare" // the store prepares no statement: one that shows up here costs trips that it should not
	Begin    = "begin"
	Exec     = "exec"
	Query    = "query"
	Commit   = "commit"
	Rollback = "rollback"
	Act      = "act" // an action that a test's executor takes elsewhere: see Calls.Act
)

// Call is one call of a database.
type Call struct {
	N    int    // 1, 2, ... in the order in which the calls began, over all connections
	Kind string // Connect, Begin, ...
	SQL  string // the statement of Prepare, Exec and Query; what is done, of Act
	Args []driver.NamedValue
}

// Calls stands between database/sql and a driver. It numbers the calls that go to the database. Give its
// Wrap to store.Options. Set the hooks and Rewrite before that. Several connections may call them at once.
//
// An error of a hook stands for a connection that broke. If Before returns it, the call does not take
// place. If After returns it, the call has taken place and its answer is lost. The caller gets the
// error, and the connection is not used again. An open transaction on it ends as the engine ends the
// transactions of a dead client. A RefusedError of Before leaves the connection as it is.
type Calls struct {
	Before func(Call) error
	After  func(Call) error
	// Failed is called with each error that the database answers.
	Failed func(Call, error)
	// Rewrite changes the text of a statement before it is sent. So a test sees what happens to a
	// statement without its guards.
	Rewrite func(sql string) string
	// Options changes the options of a transaction.
	Options func(driver.TxOptions) driver.TxOptions
	// NoTransactions leaves Begin, Commit and Rollback out: each statement stands alone.
	NoTransactions bool

	mu     sync.Mutex
	all    []Call
	killed error
}

// RefusedError is the engine's answer to a call that it does not carry out. If it refuses a COMMIT, it
// has rolled back.
type RefusedError struct{ Err error }

func (r RefusedError) Error() string { return r.Err.Error() }
func (r RefusedError) Unwrap() error { return r.Err }

// Kill makes every later call fail with err and close its connection, as if the process were dead. A
// hook may call it.
func (c *Calls) Kill(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = err
}

func (c *Calls) dead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// Act numbers an action of an executor as if it were a call, on a connection of its own that nothing else uses.
func (c *Calls) Act(what string, do func() error) error {
	broken := false
	return c.made(Act, what, nil, &broken, do)
}

// All returns the calls so far.
func (c *Calls) All() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Call(nil), c.all...)
}

// Count counts the calls of these kinds so far; without kinds, all of them.
func (c *Calls) Count(kinds ...string) int {
	n := 0
	for _, call := range c.All() {
		hit := len(kinds) == 0
		for _, k := range kinds {
			hit = hit || call.Kind == k
		}
		if hit {
			n++
		}
	}
	return n
}

// Reset forgets the calls so far.
func (c *Calls) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
}

// Wrap wraps a driver's connector. It is for store.Options.
func (c *Calls) Wrap(inner driver.Connector) driver.Connector { return &connector{c, inner} }

// made makes a call between its hooks. broken is part of the connection: it is true once the connection is broken.
func (c *Calls) made(kind, sql string, args []driver.NamedValue, broken *bool, do func() error) error {
	if err := c.dead(); err != nil {
		*broken = true
		return err
	}
	if *broken {
		return driver.ErrBadConn
	}
	c.mu.Lock()
	call := Call{len(c.all) + 1, kind, sql, args}
	c.all = append(c.all, call)
	c.mu.Unlock()
	if c.Before != nil {
		if err := c.Before(call); err != nil {
			var refused RefusedError
			*broken = !errors.As(err, &refused)
			return err
		}
	}
	err := do()
	if err != nil && c.Failed != nil {
		c.Failed(call, err)
	}
	if c.After != nil {
		if lost := c.After(call); lost != nil {
			*broken = true
			return lost
		}
	}
	return err
}

type connector struct {
	calls *Calls
	inner driver.Connector
}

func (c *connector) Driver() driver.Driver { return c.inner.Driver() }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	out := &conn{calls: c.calls}
	err := c.calls.made(Connect, "", nil, &out.broken, func() (err error) {
		out.Conn, err = c.inner.Connect(ctx)
		return err
	})
	if err != nil {
		if out.Conn != nil {
			_ = out.Close() // it connected, but the answer was lost
		}
		return nil, err
	}
	return out, nil
}

// conn passes calls to the driver. If a driver lacks an interface, conn answers as database/sql would without it.
type conn struct {
	driver.Conn
	calls  *Calls
	broken bool
}

func (c *conn) text(sql string) string {
	if c.calls.Rewrite != nil {
		return c.calls.Rewrite(sql)
	}
	return sql
}

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.calls.NoTransactions {
		return none{}, nil
	}
	if c.calls.Options != nil {
		o = c.calls.Options(o)
	}
	var inner driver.Tx
	err := c.calls.made(Begin, "", nil, &c.broken, func() (err error) {
		b, ok := c.Conn.(driver.ConnBeginTx)
		if !ok {
			return errors.New("the driver has no BeginTx")
		}
		inner, err = b.BeginTx(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &tx{c, inner}, nil
}

func (c *conn) PrepareContext(ctx context.Context, query string) (st driver.Stmt, err error) {
	err = c.calls.made(Prepare, query, nil, &c.broken, func() error {
		if p, ok := c.Conn.(driver.ConnPrepareContext); ok {
			st, err = p.PrepareContext(ctx, c.text(query))
		} else {
			st, err = c.Prepare(c.text(query))
		}
		return err
	})
	return st, err
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	x, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	err = c.calls.made(Exec, query, args, &c.broken, func() error {
		res, err = x.ExecContext(ctx, c.text(query), args)
		return err
	})
	return res, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	var rows driver.Rows
	err := c.calls.made(Query, query, args, &c.broken, func() (err error) {
		rows, err = q.QueryContext(ctx, c.text(query), args)
		return err
	})
	if err != nil {
		if rows != nil {
			_ = rows.Close() // the answer was lost
		}
		return nil, err
	}
	return rows, nil
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) ResetSession(ctx context.Context) error {
	if c.broken {
		return driver.ErrBadConn
	}
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	if c.broken || c.calls.dead() != nil {
		return false
	}
	if v, ok := c.Conn.(driver.Validator); ok {
		return v.IsValid()
	}
	return true
}

func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok && !c.broken {
		return p.Ping(ctx)
	}
	return nil
}

type tx struct {
	conn  *conn
	inner driver.Tx
}

func (t *tx) Commit() error {
	err := t.conn.calls.made(Commit, "", nil, &t.conn.broken, t.inner.Commit)
	var refused RefusedError
	if errors.As(err, &refused) {
		_ = t.inner.Rollback() // the caller's answer is the refusal
	}
	return err
}

func (t *tx) Rollback() error {
	err := t.conn.calls.made(Rollback, "", nil, &t.conn.broken, t.inner.Rollback)
	var refused RefusedError
	if errors.As(err, &refused) {
		_ = t.inner.Rollback() // no engine refuses this: the transaction is over, whatever the answer
	}
	return err
}

// none stands for a transaction where there is none.
type none struct{}

func (none) Commit() error   { return nil }
func (none) Rollback() error { return nil }
