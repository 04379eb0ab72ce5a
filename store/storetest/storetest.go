// Package storetest runs one test on every database. There is no mock: each test has an empty database of its own on a
// real engine, dropped at the end.
package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the drivers with which databases are made and dropped
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
)

// URL returns the URL of a new, empty database on the engine. The database is dropped when the test ends.
func URL(t testing.TB, engine string) string {
	t.Helper()
	return fresh(t, engine, spareKind{}).url
}

// OpenSQL opens a database by its URL, for a test's own statements: see SQL. It connects with the first statement. On
// SQLite, it makes the file with our tables if there is none.
func OpenSQL(t testing.TB, rawURL string) *sql.DB {
	t.Helper()
	if strings.HasPrefix(rawURL, "sqlite:") {
		s, err := store.Open(t.Context(), rawURL, store.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return SQL(t, s)
	}
	// A store would have a session besides, and a session costs PostgreSQL more than most statements.
	e, err := engine.New(rawURL, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	db, err := e.JobPool(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(1)
	return db
}

// SQL opens the database of a store as the SQL of jobs does, for a test's own statements. It keeps one session for those
// that come one after the other: a new session costs a server more than most statements.
func SQL(t testing.TB, s *store.Store) *sql.DB {
	t.Helper()
	db, err := s.JobDB(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(1)
	return db
}

func fresh(t testing.TB, engine string, kind spareKind) *spareDB {
	t.Helper()
	for _, e := range engines {
		if e.name == engine {
			return e.fresh(t, kind)
		}
	}
	t.Fatalf("no engine %q", engine)
	return nil
}

// Skip skips a test that needs something that a developer's machine may lack. If CI is set, the test fails instead.
func Skip(t testing.TB, format string, a ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, a...)
	}
	t.Skipf(format, a...)
}

// DB is a database for one test.
type DB struct {
	*store.Store
	Engine string // the dialect of the SQL that the test writes
	Server string // the engine's name in DBJOBS_TEST_DATABASES, since servers of one dialect differ
	URL    string
	SQL    *sql.DB // a second pool of connections, for what people do with plain SQL
	Clock  *Clock

	direct string // its URL past a pooler, if there is one
}

// Table returns a table's name on the engine.
func (d *DB) Table(name string) string {
	return d.Store.Engine().Table(name)
}

// start is the time at which tests begin.
var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// Open returns a migrated database on the engine. Its clock is the test's.
func Open(t testing.TB, engine string, o store.Options) *DB {
	t.Helper()
	// A Wrap may count or change the statements that make the tables. With a Clock, these statements
	// record its time.
	database := fresh(t, engine, spareKind{migrated: o.Wrap == nil && o.Clock == nil})
	d := &DB{Engine: Dialect(engine), Server: engine, URL: database.url, direct: database.direct, Clock: NewClock(start)}
	if s := database.reopen(o); s != nil {
		d.Store, d.Clock = s, database.clock
	} else {
		d.open(t, database, o)
	}
	if d.direct != "" {
		d.SQL = OpenSQL(t, d.direct)
	} else {
		d.SQL = database.openSQL(t, d.Store)
	}
	// See SQL. The test before may have changed it.
	d.SQL.SetMaxIdleConns(1)
	database.isMade(t, d.SQL)
	return d
}

// open opens the store, and makes its tables.
func (d *DB) open(t testing.TB, database *spareDB, o store.Options) {
	t.Helper()
	stays := database.keeps() && database.store == nil && isPlain(o)
	if o.Clock == nil {
		o.Clock = d.Clock.Now
	}
	o.Create = true
	ctx := context.Background()
	s, err := store.Open(ctx, d.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	if stays {
		database.store, database.clock = s, d.Clock
	} else {
		t.Cleanup(func() { s.Close() })
	}
	if _, err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	d.Store = s
}

// openSQL opens the database of a store for a test's own statements, or returns what is open already.
func (s *spareDB) openSQL(t testing.TB, opened *store.Store) *sql.DB {
	t.Helper()
	if s.own != nil {
		return s.own
	}
	unwrapped := func(c driver.Connector) driver.Connector { return c }
	db, err := opened.JobDB(store.Options{Wrap: unwrapped})
	if err != nil {
		t.Fatal(err)
	}
	if s.keeps() {
		s.own = db
	} else {
		t.Cleanup(func() { db.Close() })
	}
	return db
}

// Each runs fn on every engine, each in a sub-test with a database of its own. The sub-tests run beside the other
// tests of the package, since a test on a server mostly waits. A test does nothing after it has called Each.
func Each(t *testing.T, fn func(t *testing.T, d *DB)) {
	t.Helper()
	each(t, Engines(t), fn)
}

func each(t *testing.T, list []string, fn func(t *testing.T, d *DB)) {
	t.Helper()
	t.Parallel()
	for _, e := range list {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			fn(t, Open(t, e, store.Options{}))
		})
	}
}

// OnTwo runs a test of a policy on SQLite and on one of the servers of the list. Policies are decided
// in pure Go. The statements are also those of many other tests, which together send each statement to
// every engine (MainOnEach). The name of the test chooses the server. With DBJOBS_PROVE, the test runs
// on every engine, as with Each. Use Each to test what an engine does by itself: locks, sessions,
// transactions, types, rights, and the order and number of rows.
func OnTwo(t *testing.T, fn func(t *testing.T, d *DB)) {
	t.Helper()
	each(t, EnginesFor(t, t.Name()), fn)
}

// InTurn runs case number i of a table of cases about policies on one engine of the list, and the next case
// on the next engine. Policies depend on no engine. With DBJOBS_PROVE, each case runs on every engine.
func InTurn(t *testing.T, i int, fn func(t *testing.T, d *DB)) {
	t.Helper()
	if prove.Whole() {
		Each(t, fn)
		return
	}
	t.Parallel()
	list := Engines(t)
	e := list[i%len(list)]
	t.Run(e, func(t *testing.T) { fn(t, Open(t, e, store.Options{})) })
}

// Exec runs plain SQL, as people would.
func (d *DB) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := d.SQL.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Int reads one number.
func (d *DB) Int(t testing.TB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := d.SQL.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// Clock is a clock that only the test moves.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands still at t.
func NewClock(t time.Time) *Clock { return &Clock{now: t} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Add moves the clock forward by d.
func (c *Clock) Add(d time.Duration) { c.Set(c.Now().Add(d)) }

// memory returns a new folder in memory, if the machine has room there and TMPDIR does not name
// another folder. Otherwise the folder is on disk. Tests can afford to lose their files. A file of
// SQLite that waits for no disk costs a third less CPU, and half the time.
func memory(t testing.TB) string {
	t.Helper()
	if os.Getenv("TMPDIR") != "" || !roomInMemory() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shm, "dbjobs-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's files: %v", err)
		}
	})
	return dir
}

const shm = "/dev/shm"

// onSQLite returns a file that does not exist yet, or a copy of one with our tables.
func onSQLite(t testing.TB, kind spareKind) *spareDB {
	t.Helper()
	file := filepath.Join(memory(t), "jobs.db")
	if kind.migrated {
		content, err := migratedFile()
		if err == nil {
			err = os.WriteFile(file, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return &spareDB{url: "sqlite:" + file}
}

// migratedFile is the content of a file of SQLite with our tables.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "dbjobs-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "jobs.db")
	s, err := store.Open(context.Background(), "sqlite:"+file, store.Options{Create: true, Clock: NewClock(start).Now})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil { // this moves everything that was written into the file
		return nil, err
	}
	return os.ReadFile(file)
})

func onPostgres(t testing.TB, kind spareKind) *spareDB {
	t.Helper()
	kind.variable, kind.driver = "DBJOBS_TEST_POSTGRES", "pgx"
	return spareOrNew(t, kind, pgxDSN)
}

func onMariaDB(t testing.TB, kind spareKind) *spareDB {
	t.Helper()
	kind.variable, kind.driver = "DBJOBS_TEST_MARIADB", "mysql"
	return spareOrNew(t, kind, mysqlDSN)
}

func onMySQL(t testing.TB, kind spareKind) *spareDB {
	t.Helper()
	kind.variable, kind.driver = "DBJOBS_TEST_MYSQL", "mysql"
	return spareOrNew(t, kind, mysqlDSN)
}

// spareOrNew gives a spare database, or makes one.
func spareOrNew(t testing.TB, kind spareKind, dsn func(*url.URL) string) *spareDB {
	t.Helper()
	s := takeSpare(kind)
	if s == nil {
		s = onServer(t, kind, "", dsn)
		s.isNew(t)
	}
	t.Cleanup(func() { s.giveBack(t) })
	return s
}
