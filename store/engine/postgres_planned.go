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

// planOnce names the statements for which the server keeps a plan. They record that attempts, steps and
// runs begin or end. Without a kept plan, planning is half or more of their cost. They find each row by
// its key, so one plan is good for all arguments. Other statements return pages, or have conditions
// whose effect depends on the arguments. The server plans those for the arguments of each execution.
var planOnce = map[string]bool{"finish_attempt": true, "finish_attempts": true, "finish": true, "end_attempt": true, "next_step": true,
	"back_off": true, "begin_attempt": true}

// A plan that was made for tables of a few rows reads them whole. The server keeps it until it counts the rows again.
// By then, there may be a million rows. So the plans are made anew after mostUses uses, or after the time oldPlan.
const (
	mostUses = 64
	oldPlan  = time.Second
)

// planned holds what a connection knows about those plans.
type planned struct {
	seen   map[string]bool // whether a statement is prepared, by its name
	asked  bool
	direct bool // the server's session is this connection's own
	uses   int  // of the plans
	aging  *time.Timer
	old    atomic.Bool
}

// plan lets the server keep the plan of a statement that comes a second time. Behind a proxy that pools
// transactions, it prepares nothing, because another session of the server may execute each statement.
// There, the server knows the session by another number than the one that the connection got.
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
	if _, err := c.Conn.Conn().Exec(ctx, "DISCARD PLANS"); errors.Is(err, pgconn.ErrConnClosed) {
		return driver.ErrBadConn // the statement itself was not sent
	} else if err != nil {
		return err
	}
	if c.aging != nil {
		c.aging.Stop()
	}
	c.old.Store(false)
	c.uses, c.aging = 0, time.AfterFunc(oldPlan, func() { c.old.Store(true) })
	return nil
}

// staleOnPostgres gives up a connection whose prepared statements can no longer be used. Either a
// migration has changed the tables, or the connection has another session of the server after all.
// The failed statement did nothing, and a new connection has no plans.
func staleOnPostgres(err error) error {
	var pe *pgconn.PgError
	if errors.As(err, &pe) && (pe.Code == "26000" || pe.Code == "0A000" && strings.Contains(pe.Routine, "RevalidateCachedQuery")) || neverSent(err) {
		return driver.ErrBadConn
	}
	return lostOnPostgres(err)
}

// ExecContext executes a statement.
func (c *postgresConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.plan(ctx, query); err != nil {
		return nil, staleOnPostgres(err)
	}
	res, err := execOnPgx(ctx, c.Conn, query, args)
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
