package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	sqlitedriver "modernc.org/sqlite"

	"github.com/dbjobs/dbjobs/store/fileowner"
	"github.com/dbjobs/dbjobs/store/nearest"
)

const sqliteLayout = "2006-01-02T15:04:05.000000Z"

var sqlite = &Engine{
	Name: "sqlite", OneWriter: true, Creates: true, TextIDs: true,
	schemes:  []string{"sqlite"},
	form:     "sqlite:path",
	prefix:   "dbjobs_",
	numbered: true,
	layout:   sqliteLayout,
	least:    "",
	macros: map[string]string{
		// SQLite's clock has milliseconds. They are padded to the fixed width of all instants, so that texts compare.
		"@now":      "coalesce(:now, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))",
		"@lease":    "strftime('%Y-%m-%dT%H:%M:%f000Z', @now, (:lease_ms / 1000.0) || ' seconds')",
		"@later":    "strftime('%Y-%m-%dT%H:%M:%f000Z', @now, (:later_ms / 1000.0) || ' seconds')",
		"@begun":    "min(@now, strftime('%Y-%m-%dT%H:%M:%f000Z', started_at, (:waited_ms / 1000.0) || ' seconds'))",
		"@aged":     "strftime('%Y-%m-%dT%H:%M:%f000Z', finished_at, ((SELECT j.keep_age_ms FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id) / 1000.0) || ' seconds')",
		"@greatest": "max",
		"@zero":     "0",
		"@true":     "1",
		"@false":    "0",
		// The mark of a change that the row itself does not show. The old text stays readable.
		"@touched": "planned || '.'",
		"@unread":  "input || ' edited'",
		// The second after the next time of a plan p: nominal times have whole seconds, and a creation has not.
		"@after_next_run": "strftime('%Y-%m-%dT%H:%M:%f000Z', p.next_run, '1 seconds')",
		// A change l that gave its job another not_before, or that created it with one.
		"@moves_start": "COALESCE(CASE WHEN json_valid(l.was) THEN l.was ->> 'not_before' END, '') <> COALESCE(CASE WHEN json_valid(l.became) THEN l.became ->> 'not_before' END, '')",
		"@has_tag":     "EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE t.value = p.subject)",
		"@each_tag":    "CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t",
		"@as_set":      "",
		"@knows":       "instr(p.startup_ids, char(10) || :startup || char(10)) > 0",
		"@stale_link":  "planned IS NOT schedule_id", "@stale_after": "planned IS NOT after_job_id", "@keyless": "@false", "@hidden": "@false",
		"@stale":     "planned IS NOT plan_input",
		"@queued":    "state = 'queued' AND queue",
		"@queue_key": "queue",
		// Written so that it does not match the index of queued runs: the ids are known, and that index may be long.
		"@is_queued": "state || '' = 'queued'",
		"@urgency":   "priority DESC",
		// Else SQLite would take the longer index, of whose columns more are given.
		"@by_defined": "INDEXED BY dbjobs.changes_defined",
		"@open":       "settled_at IS NULL AND job_id",
		// Without statistics, SQLite takes an index of all runs of a job for as good as that of the few that are open.
		"@by_open": "INDEXED BY dbjobs.runs_open", "@by_number": "",
		"@by_subject": "", "@by_asked": "", "@asked_at": "changed_at", "@by_end": "", "@by_paused": "", "@by_end_or_paused": "", "@by_stale": "", "@by_since": "",
		"@served":      "''",
		"@runnable":    "1 = 1",
		"@plan_owner":  "''",
		"@parked":      "parked IS NOT NULL",
		"@has_hooks":   "removed_at IS NULL AND COALESCE(on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) IS NOT NULL",
		"@failing":     "streak > 0",
		"@live":        "removed_at IS NULL AND name",
		"@skip":        "", // BEGIN IMMEDIATE lets one writer in at a time
		"@lock":        "",
		"@version":     "'SQLite ' || sqlite_version()",
		"@path":        "''",
		"@login":       "''",
		"@among":       "IN (SELECT value FROM json_each(:ids))",
		"@among_runs":  "IN (SELECT value FROM json_each(:ids))",
		"@among_names": "IN (SELECT value FROM json_each(:ids))",
		"@elsewhere":   "j.id NOT IN (SELECT value FROM json_each(:here))",
		"@these":       "IN (SELECT value FROM json_each(:ids))",
		"@these_runs":  "IN (SELECT value FROM json_each(:ids))",
		"@predecessor": "CASE WHEN dbjobs.runs.occurrence LIKE 'after:%' THEN substr(dbjobs.runs.occurrence, 7, 36) WHEN dbjobs.runs.occurrence LIKE 'hook:%' THEN substr(dbjobs.runs.occurrence, instr(substr(dbjobs.runs.occurrence, 6), ':') + 6, 36) END",
		"@meeting":     "'all:' || e.meets",
		"@quoted_name": "quote(g.name)",
		"@unwell":      "r.state IN ('failed', 'cancelled', 'lost') AND r.state",
		"@anywhere":    "CAST(COALESCE(MAX(m.id), 0) * :share AS INTEGER)",
	},
	placeholder: func(n int) string { return "?" + strconv.Itoa(n) },
	instant:     func(t time.Time) any { return t.Format(sqliteLayout) },
	id:          func(s string) any { return s },
	document:    func(s string) any { return s },
	list:        jsonList,
	rows:        sqliteRows,

	connector:  sqliteConnector,
	jobs:       sqliteJobs,
	classify:   classifySQLite,
	atFault:    sqliteAtFault,
	advise:     adviseOnSQLite,
	where:      whereSQLite,
	holderLock: sqliteHolderLock,
	problem:    sqliteProblem,
	unwritable: unwritableSQLite,
	views:      sqliteViews,
}

// sqlitePath returns the file that a sqlite: URL names.
func sqlitePath(raw string) (path string, options url.Values, err error) {
	_, rest, _ := strings.Cut(raw, ":")
	rest, query, _ := strings.Cut(rest, "?")
	rest = strings.TrimPrefix(rest, "//") // sqlite:///abs/path, sqlite://relative
	if path, err = url.PathUnescape(rest); err != nil || path == "" {
		return "", nil, &URLError{"want sqlite:PATH, such as sqlite:jobs.db or sqlite:///var/lib/dbjobs/jobs.db"}
	}
	if options, err = url.ParseQuery(query); err != nil {
		return "", nil, &URLError{"malformed options after ?"}
	}
	return ofDrive(runtime.GOOS, path), options, nil
}

// checkSQLiteOptions refuses an option, or a mode, that nothing reads: a mistyped mode=ro would let the file be written.
func checkSQLiteOptions(options url.Values) error {
	for name, values := range options {
		switch {
		case name == "mode" && len(values) == 1 && (values[0] == "ro" || values[0] == "rw"):
		case name == "mode":
			return &URLError{"mode: want ro or rw"}
		case nearest.To(name, []string{"mode"}) != "":
			return &URLError{fmt.Sprintf("options after ?: there is no %.40q; is mode meant?", name)}
		default:
			return &URLError{fmt.Sprintf("options after ?: there is no %.40q; want mode=ro, or none", name)}
		}
	}
	return nil
}

// ofDrive removes the slash before the drive of a path of Windows, as in sqlite:///C:/jobs.db.
func ofDrive(system, path string) string {
	if system == "windows" && len(path) > 2 && path[0] == '/' && path[2] == ':' {
		return path[1:]
	}
	return path
}

func whereSQLite(raw string) string {
	path, _, _ := sqlitePath(raw)
	return "sqlite:" + path
}

// sqliteFile checks that the path names a regular file. With Create, it makes a file that is not there.
func sqliteFile(path string, o Options) error {
	if o.Create {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("%w: creating the folder of the database: %w", ErrReadOnly, err)
		}
		if err := makePrivate(path); err != nil {
			return fmt.Errorf("%w: creating the database: %w", ErrReadOnly, err)
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && o.Target:
		return fmt.Errorf("%w: there is no file %s", ErrUnreachable, path)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: there is no database at %s; `dbjobs migrate` creates it", ErrSchema, path)
	case err != nil:
		return fmt.Errorf("%w: opening the database: %w", ErrUnreachable, err)
	case info.IsDir():
		return fmt.Errorf("%w: %s is a folder; name a file (a container makes a folder where the file that it mounts is missing)", ErrUnreachable, path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file; name one", ErrUnreachable, path)
	}
	return nil
}

// sqliteConnector opens the file in WAL mode, unless it is a target, with full durability; for the commits of steps,
// see syncWithLedger. Every transaction begins IMMEDIATE: a deferred transaction that begins to write fails at once
// instead of waiting for the busy timeout.
func sqliteConnector(raw string, o Options) (driver.Connector, error) {
	path, options, err := sqlitePath(raw)
	if err != nil {
		return nil, err
	}
	if err := checkSQLiteOptions(options); err != nil {
		return nil, err
	}
	if path == ":memory:" {
		return nil, &URLError{"sqlite::memory: would forget every job at exit; give a file"}
	}
	if o.Target && !filepath.IsAbs(path) {
		return nil, &URLError{"the file of a target needs an absolute path, as in sqlite:///srv/shop.db: dbjobs is started in various folders"}
	}
	if err := sqliteFile(path, o); err != nil {
		return nil, err
	}
	q := url.Values{}
	q.Set("_txlock", "immediate")
	q["_pragma"] = []string{"busy_timeout(100)", "synchronous(FULL)", "foreign_keys(1)"}
	if !o.Target { // it changes the file, for all its users
		q.Add("_pragma", "journal_mode(WAL)")
	}
	mode := "rw"
	if o.Create {
		mode = "rwc"
	}
	if options.Get("mode") == "ro" {
		mode = "ro"
	}
	q.Set("mode", mode)
	one, err := sqlitedriver.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode())
	if o.file == nil {
		o.file = &openFile{}
	}
	bare := sqliteOfFile{sqliteInTurn{one, []string{"PRAGMA busy_timeout = 10000", sqliteTemporaries(path, temporaryFolders())}}, o.file}
	if o.file.path == "" {
		o.file.path = path
	}
	if o.forJobs {
		return sqliteForJobs{bare, o.oneFile, !o.Target}, err
	}
	return sqliteKeeping{bare}, err
}

// sqliteInTurn connects again where another process has the file locked, so that the end of the context ends the wait. Where
// several processes at once set a new file to WAL, SQLite says that it is locked, whatever the busy timeout is, since two
// processes that waited for each other there would wait for ever.
type sqliteInTurn struct {
	driver.Connector
	settings []string // of the connection, once it is made; an empty one is left out
}

// sqlitePatience is how long to wait for a file that another process has locked as a whole.
const sqlitePatience = 10 * time.Second

// Connect connects.
func (c sqliteInTurn) Connect(ctx context.Context) (driver.Conn, error) {
	over := time.NewTimer(sqlitePatience)
	defer over.Stop()
	for {
		conn, err := c.connect(ctx)
		if err == nil || classifySQLite(err) != transient {
			return conn, err
		}
		err = fmt.Errorf("%w: %w", errFileLocked, err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-over.C:
			return nil, err
		case <-time.After(rand.N(10 * time.Millisecond)):
		}
	}
}

var errFileLocked = fmt.Errorf("%w: another process has the file locked", ErrReadOnly)

func (c sqliteInTurn) connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the driver's connections lack a method that dbjobs needs"), conn.Close())
	}
	for _, setting := range c.settings {
		if setting == "" {
			continue
		}
		if _, err := whole.ExecContext(ctx, setting, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// makePrivate creates the file of a new database so that only its owner can read it, whatever the umask:
// definitions, and data of jobs in the same file, may be secret. SQLite gives the files that it creates
// beside it the same rights. The rights of an existing file stay as they are. An existing file is not
// opened here: closing it would free the locks that this process has on it.
//
// Root may make the database of a service. The owner of the file is then that of its folder, who could read no file of root's. What
// a link names stays root's: it may be another file by now.
//
// Crash window: an empty file is a database without tables. The next process that creates the database
// fills it.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return nil
		}
		f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // what a link names
	case err == nil && os.Geteuid() == 0:
		if folder, err := os.Stat(filepath.Dir(path)); err == nil {
			fileowner.Like(f, folder)
		}
	}
	if err != nil {
		return err
	}
	return f.Close()
}
