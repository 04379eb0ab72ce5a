package engine

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

var mysqlEngine = &Engine{
	Name: "mysql", KnowsLogins: true, TextIDs: true, Port: 3306,
	// READ COMMITTED: under InnoDB's REPEATABLE READ a range scan locks gaps, so sessions that take runs
	// and sessions that insert runs into the same index block each other.
	Isolation: sql.LevelReadCommitted,
	schemes:   []string{"mysql", "mariadb"},
	form:      "mysql://user:password@host/database",
	prefix:    "dbjobs_",
	layout:    "2006-01-02 15:04:05.000000",
	least:     0, // not every sql_mode allows the constant 0000-00-00
	macros: map[string]string{
		"@now":      "CAST(COALESCE(:now, UTC_TIMESTAMP(6)) AS DATETIME(6))",
		"@lease":    "DATE_ADD(@now, INTERVAL 1000 * :lease_ms MICROSECOND)",
		"@later":    "DATE_ADD(@now, INTERVAL 1000 * :later_ms MICROSECOND)",
		"@begun":    "LEAST(@now, DATE_ADD(started_at, INTERVAL 1000 * :waited_ms MICROSECOND))",
		"@aged":     "DATE_ADD(finished_at, INTERVAL 1000 * (SELECT j.keep_age_ms FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id) MICROSECOND)",
		"@greatest": "GREATEST",
		"@zero":     "0",
		"@true":     "1",
		"@false":    "0",
		// The mark of a change that the row itself does not show. The old text stays readable.
		"@touched": "CONCAT(planned, '.')",
		"@unread":  "CONCAT(input, ' edited')",
		// The second after the next time of a plan p: nominal times have whole seconds, and a creation has not.
		"@after_next_run": "DATE_ADD(p.next_run, INTERVAL 1 SECOND)",
		// A change l that gave its job another not_before, or that created it with one.
		"@moves_start": "COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.was, '$.not_before')), '') <> COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.became, '$.not_before')), '')",
		// With JSON_CONTAINS, MariaDB compares a tag as it is written, and SQL may write it with escapes.
		"@has_tag":  "JSON_SEARCH(j.tags, 'one', REPLACE(REPLACE(REPLACE(p.subject, '|', '||'), '%', '|%'), '_', '|_'), '|') IS NOT NULL",
		"@each_tag": "CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t",
		// Without it, MySQL would read the whole set for each row that it asks about. For MariaDB, it is a comment.
		"@as_set":     "/*+ SUBQUERY(MATERIALIZATION) */",
		"@knows":      "INSTR(p.startup_ids, CONCAT(CHAR(10), :startup, CHAR(10))) > 0",
		"@stale_link": "stale = 1", "@stale_after": "stale = 1", "@keyless": "@false", "@hidden": "@false",
		"@stale":     "stale = 1",
		"@queued":    "queued_in",
		"@queue_key": "queued_in",
		"@is_queued": "state = 'queued'",
		"@urgency":   "urgency",
		"@open":      "open_job_id",
		"@defined":   "l.defined_job_id",
		"@asked_at":  "asked_at",
		// Most runs have ended. MySQL and newer MariaDBs take the number of ended runs for that of one job, and would
		// read all runs for each job.
		"@by_open": "FORCE INDEX (runs_open)",
		// The engine might read all runs of the job by the key of their occurrences, and sort them.
		"@by_number": "FORCE INDEX (runs_number)",
		// The engine takes a table that grew since its statistics were made for a small one, and would read all of it
		// for each job.
		"@by_subject": "FORCE INDEX (changes_subject)", "@by_defined": "FORCE INDEX (changes_defined)", "@by_asked": "FORCE INDEX (changes_asked)",
		// Pauses are wanted by id; MySQL would rather read all pauses on record than sort the few that hold.
		"@by_end": "FORCE INDEX (pauses_ends)", "@by_paused": "FORCE INDEX (pauses_subject)", "@by_end_or_paused": "FORCE INDEX (pauses_ends, pauses_subject)",
		"@by_stale": "FORCE INDEX (pauses_stale)", "@by_since": "FORCE INDEX (ticks_since)",
		"@served":     "CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4)",
		"@runnable":   "(SELECT j.id FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id AND (j.owner = @served OR j.owner IN (:each_owners))) IS NOT NULL",
		"@plan_owner": "j.owner",
		"@parked":     "parked_job_id IS NOT NULL",
		"@has_hooks":  "has_hooks = 1",
		"@failing":    "failing_job_id IS NOT NULL",
		"@live":       "live_name",
		"@skip":       "FOR UPDATE SKIP LOCKED",
		"@lock":       "FOR UPDATE",
		"@version":    "VERSION()",
		"@path":       "''",
		"@login":      "LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))",
		// With a subquery, MariaDB would scan the table for an update or delete. So the ids are written one by one.
		"@these":       "IN (:each_ids)",
		"@these_runs":  "IN (:each_ids)",
		"@among":       "IN (:each_ids)",
		"@among_runs":  "IN (:each_ids)",
		"@among_names": "IN (:each_ids)",
		"@elsewhere":   "NOT j.id IN (:each_here)",
		"@predecessor": "CONVERT(CASE WHEN dbjobs.runs.occurrence LIKE 'after:%' THEN SUBSTR(dbjobs.runs.occurrence, 7, 36) WHEN dbjobs.runs.occurrence LIKE 'hook:%' THEN SUBSTRING_INDEX(SUBSTRING_INDEX(dbjobs.runs.occurrence, ':', 3), ':', -1) END USING ascii) COLLATE ascii_bin",
		"@meeting":     "CONCAT('all:', e.meets)",
		"@quoted_name": "QUOTE(g.name)",
		"@unwell":      "r.unwell",
		"@anywhere":    "CAST(COALESCE(MAX(m.id), 0) * :share AS SIGNED)",
	},
	placeholder: func(int) string { return "?" },
	instant:     func(t time.Time) any { return t.Format("2006-01-02 15:04:05.000000") },
	id:          func(s string) any { return s },
	document:    func(s string) any { return s },
	list:        jsonList,
	rows:        mysqlRows,

	connector:  mysqlConnector,
	jobs:       mysqlJobs,
	encrypted:  encryptedMySQL,
	classify:   classifyMySQL,
	passedOn:   passedOnByMySQL,
	starting:   mysqlStarts,
	atFault:    mysqlAtFault,
	advise:     adviseOnMySQL,
	version:    mysqlVersion,
	untold:     "only a login with the PROCESS privilege can see which sessions hold locks",
	ddlCommits: true,
	lacks:      lacksOnMySQL,
	unusable:   unusableOnMySQL,
	orReplace:  []string{"VIEW"},
	mayReplace: []string{"FUNCTION", "PROCEDURE"},

	rightsOf:     map[string]string{"VIEW": "CREATE VIEW and DROP", "FUNCTION": "CREATE ROUTINE and ALTER ROUTINE", "PROCEDURE": "CREATE ROUTINE and ALTER ROUTINE"},
	clientSplits: true,
	hides:        true,
	quote:        "`",
	account:      mysqlAccount,
	views:        mysqlViews,
	barrier:      mysqlBarrier,
}

// mysqlVersion makes the server's version readable, such as 10.11.14-MariaDB-0+deb12u2.
func mysqlVersion(v string) string {
	if name, rest, ok := strings.Cut(v, "-MariaDB"); ok {
		return strings.TrimSpace("MariaDB " + name + strings.SplitN(rest, "-", 2)[0])
	}
	return "MySQL " + v
}

// mysqlConnector reads mysql://user:password@host:port/database?option=value, with the driver's options and some
// options of MySQL's own clients (see mysqlAddress and mysqlTLS). With interpolateParams, a statement needs one round
// trip instead of three. With clientFoundRows, an update that changes nothing still counts its row; otherwise the
// count would look as if the fence had refused the row.
func mysqlConnector(raw string, o Options) (driver.Connector, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	if err := checkMySQLOptions(query); err != nil {
		return nil, err
	}
	socket, checked := query.Get("socket"), encryptedMySQL(u.Query())
	certificates, err := takeMySQLTLS(query)
	if err != nil {
		return nil, err
	}
	query.Del("charset") // they always have the same value
	query.Del("collation")
	c := mysql.NewConfig()
	if q := query.Encode(); q != "" {
		if c, err = mysql.ParseDSN("/?" + q); err != nil {
			return nil, &URLError{"options after ?: " + strings.TrimPrefix(err.Error(), "invalid DSN: ")}
		}
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	if c.DBName == "" {
		return nil, &URLError{"names no database: want mysql://USER@HOST:PORT/DATABASE"}
	}
	if err := mysqlAddress(c, u, socket); err != nil {
		return nil, err
	}
	if err := certificates.apply(c, u.Hostname()); err != nil {
		return nil, err
	}
	// Instants are read as text. For an invalid date such as 2026-00-00, the driver would return an error
	// that ends the rows, or another day; and for 0000-00-00 an ordinary time.
	c.InterpolateParams, c.ClientFoundRows, c.ParseTime, c.Loc = true, true, false, time.UTC
	c.MultiStatements = false
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	c.Logger = silent{}
	// The password from Login may be a token that the server wants in plain text, unless the URL has a password, too. It is
	// sent only over verified TLS.
	c.AllowCleartextPasswords = c.AllowCleartextPasswords || o.Login != nil && checked && c.Passwd == ""
	mysqlSession(c, o.forJobs)
	if err := c.Apply(mysql.BeforeConnect(func(ctx context.Context, c *mysql.Config) error {
		if l, ok := ctx.Value(lossOf{}).(*mysqlLoss); ok {
			c.Logger = l
		}
		if o.Login == nil {
			return nil
		}
		user, password, err := o.Login(ctx)
		if err != nil {
			return err
		}
		c.User, c.Passwd = cmp.Or(user, c.User), password
		return nil
	})); err != nil {
		return nil, err
	}
	if o.forJobs {
		return newMySQLForJobs(c, c.TLS == nil && !query.Has("compress"))
	}
	bare, err := mysql.NewConnector(c)
	return mysqlBounded{bare, c.Timeout}, err
}

// mysqlSession sets the settings with which a session begins, whatever the server's settings are. The driver sends
// all of them in one statement. In sessions for jobs, each statement is its own transaction unless the text begins
// one, and results are not cut off; other settings stay as they are.
func mysqlSession(c *mysql.Config, forJobs bool) {
	c.Collation = mysqlOfEach["collation_connection"]
	ours := map[string]string{"autocommit": "1", "completion_type": "0"}
	maps.Copy(ours, mysqlOfEach)
	if forJobs {
		ours[mysqlUnreset] = "COALESCE(" + mysqlUnreset + " + 1, 0)"
	} else {
		maps.Copy(ours, mysqlOfStore)
		ours[mysqlIsolation] = "'REPEATABLE-READ'" // outside of transactions: uncommitted changes of others are not seen
	}
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	for name, wait := range map[string]time.Duration{"innodb_lock_wait_timeout": lockWait, "lock_wait_timeout": lockPatience} {
		if c.Params[name] == "" && !forJobs { // for locks of rows, and of tables that another session alters
			c.Params[name] = strconv.Itoa(int(wait.Seconds()))
		}
	}
	maps.Copy(c.Params, ours)
}

// mysqlOfEach has settings of all our sessions, mysqlOfStore those of the sessions in which the store's own statements are
// executed. Within a transaction, none of them ends it.
var (
	mysqlOfEach = map[string]string{"character_set_client": "utf8mb4", "character_set_results": "utf8mb4", "collation_connection": "utf8mb4_bin",
		"sql_select_limit": "9223372036854775807"} // no limit; some servers that only speak the protocol accept no larger number
	mysqlOfStore = map[string]string{"sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'", "sql_safe_updates": "0", "sql_auto_is_null": "0",
		"sql_big_selects": "1",          // otherwise max_join_size applies
		mysqlDepth:        "4294967295"} // the largest: a chain of jobs, and a list of names, may be longer than the usual 1,000
)

// mysqlDepth is the variable that bounds how many levels a recursive statement may have. Beyond it, MySQL refuses the statement,
// and MariaDB leaves out the rest without a word. For its two names, see mysqlIsolation.
const mysqlDepth = "/*M! max_recursive_iterations */ /*!80003 cte_max_recursion_depth */"

// mysqlIsolation is the variable of the session's isolation: each server reads its own name, and takes the other one
// as a comment.
const mysqlIsolation = "/*M! tx_isolation */ /*!80003 transaction_isolation */"

// mysqlAddress sets the host, or the path of a Unix socket from the option socket: some platforms mount
// a socket of the database.
func mysqlAddress(c *mysql.Config, u *url.URL, socket string) error {
	switch {
	case strings.HasPrefix(socket, "/") && u.Host == "":
		c.Net, c.Addr = "unix", socket
	case socket != "":
		return &URLError{"socket needs an absolute path, and no host: mysql://USER@/DATABASE?socket=/run/mysqld/mysqld.sock"}
	case u.Host == "":
		return &URLError{"names no host: want mysql://USER@HOST:PORT/DATABASE, or ?socket=PATH"}
	case u.Port() == "":
		c.Net, c.Addr = "tcp", net.JoinHostPort(u.Hostname(), "3306")
	default:
		c.Net, c.Addr = "tcp", u.Host
	}
	return nil
}

// silent drops the texts that the driver would print: errors are returned, not logged.
type silent struct{}

func (silent) Print(...any) {}
