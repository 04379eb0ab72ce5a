package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
)

// Options are the arguments of Open beside the URL.
type Options struct {
	// Create makes an SQLite file and its folder where they are missing. Servers are never created.
	Create bool
	// Wrap stands between database/sql and the driver in tests, to count calls or to break them.
	Wrap func(driver.Connector) driver.Connector
	// Login, if it is set, is asked before each new connection to a server whom to be and with which password, in place
	// of what the URL says: passwords may change while a process lives, and tokens last for minutes. An empty user leaves
	// the URL's.
	Login func(context.Context) (user, password string, err error)
	// Patience is how long a server that does not answer, or says that it starts, is asked again; 0: once.
	Patience time.Duration
	// Words are macros of the caller's in the statements, such as the columns that it reads in one order.
	Words *Words
	// Actions say what statements do, by their names: for errors. A statement without one is named by its name.
	Actions map[string]string

	// Secrets are hidden in all errors. The passwords of the database are added to them. Nil: there are
	// no others.
	Secrets *secret.Known

	// OtherFiles lets the SQL of jobs reach other files than the one of an SQLite database. It is for JobSessions.
	OtherFiles bool

	// Target says that the database is none of dbjobs' own: its settings stay as they are, and nothing of it is created.
	// What the environment holds for dbjobs' own database, such as PGPASSWORD, is not told to it.
	Target bool

	forJobs bool // the connections are for the SQL of jobs
	oneFile bool // and reach no other file
}

// DB is an open database. It needs no session state: a transaction-pooling proxy may stand between. A statement that it is
// given itself stands alone.
type DB struct {
	runner
	pool       *sql.DB
	e          *Engine
	statements *Statements
	actions    map[string]string
	url        string
	// around and login are the Wrap and the Login of the options.
	around func(driver.Connector) driver.Connector
	login  func(context.Context) (user, password string, err error)
	target bool     // see Options.Target
	spared sync.Map // names of statements that the server lacks something for
	// secrets are those of the URL and of the login, and those of the options: none of them is in an error or in a record.
	secrets *secret.Known

	mu       sync.Mutex
	sessions []*Sessions
}

// New is the database of a URL. Nothing connects to it before it is needed. The error is a *URLError, or says that an SQLite
// file is not there.
func New(rawURL string, o Options) (*DB, error) {
	e, err := of(rawURL, o.Target)
	if err != nil {
		return nil, err
	}
	db := &DB{e: e, statements: e.Statements(o.Words), actions: o.Actions, url: rawURL, around: o.Wrap, secrets: o.Secrets, target: o.Target}
	if db.secrets == nil {
		db.secrets = &secret.Known{}
	}
	db.secrets.AddURL(rawURL)
	if login := o.Login; login != nil {
		o.Login = func(ctx context.Context) (string, string, error) {
			user, password, err := login(ctx)
			db.secrets.Issue(password)
			return user, password, err
		}
	}
	db.login, o.Secrets = o.Login, db.secrets
	c, err := e.connector(rawURL, o)
	if err != nil {
		return nil, db.hide(err)
	}
	if c = connecting(e, c, db.makeRoom, o.Patience); o.Wrap != nil {
		c = o.Wrap(c)
	}
	db.pool = sql.OpenDB(c)
	db.runner = runner{db, db.pool}
	db.pool.SetMaxIdleConns(idle)
	return db, nil
}

// Open connects and makes sure that the database answers. Errors wrap ErrUnreachable, ErrSchema (no SQLite file) or
// ErrReadOnly, or are a *URLError.
func Open(ctx context.Context, rawURL string, o Options) (*DB, error) {
	db, err := New(rawURL, o)
	if err != nil {
		return nil, err
	}
	conn, err := db.pool.Conn(ctx) // connects; a ping would be one round trip more
	if err != nil {
		db.pool.Close()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			return nil, fmt.Errorf("connecting: %w: no answer in time", ErrUnreachable)
		}
		return nil, db.Wrap("connecting", err)
	}
	if err := conn.Close(); err != nil {
		return nil, db.Wrap("connecting", err)
	}
	return db, nil
}

// idle is how many connections wait for the next statement: those of many runs side by side, each of which would else
// connect anew for its end.
const idle = 32

// makeRoom ends the connections that wait for a statement, also of jobs: another may need one of them.
func (db *DB) makeRoom() {
	db.pool.SetMaxIdleConns(0)
	db.pool.SetMaxIdleConns(idle)
	db.mu.Lock()
	all := slices.Clone(db.sessions)
	db.mu.Unlock()
	for _, s := range all {
		s.giveUp()
	}
}

// Close ends the connections.
func (db *DB) Close() error { return db.pool.Close() }

// Sleep closes all connections but one: for a process that is frozen between its uses. Before the next one, Wake reports
// whether the database still answers on it.
func (db *DB) Sleep() { db.pool.SetMaxIdleConns(1) }

// Wake asks the database for a sign of life, after Sleep. While the process was frozen, the connection may have died on
// the way without a word: the end of ctx says how long to wait. After an error the database is to be closed.
func (db *DB) Wake(ctx context.Context) error {
	db.pool.SetMaxIdleConns(idle)
	return db.Wrap("waking the connection", db.pool.PingContext(ctx))
}

// JobPool is a pool of connections for the SQL of jobs, apart from the DB's own. Without a Wrap, it has the DB's; its Login
// is the DB's.
func (db *DB) JobPool(o Options) (*sql.DB, error) {
	o.forJobs, o.Login, o.Secrets, o.Target = true, db.login, db.secrets, db.target
	c, err := db.e.connector(db.url, o)
	if err != nil {
		return nil, db.hide(err)
	}
	c = connecting(db.e, c, db.makeRoom, 0) // it is awake
	if o.Wrap == nil {
		o.Wrap = db.around
	}
	if o.Wrap != nil {
		c = o.Wrap(c)
	}
	pool := sql.OpenDB(c)
	pool.SetMaxIdleConns(0) // thrown away after the run: whatever a statement did to its session goes with it
	return pool, nil
}

// Room is how many connections more the server would give to this login, as far as the login can see, and at least none.
// known reports whether the engine has such a bound.
func (db *DB) Room(ctx context.Context) (left int, known bool, err error) {
	if !db.Has("room") {
		return 0, false, nil
	}
	var name string
	var n, open int
	err = db.Query(ctx, "room", Args{}, func(r *sql.Rows) error {
		err := r.Scan(&name, &n)
		if !known || n < left && n > 0 {
			left, known = n, true
		}
		return err
	})
	if err == nil && db.Has("connections") {
		err = db.Row(ctx, "connections", Args{}, &name, &open)
	}
	return max(left-open, 0), known && err == nil, err
}

// Engine is the database's.
func (db *DB) Engine() *Engine { return db.e }

// Has reports whether the engine has a statement that others do without, and the server has not refused it for ever.
func (db *DB) Has(name string) bool { return db.statements.has(name) && !db.isSpared(name) }

// Where names the database for messages: scheme, host and path, never user, password or options.
func (db *DB) Where() string { return db.e.Where(db.url) }

// Where does the same for a URL.
func (e *Engine) Where(raw string) string {
	if e.where != nil {
		return e.where(raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return e.Name
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// Version is the engine's name and version, such as "PostgreSQL 15.18".
func (db *DB) Version(ctx context.Context) (string, error) {
	var v string
	if err := db.Row(ctx, "engine", Args{}, &v); err != nil {
		return "", err
	}
	if db.e.version != nil {
		v = db.e.version(v)
	}
	return v, nil
}

// Login is the name under which the database knows us, without host; empty where it knows no logins.
func (db *DB) Login(ctx context.Context) (string, error) {
	var v string
	err := db.Row(ctx, "login", Args{}, &v)
	return v, err
}

// Warning tells what is wrong with the settings of the database, and what to do; empty where nothing is.
func (db *DB) Warning(ctx context.Context) (string, error) {
	var path, login string
	err := db.Row(ctx, "path", Args{}, &path, &login)
	return PathProblem(path, login), err
}
