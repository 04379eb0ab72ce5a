package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresForJobs makes connections whose sessions can be made as new.
type postgresForJobs struct {
	driver.Connector
	pooled atomic.Bool // a pooler stands between, as one of the connections has found out
}

// Connect connects.
func (c *postgresForJobs) Connect(ctx context.Context) (driver.Conn, error) {
	whole, err := connectPgx(ctx, c.Connector)
	if err != nil {
		return nil, err
	}
	job := &postgresJobConn{Conn: whole, pooled: &c.pooled}
	job.began = job.reported()
	return job, nil
}

type postgresJobConn struct {
	*stdlib.Conn
	began  [len(reportedByServer)]string
	direct bool // the server's session is this connection's own
	pooled *atomic.Bool
}

// reportedByServer are settings of which the server tells each change.
var reportedByServer = [...]string{"application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby", "integer_datetimes",
	"IntervalStyle", "is_superuser", "scram_iterations", "search_path", "server_encoding", "session_authorization", "standard_conforming_strings", "TimeZone"}

func (c *postgresJobConn) reported() (values [len(reportedByServer)]string) {
	for i, name := range reportedByServer {
		values[i] = c.pg().ParameterStatus(name)
	}
	return values
}

func (c *postgresJobConn) pg() *pgconn.PgConn { return c.Conn.Conn().PgConn() }

// ResetSession reports whether the connection can be used again, without a trip: nothing has come from the server since its
// last answer. What comes unasked is the end of the session, or a change of its settings.
func (c *postgresJobConn) ResetSession(ctx context.Context) error {
	if c.Conn.Conn().IsClosed() || c.pg().TxStatus() != 'I' || !quiet(ctx, c.pg()) {
		return driver.ErrBadConn
	}
	return nil
}

// The reasons why a session is not used again though nothing failed.
var (
	errPooled    = errors.New("another session of the server may answer each time: a pooler stands between")
	errNotNew    = errors.New("the session differs from a new one")
	errUnknownTo = errors.New("the connection is not known to be one of PostgreSQL's")
)

// postgresReset makes a session as new.
func postgresReset(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(c any) error {
		if p, ok := c.(*postgresJobConn); ok {
			return p.reset(ctx)
		}
		return errUnknownTo
	})
}

// reset makes the session as new. Behind a proxy that pools transactions it would be the session of others: there, the
// server knows the session by another number than the one that the connection was told.
//
// DISCARD ALL leaves the seed of random(), and promises nothing of a role that ALTER ROLE … SET role gives. A session that
// ever had a temporary table keeps its schema, and what triggers did at the login is undone: such sessions cannot be made
// as new. Nothing that is sent can be led elsewhere by a search path.
func (c *postgresJobConn) reset(ctx context.Context) error {
	if c.pooled.Load() {
		return errPooled
	}
	if c.pg().TxStatus() != 'I' {
		return errNotNew
	}
	if !c.direct {
		told, err := c.ask(ctx, "SELECT pg_catalog.pg_backend_pid()")
		if err != nil {
			return err
		}
		if c.direct = told[0] == strconv.Itoa(int(c.pg().PID())); !c.direct {
			c.pooled.Store(true)
			return errPooled
		}
	}
	if _, err := c.ask(ctx, "DISCARD ALL"); err != nil {
		return err
	}
	told, err := c.ask(ctx, fmt.Sprintf("RESET ROLE; SELECT pg_catalog.pg_my_temp_schema(), "+
		"(SELECT pg_catalog.count(*) FROM pg_catalog.pg_event_trigger WHERE evtevent OPERATOR(pg_catalog.=) 'login'), pg_catalog.setseed('%.17f')", rand.Float64()))
	if err != nil {
		return err
	}
	if told[0] != "0" || told[1] != "0" || c.reported() != c.began {
		return errNotNew
	}
	return nil
}

// ask sends statements in one trip. The answer is the first row of the last one.
func (c *postgresJobConn) ask(ctx context.Context, statements string) (values []string, err error) {
	results, err := c.pg().Exec(ctx, statements).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	for _, row := range results[len(results)-1].Rows[:min(1, len(results[len(results)-1].Rows))] {
		for _, v := range row {
			values = append(values, string(v))
		}
	}
	return values, nil
}

// postgresLasts finds what DISCARD ALL does not undo: settings of one's own names, which are empty afterwards instead of
// not there, libraries, connections of dblink, and origins of replication. A block of DO may do any of it.
var (
	lastsInPostgres = regexp.MustCompile(`(?is)\b(do|load|set_config|dblink\w*|pg_replication_origin\w*)\b|\bset\b[^;=]*[.&]|\bset\b.*(/\*|--)`)
	onConflict      = regexp.MustCompile(`(?i)\bdo\s+(nothing|update)\b`)
)

func postgresLasts(text string) bool {
	return lastsInPostgres.MatchString(onConflict.ReplaceAllString(text, "conflict"))
}
