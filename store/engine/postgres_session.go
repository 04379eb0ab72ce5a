package engine

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
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
	begin  string // of a transaction, to be sent with its first statement
	direct bool   // the server's session is this connection's own
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
// server knows the session by another number than the one that the connection got.
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
	left := fmt.Sprintf("SELECT pg_catalog.setseed('%.17f'), pg_catalog.pg_my_temp_schema()", rand.Float64())
	if hasLoginTriggers(c.pg().ParameterStatus("server_version")) {
		left += ", (SELECT pg_catalog.count(*) FROM pg_catalog.pg_event_trigger WHERE evtevent OPERATOR(pg_catalog.=) 'login')"
	}
	told, err := c.ask(ctx, "DISCARD ALL", "RESET ROLE", left)
	if err != nil {
		return err
	}
	if len(told) < 2 || slices.ContainsFunc(told[1:], func(s string) bool { return s != "0" }) || c.reported() != c.began {
		return errNotNew
	}
	return nil
}

// hasLoginTriggers reports whether a server of this version may have event triggers at the login, which PostgreSQL knows
// since version 17. To look for them where there can be none would cost more than all else of a reset.
func hasLoginTriggers(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err != nil || n >= 17 // a version that is not understood, such as 18beta1, is new
}

// ask sends statements in one trip, to be answered together. The answer is the last row of all. Each is executed by itself
// up to the first that fails: DISCARD ALL ends its transaction.
func (c *postgresJobConn) ask(ctx context.Context, statements ...string) (values []string, err error) {
	to := c.pg().Frontend()
	for _, text := range statements {
		to.SendParse(&pgproto3.Parse{Query: text})
		to.SendBind(&pgproto3.Bind{})
		to.SendExecute(&pgproto3.Execute{})
	}
	to.SendSync(&pgproto3.Sync{})
	if err := to.Flush(); err != nil {
		return nil, err
	}
	stop := ctxwatch.NewContextWatcher(stopsPostgres(c.pg())) // once: the driver would watch each message by itself
	stop.Watch(ctx)
	defer stop.Unwatch()
	var refused error
	for {
		m, err := c.pg().ReceiveMessage(context.Background())
		if err != nil { // answers are still to come: the connection is of no more use
			return nil, err
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			values = nil
			for _, v := range m.Values {
				values = append(values, string(v))
			}
		case *pgproto3.ErrorResponse:
			refused = cmp.Or[error](refused, pgconn.ErrorResponseToPgError(m))
		case *pgproto3.ReadyForQuery:
			return values, refused
		}
	}
}

// postgresLasts finds what DISCARD ALL does not undo: settings of one's own names, which are empty afterwards instead of
// not there, libraries, connections of dblink, and origins of replication. A block of DO may do any of it.
var (
	lastsInPostgres = lazyregexp.New(`(?is)\b(do|load|set_config|dblink\w*|pg_replication_origin\w*)\b|\bset\b[^;=]*[.&]|\bset\b.*(/\*|--)`)
	onConflict      = lazyregexp.New(`(?i)\bdo\s+(nothing|update)\b`)
)

func postgresLasts(text string) bool {
	if !hasWord(text, "do", "load", "set", "dblink", "replication") { // most texts: to look closer takes longer than to execute some
		return false
	}
	return lastsInPostgres.MatchString(onConflict.ReplaceAllString(text, "conflict"))
}

// hasWord reports whether a text has one of these words, in lower case, anywhere.
func hasWord(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
