package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// planOnce names statements for which the server keeps a plan: those that record the end of one attempt, and most of whose cost
// is else to plan them. They find their rows by keys alone, so one plan is as good as another, whatever the arguments are and
// however many rows there are. Statements with lists, pages or limits are planned for what they are given.
var planOnce = map[string]bool{"finish_attempt": true, "finish": true, "end_attempt": true, "next_step": true, "back_off": true, "begin_attempt": true}

// planned is what a connection knows of them.
type planned struct {
	seen   map[string]bool // by their names: whether they are prepared
	asked  bool
	direct bool // the server's session is this connection's own
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
		return nil
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
