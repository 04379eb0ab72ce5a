package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// postgresForJobs makes connections whose sessions can be made like new ones.
type postgresForJobs struct {
	driver.Connector
	pooled atomic.Bool // one of the connections has found a pooler between it and the server
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
	begin  string                 // BEGIN of a transaction, to be sent with its first statement
	record *pgproto3.FunctionCall // of an atomic step, to be sent with COMMIT
	pooled *atomic.Bool
	renews renewals
}

// reportedByServer lists the settings of which the server reports each change.
var reportedByServer = [...]string{"application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby", "integer_datetimes",
	"IntervalStyle", "is_superuser", "scram_iterations", "search_path", "server_encoding", "session_authorization", "standard_conforming_strings", "TimeZone"}

func (c *postgresJobConn) reported() (values [len(reportedByServer)]string) {
	for i, name := range reportedByServer {
		values[i] = c.pg().ParameterStatus(name)
	}
	return values
}

func (c *postgresJobConn) pg() *pgconn.PgConn { return c.Conn.Conn().PgConn() }

// ResetSession reports whether the connection can be used again. It makes no trip. It only checks
// that nothing has come from the server since its last answer. Without a request, a server sends
// only the end of the session, or a change of its settings.
func (c *postgresJobConn) ResetSession(ctx context.Context) error {
	if c.Conn.Conn().IsClosed() || c.pg().TxStatus() != 'I' || !quiet(ctx, c.pg()) {
		return driver.ErrBadConn
	}
	return nil
}

// The reasons why a session is not used again although nothing failed.
var (
	errPooled    = errors.New("another session of the server may answer each time: a pooler stands between")
	errUnknownTo = errors.New("the connection is not known to be one of PostgreSQL's")
)

// postgresReset makes a session like a new one.
func postgresReset(ctx context.Context, conn *sql.Conn) (int64, string, error) {
	return 0, "", conn.Raw(func(c any) error {
		if p, ok := c.(*postgresJobConn); ok {
			return p.reset(ctx)
		}
		return errUnknownTo
	})
}

// postgresLasts finds effects that DISCARD ALL does not undo: settings with names of one's own,
// which become empty instead of undefined, and also libraries, connections of dblink, origins and
// temporary slots of replication, and a backup that has begun. A DO block may have any of these effects.
var (
	lastsInPostgres = lazyregexp.New(`(?is)\b(do|load|set_config|dblink\w*|pg_replication_origin\w*|pg_(create|copy)_\w*replication_slot|pg_backup_\w+|pg_(start|stop)_backup)\b|\bset\b[^;=]*[.&]|\bset\b.*(/\*|--)`)
	onConflict      = lazyregexp.New(`(?i)\bdo\s+(nothing|update)\b`)
)

func postgresLasts(text string) bool {
	if !hasWord(text, "do", "load", "set", "dblink", "replication", "backup") { // most texts end here: the closer look takes longer than the execution of some texts
		return false
	}
	return lastsInPostgres.MatchString(onConflict.ReplaceAllString(text, "conflict"))
}

// hasWord reports whether a text has one of these words, in lower case, anywhere.
func hasWord(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
