package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// renewals holds what a connection knows about renewals. A renewal makes the session of the
// connection like a new one.
type renewals struct {
	direct bool   // the server's session is this connection's own
	known  bool   // the next fields are known, because the session was renewed before
	role   bool   // ALTER ROLE … SET role gives the login a role
	record uint32 // the number of the routine record_attempt; 0: this database has none
	plans  bool   // the session has plans of that routine, and a renewal keeps them
	coming int    // answers to a renewal that the server still has to send
}

// reset makes the session like a new one. It does not do so behind a proxy that pools transactions,
// because the session is also used by others there. There, the server knows the session by another
// number than the one that the connection got.
//
// DISCARD ALL does not reset the seed of random(), and does not promise to reset a role that ALTER ROLE …
// SET role gives. So reset sends further commands for these. Some sessions cannot be made like new ones: a
// session that ever had a temporary table keeps its temporary schema, and DISCARD ALL undoes the settings
// that triggers made at the login. A search path cannot change the meaning of any command that is sent.
func (c *postgresJobConn) reset(ctx context.Context) error {
	if c.renews.coming > 0 { // the renewal was sent with the last statement
		return c.renewed(ctx)
	}
	if c.pooled.Load() {
		return errPooled
	}
	if c.pg().TxStatus() != 'I' {
		return errNotNew
	}
	if err := c.isDirect(ctx); err != nil {
		return err
	}
	c.sendRenewal()
	if err := c.pg().Frontend().Flush(); err != nil {
		return err
	}
	return c.renewed(ctx)
}

// isDirect finds out whether the server's session is this connection's own.
func (c *postgresJobConn) isDirect(ctx context.Context) error {
	if c.renews.direct {
		return nil
	}
	to := c.pg().Frontend()
	to.SendQuery(&pgproto3.Query{String: "SELECT pg_catalog.pg_backend_pid()"})
	if err := to.Flush(); err != nil {
		return err
	}
	told, err := c.answers(ctx, 1)
	if err != nil {
		return err
	}
	if c.renews.direct = len(told) == 1 && told[0] == strconv.Itoa(int(c.pg().PID())); !c.renews.direct {
		c.pooled.Store(true)
		return errPooled
	}
	return nil
}

// Functions of pg_catalog, by the numbers that they have in all versions.
const (
	postgresSetSeed      = 1599
	postgresMyTempSchema = 2854
	postgresUnlockAll    = 2892 // pg_advisory_unlock_all
)

// discardAllButPlans and pg_advisory_unlock_all together do the work of DISCARD ALL in the versions that planKeepers
// matches, except DISCARD PLANS. No statement can see a plan, and the server replaces a plan that no longer fits.
const discardAllButPlans = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES"

// planKeepers matches the versions of the server in which DISCARD ALL is known to do nothing else.
var planKeepers = lazyregexp.New(`^1[2-8]\b`)

// postgresRecord finds the number of the routine record_attempt. A login that has no right on the schema finds none, and
// may not call it anyway. It names no table: a new session would read half of the catalogue to plan that.
const postgresRecord = "COALESCE(CASE WHEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('dbjobs')::pg_catalog.oid, 'USAGE') " +
	"THEN pg_catalog.to_regproc('dbjobs.record_attempt')::pg_catalog.oid END, 0)"

// sendRenewal sends the commands that make the session like a new one. It calls functions by a
// message for calls instead of a SELECT. DISCARD ALL drops what is prepared, so the server would
// parse and plan a SELECT each time, which costs as much as all other commands together. The server
// executes each command separately, and answers each one.
func (c *postgresJobConn) sendRenewal() {
	parts := []pgproto3.FrontendMessage{&pgproto3.Query{String: "DISCARD ALL"}}
	if c.renews.plans {
		parts = []pgproto3.FrontendMessage{&pgproto3.Query{String: discardAllButPlans}, &pgproto3.FunctionCall{Function: postgresUnlockAll}}
	}
	if !c.renews.known || c.renews.role {
		parts = append(parts, &pgproto3.Query{String: "RESET ROLE"})
	}
	if !c.renews.known {
		look := "SELECT pg_catalog.current_setting('role'), " + postgresRecord
		if hasLoginTriggers(c.pg().ParameterStatus("server_version")) {
			look += ", (SELECT pg_catalog.count(*) FROM pg_catalog.pg_event_trigger WHERE evtevent OPERATOR(pg_catalog.=) 'login')"
		}
		parts = append(parts, &pgproto3.Query{String: look})
	}
	parts = append(parts, &pgproto3.FunctionCall{Function: postgresSetSeed, Arguments: [][]byte{fmt.Appendf(nil, "%.17f", rand.Float64())}},
		&pgproto3.FunctionCall{Function: postgresMyTempSchema})
	for _, m := range parts {
		c.pg().Frontend().Send(m)
	}
	c.renews.coming = len(parts)
}

// renewed reads the answers of the server to these commands.
func (c *postgresJobConn) renewed(ctx context.Context) error {
	told, err := c.answers(ctx, c.renews.coming)
	c.renews.coming = 0
	if err != nil {
		return err
	}
	if len(told) < 2 || !c.renews.known && len(told) < 4 {
		return errNotNew
	}
	if !c.renews.known {
		c.renews.known, c.renews.role = true, told[0] != "none"
		if len(told) > 4 && told[2] != "0" {
			return errNotNew // a trigger at the login
		}
		if planKeepers.MatchString(c.pg().ParameterStatus("server_version")) {
			n, err := strconv.ParseUint(told[1], 10, 32)
			if err != nil {
				return errNotNew
			}
			c.renews.record = uint32(n)
		}
	}
	if told[len(told)-1] != "0" || c.pg().TxStatus() != 'I' || c.reported() != c.began {
		return errNotNew
	}
	return nil
}

// renewsAlong reports whether the commands that make the session like a new one can be sent along
// with a statement. The statement must be the last of its attempt. The text must certainly be only
// one statement, and the statement must take nothing from the client. If it still leaves a
// transaction open, renewed sees that, and the session ends, as it does after any error.
func (c *postgresJobConn) renewsAlong(ctx context.Context, query string) bool {
	const most = 8 << 10 // the server reads this much before it answers
	return c.renewsNext(ctx) && c.begin == "" && c.pg().TxStatus() == 'I' && len(query) <= most &&
		oneText.MatchString(query) && slices.Contains(sentWithBegin, verb(query))
}

// renewsNext reports whether the next statement is the last of its attempt, and the commands for
// the renewal are known.
func (c *postgresJobConn) renewsNext(ctx context.Context) bool {
	return ctx.Value(last{}) != nil && ctx.Err() == nil && c.renews.known
}

// skipRenewal reads the answers of the server to a renewal that does not count.
func (c *postgresJobConn) skipRenewal(ctx context.Context) error {
	stop := ctxwatch.NewContextWatcher(stopsPostgres(c.pg()))
	stop.Watch(ctx)
	defer stop.Unwatch()
	for c.renews.coming > 0 {
		m, err := c.pg().ReceiveMessage(context.Background())
		if err != nil {
			return err
		}
		if _, ready := m.(*pgproto3.ReadyForQuery); ready {
			c.renews.coming--
		}
	}
	return nil
}

// executeAndRenew sends a statement and the commands that make the session like a new one in one
// trip. It then reads the answer of the server to the statement.
func (c *postgresJobConn) executeAndRenew(ctx context.Context, t *Told, query string) (tag pgconn.CommandTag, err error) {
	to := c.pg().Frontend()
	to.SendQuery(&pgproto3.Query{String: query})
	c.sendRenewal()
	if err := to.Flush(); err != nil {
		return tag, err
	}
	return c.answer(ctx, t)
}

// answer reads the answer of the server to one message.
func (c *postgresJobConn) answer(ctx context.Context, t *Told) (tag pgconn.CommandTag, err error) {
	stop := ctxwatch.NewContextWatcher(stopsPostgres(c.pg()))
	stop.Watch(ctx)
	defer stop.Unwatch()
	var rows postgresRowsTold
	defer func() { t.ended(rows.more) }()
	var refused error
	for {
		m, err := c.pg().ReceiveMessage(context.Background())
		if err != nil {
			return tag, sentError{err}
		}
		switch m := m.(type) {
		case *pgproto3.RowDescription:
			for _, f := range m.Fields {
				rows.column(t, string(f.Name), f.DataTypeOID)
			}
		case *pgproto3.DataRow:
			rows.row(t, m.Values)
		case *pgproto3.CommandComplete:
			tag = pgconn.NewCommandTag(string(m.CommandTag))
		case *pgproto3.ErrorResponse:
			refused = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			return tag, refused
		}
	}
}

// sentError is the error of a connection that broke when a statement was sent. It is unknown whether
// the server executed the statement, so it must not be sent again.
type sentError struct{ error }

func (e sentError) Unwrap() error     { return e.error }
func (e sentError) SafeToRetry() bool { return false }

// hasLoginTriggers reports whether a server of this version may have event triggers at the login.
// PostgreSQL has them since version 17.
func hasLoginTriggers(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err != nil || n >= 17 // a version that is not understood, such as 18beta1, is new
}

// answers reads n answers, and returns their values in order. After an error, the connection cannot
// be used again, because the server may still send further answers.
func (c *postgresJobConn) answers(ctx context.Context, n int) (values []string, err error) {
	stop := ctxwatch.NewContextWatcher(stopsPostgres(c.pg())) // one watch for all messages: the driver would start one for each
	stop.Watch(ctx)
	defer stop.Unwatch()
	for n > 0 {
		m, err := c.pg().ReceiveMessage(context.Background())
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			for _, v := range m.Values {
				values = append(values, string(v))
			}
		case *pgproto3.FunctionCallResponse:
			values = append(values, string(m.Result))
		case *pgproto3.ErrorResponse:
			return nil, pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			n--
		}
	}
	return values, nil
}
