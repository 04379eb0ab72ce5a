package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// planOnce names statements for which the server keeps a plan: those that record ends, and half or more of whose cost is else to
// plan them. They find each row by its key, so one plan is as good as another, whatever the arguments are. Statements with pages,
// or with conditions that are more or less selective, are planned for what they are given.
var planOnce = map[string]bool{"finish_attempt": true, "finish_attempts": true, "finish": true, "end_attempt": true, "next_step": true,
	"back_off": true, "begin_attempt": true}

// A plan that was made for tables of a few rows reads them whole, and the server keeps it until it has counted the rows again, by
// which time there may be a million. So plans are made anew after that many uses, or that time.
const (
	mostUses = 64
	oldPlan  = time.Second
)

// planned is what a connection knows about those plans.
type planned struct {
	seen   map[string]bool // by their names: whether they are prepared
	asked  bool
	direct bool // the server's session is this connection's own
	uses   int  // of the plans
	aging  *time.Timer
	old    atomic.Bool
}

// plan lets the server keep the plan of a statement that comes a second time. Behind a proxy that pools transactions another
// session may answer each time: there, the server knows the session by another number than the one that the connection got, and
// nothing is prepared.
func (c *postgresConn) plan(ctx context.Context, text string) error {
	name, _ := ctx.Value(repeated{}).(string)
	if !planOnce[name] || c.Conn.Conn().IsClosed() {
		return nil
	}
	if prepared, again := c.seen[name]; prepared {
		return c.renew(ctx)
	} else if !again {
		if c.seen == nil {
			c.seen = map[string]bool{}
		}
		c.seen[name] = false
		return nil
	}
	conn := c.Conn.Conn()
	if !c.asked {
		var number uint32
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()").Scan(&number); err != nil {
			return err
		}
		c.asked, c.direct = true, number == conn.PgConn().PID()
	}
	if !c.direct {
		return nil
	}
	_, err := conn.Prepare(ctx, text, text) // from now on, the driver finds it by its text
	c.seen[name] = err == nil
	return err
}

// renew lets the server make its plans again from time to time. The statements stay prepared.
func (c *postgresConn) renew(ctx context.Context) error {
	if c.uses++; c.uses <= mostUses && c.aging != nil && !c.old.Load() {
		return nil
	}
	if _, err := c.Conn.Conn().Exec(ctx, "DISCARD PLANS"); err != nil {
		return err
	}
	if c.aging != nil {
		c.aging.Stop()
	}
	c.old.Store(false)
	c.uses, c.aging = 0, time.AfterFunc(oldPlan, func() { c.old.Store(true) })
	return nil
}

// staleOnPostgres gives a connection up where what is prepared on it can be used no more, because a migration has changed the
// tables, or because it is another session after all: nothing was done, and a new connection knows no plans.
func staleOnPostgres(err error) error {
	var pe *pgconn.PgError
	if errors.As(err, &pe) && (pe.Code == "26000" || pe.Code == "0A000" && strings.Contains(pe.Routine, "RevalidateCachedQuery")) || pgconn.SafeToRetry(err) {
		return driver.ErrBadConn
	}
	return err
}

// ExecContext executes a statement.
func (c *postgresConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.plan(ctx, query); err != nil {
		return nil, staleOnPostgres(err)
	}
	res, err := c.Conn.ExecContext(ctx, query, args)
	return res, staleOnPostgres(err)
}

// QueryContext executes a statement that returns rows.
func (c *postgresConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.plan(ctx, query); err != nil {
		return nil, staleOnPostgres(err)
	}
	rows, err := c.Conn.QueryContext(ctx, query, args)
	return rows, staleOnPostgres(err)
}
