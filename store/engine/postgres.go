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
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// Nothing here may be found by the search path. Otherwise, anybody who can create objects in a schema on that path
// could run code as the tick's login. So tables and functions are written with their schema. Operators are used only
// with the exact argument types of an operator in pg_catalog: for bigint * interval, for example, there is none, so
// another person's operator would be used. Types are those of pg_catalog. It is searched before all schemas but the
// session's own temporary one, unless the search path names it later.
var postgres = &Engine{
	Name: "postgres", KnowsLogins: true, Port: 5432, Isolation: sql.LevelReadCommitted,
	schemes:   []string{"postgres", "postgresql"},
	form:      "postgres://user:password@host/database",
	prefix:    "dbjobs.",
	numbered:  true,
	nameOfKey: nameOfPostgresKey,
	layout:    "2006-01-02T15:04:05.000000Z",
	least:     "-infinity",
	macros: map[string]string{
		"@now":      "coalesce(:now::timestamptz, pg_catalog.statement_timestamp())",
		"@lease":    "(@now + :lease_ms::double precision * interval '1 millisecond')",
		"@later":    "(@now + :later_ms::double precision * interval '1 millisecond')",
		"@begun":    "least(@now, started_at + :waited_ms::double precision * interval '1 millisecond')",
		"@aged":     "finished_at + (SELECT j.keep_age_ms FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id)::double precision * interval '1 millisecond'",
		"@greatest": "greatest",
		// For an argument that may be larger than 32 bits: it has no type, and would get that of the number.
		"@zero":  "0::bigint",
		"@true":  "true",
		"@false": "false",
		// The mark of a change that the row itself does not show. The old text stays readable.
		"@touched": "planned || '.'",
		"@unread":  "input || ' edited'",
		// The second after the next time of a plan p: nominal times have whole seconds, and a creation has not.
		"@after_next_run": "(p.next_run + interval '1 second')",
		// A change l that gave its job another not_before, or that created it with one.
		"@moves_start": "COALESCE(pg_catalog.jsonb_extract_path_text(l.was, 'not_before'), '') <> COALESCE(pg_catalog.jsonb_extract_path_text(l.became, 'not_before'), '')",
		"@has_tag":     "j.tags @> pg_catalog.jsonb_build_array(p.subject)",
		"@each_tag":    "CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t",
		"@as_set":      "",
		"@knows":       "pg_catalog.strpos(p.startup_ids, pg_catalog.chr(10) || :startup::text || pg_catalog.chr(10)) > 0",
		"@stale_link":  "planned IS DISTINCT FROM schedule_id", "@stale_after": "planned IS DISTINCT FROM after_job_id",
		"@stale":     "planned IS DISTINCT FROM plan_input",
		"@queued":    "state = 'queued' AND queue",
		"@queue_key": "queue",
		// Written so that it does not match the index of queued runs: the ids are known, and that index may be long.
		"@is_queued": "state || '' = 'queued'",
		"@urgency":   "priority DESC",
		"@open":      "settled_at IS NULL AND job_id",
		"@by_open":   "", "@by_number": "",
		"@by_subject": "", "@by_defined": "", "@by_asked": "", "@asked_at": "changed_at", "@by_end": "", "@by_paused": "", "@by_end_or_paused": "", "@by_stale": "", "@by_since": "",
		"@served":     "session_user::text",
		"@runnable":   "(SELECT j.id FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id AND (j.owner = @served OR j.owner = ANY(:owners::text[]))) IS NOT NULL",
		"@plan_owner": "j.owner",
		"@parked":     "parked IS NOT NULL",
		// A dump makes the keys after the rows: a restore that is under way, or that has stopped, shows as tables without keys.
		"@keyless": "EXISTS (SELECT 1 FROM pg_catalog.unnest('{" + tablesOfPostgres + "}'::text[]) t WHERE pg_catalog.to_regclass('dbjobs.' || t || '_pkey') IS NULL) OR pg_catalog.to_regclass('dbjobs.runs_job_id_occurrence_key') IS NULL",
		// Row security that nobody has asked dbjobs for. A pass takes a job whose row it does not see for one that is gone.
		"@hidden":     "(NOT i.owners AND EXISTS (SELECT 1 FROM pg_catalog.unnest(@our_tables) t WHERE @hides))",
		"@our_tables": "'{" + tablesOfPostgres + ",changes,ticks,installation}'::text[]",
		// The table t may have rows that this login does not see: no policies for its roles say that it may see all, or one takes some
		// away. Of plans and runs it has to update all, too: otherwise a row that it may not lock looks as if another session held it.
		"@hides": "pg_catalog.row_security_active(pg_catalog.to_regclass('dbjobs.' || t)::oid) AND" +
			" (NOT (SELECT coalesce(pg_catalog.string_agg(p.polcmd::text, ''), '') FROM pg_catalog.pg_policy p WHERE @for_us AND p.polpermissive AND @for_all)" +
			" ~ CASE WHEN t IN ('plans', 'runs') THEN '[*]|r.*w|w.*r' ELSE '[*]|r' END" +
			" OR EXISTS (SELECT 1 FROM pg_catalog.pg_policy p WHERE @for_us AND NOT p.polpermissive AND NOT @for_all AND p.polcmd IN ('*', 'r', 'w')))",
		"@for_us": "p.polrelid = pg_catalog.to_regclass('dbjobs.' || t)::oid AND EXISTS (SELECT 1 FROM pg_catalog.unnest(p.polroles) r" +
			" WHERE CASE WHEN r = 0::oid THEN true ELSE pg_catalog.pg_has_role(r, 'USAGE') END)",
		"@for_all": "coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '') = 'true'",
		// In this form the planner knows from its statistics that there are few.
		"@has_hooks":   "removed_at IS NULL AND (on_failed IS NOT NULL OR on_recovered IS NOT NULL OR on_missed IS NOT NULL OR on_late IS NOT NULL OR on_lost IS NOT NULL OR on_parked IS NOT NULL OR on_paused IS NOT NULL)",
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
		"@elsewhere":   "j.id <> ALL(:here::bigint[])",
		"@these":       "= ANY(:ids::bigint[])",
		"@these_runs":  "= ANY(:ids::uuid[])",
		"@predecessor": "CASE WHEN dbjobs.runs.occurrence ~ '^(after|hook[:][a-z]+)[:][0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}([:]|$)' THEN pg_catalog.split_part(dbjobs.runs.occurrence, ':', CASE WHEN dbjobs.runs.occurrence LIKE 'after%' THEN 2 ELSE 3 END)::uuid END",
		// For an EXISTS, the planner chooses by the number of rows that it expects: it looks up the attempts of each
		// run, or makes a table of all of them. So a step that almost no run has tried is found without a million
		// look-ups.
		"@tried":       "EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.step_name = :step)",
		"@meeting":     "'all:' || e.meets",
		"@quoted_name": "pg_catalog.quote_nullable(g.name)",
		"@unwell":      "r.state IN ('failed', 'cancelled', 'lost') AND r.state",
		"@anywhere":    "(coalesce(pg_catalog.max(m.id), 0)::double precision * :share::double precision)::bigint",
	},
	placeholder: func(n int) string { return "$" + strconv.Itoa(n) },
	instant:     func(t time.Time) any { return t },
	id: func(s string) any {
		var u pgtype.UUID
		if err := u.Scan(s); err != nil {
			return s // the engine then reports that it is not a UUID
		}
		return u
	},
	document:   func(s string) any { return json.RawMessage(s) },
	list:       postgresArray,
	rows:       postgresRows,
	nested:     true,
	connector:  postgresConnector,
	jobs:       postgresJobs,
	encrypted:  func(q url.Values) bool { return q.Get("sslmode") == "verify-full" || q.Get("sslmode") == "verify-ca" },
	classify:   classifyPostgres,
	passedOn:   passedOnByPostgres,
	starting:   postgresStarts,
	atFault:    postgresAtFault,
	advise:     adviseOnPostgres,
	lacks:      lacksOnPostgres,
	SchemaLock: "SELECT pg_catalog.pg_advisory_xact_lock(7236832961)",
	functions:  "pg_catalog.",
	orReplace:  []string{"VIEW", "FUNCTION"},
	called:     map[string]string{"EXECUTE on dbjobs.record_attempt": "SELECT dbjobs.record_attempt(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"},
	replaces:   replaceOnPostgres,
	barrier:    postgresBarrier,
	quote:      `"`,
	besides:    besidesPostgres,
	views:      postgresViews,
	viewAlso:   alsoOfPostgresView,
}

// postgresArray writes a list as the text of an array: the driver would look up the encoding of each
// element separately.
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

// postgresConnector uses pgx's exec mode: one round trip per statement and no prepared statements, so
// that a transaction-pooling proxy may stand between; where none does, a few are prepared, see planOnce. A mode that first asks the server for the types of
// the arguments is wrong: the proxy may send the second trip to another session, which then executes
// what somebody else has prepared there, and reports success. The arguments are sent as text without a
// type, and the server infers the type from the statement.
func postgresConnector(raw string, o Options) (driver.Connector, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	if err := checkPostgresOptions(u.Query()); err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	foreign, service := o.Target && password == "" && u.Query().Get("password") == "", u.Query().Has("service")
	if foreign && !service {
		raw = withoutPassword(raw)
	}
	c, err := pgx.ParseConfig(raw) // its error omits the URL's password, and Open hides other secrets
	if err != nil {
		// the driver decrypts keys of an older form only
		return nil, &URLError{"malformed: " + afterColon(err.Error()) + ofEncryptedKey(u.Query().Get("sslkey"), "BEGIN ENCRYPTED")}
	}
	if foreign && service && c.Password == os.Getenv("PGPASSWORD") { // the service that the URL names has none
		c.Password = ""
	}
	if c.Password != c.User && c.Password != c.Database && c.Password != c.Host { // from the URL, PGPASSWORD or a password file
		o.Secrets.Issue(c.Password)
	}
	postgresSession(c, o.forJobs)
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	if o.forJobs {
		c.OnNotice = postgresNotice
		c.BuildFrontend = postgresReads(o.steps)
		c.BuildContextWatcherHandler = stopsPostgres
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
		return &postgresForJobs{Connector: stdlib.GetConnector(*c, options...)}, nil
	}
	return postgresBounded{stdlib.GetConnector(*c, options...)}, nil
}

// postgresSession sets the settings with which a session begins, whatever is set for the server, the database or the
// login. Statements and results are UTF-8; otherwise the engine would read them in the encoding of the database and
// store garbled text. The store reads instants in one form. Sessions of jobs keep the form that is set, because their
// own text is read in that form too.
//
// Pooling proxies know only a few parameters and refuse others; these are among the few. Other settings do not
// matter: no statement uses a form that depends on a setting.
func postgresSession(c *pgx.ConnConfig, forJobs bool) {
	if _, set := c.RuntimeParams["application_name"]; !set {
		c.RuntimeParams["application_name"] = "dbjobs"
	}
	ours := map[string]string{"client_encoding": "UTF8"}
	if !forJobs {
		ours["datestyle"] = "ISO"
	}
	for name := range c.RuntimeParams {
		if ours[strings.ToLower(name)] != "" { // the URL may write it in capital letters
			delete(c.RuntimeParams, name)
		}
	}
	maps.Copy(c.RuntimeParams, ours)
}

// withoutPassword is the URL of a target that gives no password. The environment may have one for the store's database, as
// PGPASSWORD or in the service of PGSERVICE, and another server must not learn it. An empty one in the URL goes before these. The
// driver then still looks into the password file, which has the passwords by host.
func withoutPassword(raw string) string {
	address, options, _ := strings.Cut(raw, "?")
	return address + "?password=&" + options
}

// afterColon drops "cannot parse `…`", which repeats the URL.
func afterColon(s string) string {
	if i := strings.LastIndex(s, "`: "); i >= 0 {
		return s[i+3:]
	}
	return s
}

// tablesOfPostgres are the tables by which a pass decides, as the elements of an array.
const tablesOfPostgres = "attempts,calendars,gaps,group_plans,groups,job_after,job_ends,job_schedules,jobs,pauses,plan_rules,plans,runs,schedules,steps"
