package engine

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// Nothing here is found by the search path, or whoever may create objects in a schema on it would run code as the tick's
// login. So tables and functions are written with their schema, of operators only those whose argument types are exactly
// those of pg_catalog's own (bigint * interval is none, and anybody's would do), and of types those of pg_catalog, which is
// searched before all but the session's own temporary schema, as long as the search path does not name it elsewhere.
var postgres = &Engine{
	Name: "postgres", KnowsLogins: true, Port: 5432, Isolation: sql.LevelReadCommitted,
	schemes:  []string{"postgres", "postgresql"},
	prefix:   "dbjobs.",
	numbered: true,
	layout:   "2006-01-02T15:04:05.000000Z",
	least:    "-infinity",
	macros: map[string]string{
		"@now":      "coalesce(:now::timestamptz, pg_catalog.statement_timestamp())",
		"@lease":    "(@now + :lease_ms::double precision * interval '1 millisecond')",
		"@later":    "(@now + :later_ms::double precision * interval '1 millisecond')",
		"@greatest": "greatest",
		"@true":     "true",
		"@false":    "false",
		// A change that its own row does not show; what was planned stays legible.
		"@touched":    "planned || '.'",
		"@has_tag":    "j.tags @> pg_catalog.jsonb_build_array(p.subject)",
		"@knows":      "pg_catalog.strpos(p.startup_ids, pg_catalog.chr(10) || :startup::text || pg_catalog.chr(10)) > 0",
		"@stale_link": "planned IS DISTINCT FROM schedule_id",
		"@stale":      "planned IS DISTINCT FROM plan_input",
		"@queued":     "state = 'queued' AND queue",
		"@queue_key":  "queue",
		// Not the words of the index of queued runs: the ids are known, and that index may be long.
		"@is_queued":   "state || '' = 'queued'",
		"@urgency":     "priority DESC",
		"@open":        "settled_at IS NULL AND job_id",
		"@served":      `(session_user::text COLLATE pg_catalog."default")`, // a name's own collation is another, and no index's
		"@runnable":    "(SELECT j.owner FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id) = @served",
		"@plan_owner":  "j.owner",
		"@parked":      "parked IS NOT NULL",
		"@failing":     "streak > 0",
		"@live":        "removed_at IS NULL AND name",
		"@skip":        "FOR UPDATE SKIP LOCKED",
		"@lock":        "FOR UPDATE",
		"@version":     "'PostgreSQL ' || pg_catalog.current_setting('server_version')",
		"@login":       "session_user::text",
		"@path":        "pg_catalog.array_to_string(pg_catalog.current_schemas(true), pg_catalog.chr(31))",
		"@among":       "= ANY(:ids::bigint[])",
		"@among_runs":  "= ANY(:ids::uuid[])",
		"@among_names": "= ANY(:ids::text[])",
		"@these":       "= ANY(:ids::bigint[])",
		"@these_runs":  "= ANY(:ids::uuid[])",
		"@predecessor": "CASE WHEN dbjobs.runs.occurrence ~ '^after:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN pg_catalog.substr(dbjobs.runs.occurrence, 7)::uuid END",
		"@unwell":      "r.state IN ('failed', 'cancelled', 'lost') AND r.state",
		"@anywhere":    "(coalesce(pg_catalog.max(m.id), 0)::double precision * :share::double precision)::bigint",
	},
	placeholder: func(n int) string { return "$" + strconv.Itoa(n) },
	instant:     func(t time.Time) any { return t },
	id: func(s string) any {
		var u pgtype.UUID
		if err := u.Scan(s); err != nil {
			return s // the engine will say that it is no UUID
		}
		return u
	},
	document:   func(s string) any { return json.RawMessage(s) },
	list:       postgresArray,
	connector:  postgresConnector,
	jobs:       postgresJobs,
	encrypted:  func(q url.Values) bool { return q.Get("sslmode") == "verify-full" || q.Get("sslmode") == "verify-ca" },
	classify:   classifyPostgres,
	atFault:    postgresAtFault,
	advise:     adviseOnPostgres,
	SchemaLock: "SELECT pg_catalog.pg_advisory_xact_lock(7236832961)",
	functions:  "pg_catalog.",
}

// postgresArray is a list as the text of an array: the driver would look up the way to write each element by itself.
func postgresArray(list any) any {
	text := []byte{'{'}
	switch list := list.(type) {
	case []int64:
		for _, v := range list {
			text = append(strconv.AppendInt(text, v, 10), ',')
		}
	case []string:
		for _, v := range list {
			text = append(text, '"')
			text = append(text, quoteElement.Replace(v)...)
			text = append(text, '"', ',')
		}
	}
	return string(append(bytes.TrimSuffix(text, []byte{','}), '}'))
}

var quoteElement = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// postgresConnector uses pgx's exec mode: one round trip a statement and no prepared statement, so that a
// transaction-pooling proxy may stand between. A mode that asks the server for the types of the arguments first does not
// do: the proxy may give the second trip to another session, which then executes what somebody else has prepared there,
// and answers with success. The arguments go as text without a type, and the server finds that out from the statement.
func postgresConnector(raw string, o Options) (driver.Connector, error) {
	if _, err := parseURL(raw); err != nil {
		return nil, err
	}
	c, err := pgx.ParseConfig(raw) // its error leaves the URL's password out, and Open hides what else is secret
	if err != nil {
		return nil, &URLError{"malformed: " + afterColon(err.Error())}
	}
	if c.Password != c.User && c.Password != c.Database && c.Password != c.Host { // from the URL, PGPASSWORD or a password file
		o.secrets.Issue(c.Password)
	}
	postgresSession(c, o.forJobs)
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	if o.forJobs {
		// The end of an attempt waits until the server has stopped its statement: without this the request to stop is
		// sent beside the program's exit, and may never be.
		c.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 10 * time.Second}
		}
	}
	c.StatementCacheCapacity, c.DescriptionCacheCapacity = 0, 0
	var options []stdlib.OptionOpenDB
	if o.Login != nil {
		options = append(options, stdlib.OptionBeforeConnect(func(ctx context.Context, c *pgx.ConnConfig) error {
			user, password, err := o.Login(ctx)
			if err != nil {
				return err
			}
			c.User, c.Password = cmp.Or(user, c.User), password
			return nil
		}))
	}
	if o.forJobs {
		return stdlib.GetConnector(*c, options...), nil
	}
	return postgresBounded{stdlib.GetConnector(*c, options...)}, nil
}

// postgresSession is what a session begins with, whatever is set for the server, the database or the login: the text of
// statements and what comes back is UTF-8, or the engine would take it for that of the database, and store it garbled. The
// store reads instants in one form. Jobs keep the form that is set, since it says how their own text is read, too.
//
// These are of the few parameters that pooling proxies know; another would be refused. Whatever else may be set, the
// statements are made so that it does not matter: nothing is written in a form that depends on a setting.
func postgresSession(c *pgx.ConnConfig, forJobs bool) {
	if _, set := c.RuntimeParams["application_name"]; !set {
		c.RuntimeParams["application_name"] = "dbjobs"
	}
	ours := map[string]string{"client_encoding": "UTF8"}
	if !forJobs {
		ours["datestyle"] = "ISO"
	}
	for name := range c.RuntimeParams {
		if ours[strings.ToLower(name)] != "" { // as the URL writes it
			delete(c.RuntimeParams, name)
		}
	}
	maps.Copy(c.RuntimeParams, ours)
}

// afterColon drops "cannot parse `…`", which repeats the URL.
func afterColon(s string) string {
	if i := strings.LastIndex(s, "`: "); i >= 0 {
		return s[i+3:]
	}
	return s
}
