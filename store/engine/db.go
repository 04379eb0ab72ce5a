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

// Options are the arguments of Open besides the URL.
type Options struct {
	// Create makes an SQLite file and its folder where they are missing. Servers are never created.
	Create bool
	// Wrap stands between database/sql and the driver in tests, to count calls or to break them.
	Wrap func(driver.Connector) driver.Connector
	// Login, if set, returns the user and the password for each new connection to a server, in place of those in the
	// URL: passwords may change while a process lives, and tokens last for minutes. An empty user means the URL's
	// user.
	Login func(context.Context) (user, password string, err error)
	// Patience is how long Open keeps asking a server that does not answer, or that says that it is starting; 0: it
	// asks once.
	Patience time.Duration
	// Words are macros of the caller in the statements, such as the columns that the caller always reads in one
	// order.
	Words *Words
	// Actions say what each statement does, by the name of the statement. Errors use them. If a statement has no
	// action, errors use its name.
	Actions map[string]string

	// Secrets are hidden in all errors. The passwords of the database are added to them. Nil: there are no others.
	Secrets *secret.Known

	// OtherFiles lets the SQL of jobs reach other files than the one of an SQLite database. It is for JobSessions.
	OtherFiles bool

	// Target says that the database does not hold dbjobs' own tables: its settings stay as they are, and nothing is
	// created in it. It does not get a password that the environment holds for dbjobs' own database, as PGPASSWORD or in the
	// service of PGSERVICE.
	Target bool

	forJobs bool      // the connections are for the SQL of jobs
	steps   bool      // in the sessions of steps: nobody reads a long value to its end
	oneFile bool      // these connections reach no other file
	file    *openFile // see DB
}

// DB is an open database. It needs no session state, so a transaction-pooling proxy may stand between. A statement
// that is executed on the DB directly is a transaction of its own.
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
	target bool      // see Options.Target
	file   *openFile // of SQLite; nil on a server
	spared sync.Map  // names of statements for which the server lacks something
	// secrets are those of the URL, of the login and of the options. No error and no record shows one of them.
	secrets *secret.Known

	mu       sync.Mutex
	sessions []*Sessions
}

// New returns the database of a URL. It does not connect before a connection is needed. The error is a *URLError, or
// says that an SQLite file does not exist.
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
		inURL := ""
		if u, err := secret.ParseURL(rawURL); err == nil {
			_, inURL = secret.Login(u)
		}
		o.Login = func(ctx context.Context) (string, string, error) {
			user, password, err := login(ctx)
			if password != inURL { // AddURL knows that one, and what of it is public: it may be the name of the login, too
				db.secrets.Issue(password)
			}
			return user, password, err
		}
	}
	db.login, o.Secrets = o.Login, db.secrets
	if e.OneWriter {
		db.file = &openFile{}
	}
	if e.OneWriter && o.Target {
		db.file.leave = db.makeRoom
	}
	o.file = db.file
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
	if !e.OneWriter { // a file that is replaced is noticed
		db.pool.SetConnMaxLifetime(ConnLifetime)
	}
	return db, nil
}

// Open connects and makes sure that the database answers. Errors wrap ErrUnreachable, ErrSchema (no SQLite file) or
// ErrReadOnly, or are a *URLError.
func Open(ctx context.Context, rawURL string, o Options) (*DB, error) {
	db, err := New(rawURL, o)
	if err != nil {
		return nil, err
	}
	conn, err := db.pool.Conn(ctx) // this connects; a ping would need one more round trip
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

// idle is how many connections are kept open for the next statement. When many runs execute at once, each of them
// would otherwise connect again to record its end.
const idle = 32

// ConnLifetime is how long a connection to a server is used again. The name in a URL may lead to another server by now, such as one
// that was restored from a backup, while the old one goes on: the sessions of steps are with the new one then.
const ConnLifetime = 5 * time.Minute

// makeRoom closes the connections that wait for a statement, also those for jobs: another process may need one of
// them. While a job's statements are executed, one of the store's own stays. Otherwise jobs could take all connections
// that the login may have, no heartbeat could extend the leases of their runs, and another pass would execute them again.
func (db *DB) makeRoom() {
	stays := 0
	if db.giveUp() {
		stays = 1
	}
	db.pool.SetMaxIdleConns(stays)
	db.pool.SetMaxIdleConns(idle)
}

// giveUp closes the connections for jobs that wait for a statement. It reports whether a job's statements are executed.
func (db *DB) giveUp() (atWork bool) {
	db.mu.Lock()
	all := slices.Clone(db.sessions)
	db.mu.Unlock()
	for _, s := range all {
		s.giveUp()
		atWork = atWork || s.atWork()
	}
	return atWork
}

// leave closes all connections that wait for a statement, if an error is the answer of a server that may have handed over to
// another one. Its sessions may live on, and would get the same answer for ever. A new connection may lead to the other server.
// The connection that got the answer waits by now, too.
func (db *DB) leave(err error) {
	if err == nil || !db.e.handsOver(err) {
		return
	}
	db.giveUp()
	db.pool.SetMaxIdleConns(0)
	db.pool.SetMaxIdleConns(idle)
}

// Close ends the connections.
func (db *DB) Close() error { return db.pool.Close() }

// Sleep closes all connections but one, for a process that is frozen between its uses. Before the next use, Wake
// reports whether the database still answers on that connection.
func (db *DB) Sleep() { db.pool.SetMaxIdleConns(1) }

// Wake asks the database for an answer, after Sleep. While the process was frozen, the connection may have been lost
// without a notice: ctx bounds the wait for an answer. After an error, the caller closes the database.
func (db *DB) Wake(ctx context.Context) error {
	db.pool.SetMaxIdleConns(idle)
	return db.Wrap("waking the connection", db.pool.PingContext(ctx))
}

// JobPool returns a pool of connections for the SQL of jobs, apart from the DB's own connections. It has the DB's
// Login. It has the DB's Wrap unless the options have one.
func (db *DB) JobPool(o Options) (*sql.DB, error) {
	o.forJobs, o.Login, o.Secrets, o.Target, o.file = true, db.login, db.secrets, db.target, db.file
	c, err := db.e.connector(db.url, o)
	if err != nil {
		return nil, db.hide(err)
	}
	c = connecting(db.e, c, db.makeRoom, 0) // no Patience: the server is awake
	if o.Wrap == nil {
		o.Wrap = db.around
	}
	if o.Wrap != nil {
		c = o.Wrap(c)
	}
	pool := sql.OpenDB(c)
	pool.SetMaxIdleConns(0) // a connection is closed after the run: all that a statement did to its session ends with it
	return pool, nil
}

// Room is how many more connections the server would give to this login, as far as the login can see. It is never
// negative. known reports whether the engine has such a limit.
func (db *DB) Room(ctx context.Context) (left int, known bool, err error) {
	if !db.Has("room") {
		return 0, false, nil
	}
	var name string
	var n, open int
	if db.Has("connections") {
		err = db.Row(ctx, "connections", Args{}, &name, &open)
	}
	if err != nil {
		return 0, false, err
	}
	err = db.Query(ctx, "room", Args{}, Scan(func() {
		if name == "in total" {
			n -= open
		}
		if !known || n < left {
			left, known = n, true
		}
	}, &name, &n))
	return max(left, 0), known && err == nil, err
}

// Engine returns the engine of the database.
func (db *DB) Engine() *Engine { return db.e }

// Has reports whether the engine has a statement that other engines lack, and the server has not refused it for good.
func (db *DB) Has(name string) bool { return db.statements.has(name) && !db.isSpared(name) }

// Where names the database for messages: scheme, host and path, never user, password or options.
func (db *DB) Where() string { return db.e.Where(db.url) }

// Where is like DB.Where, for a URL.
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

// Login is the name under which the database knows this program, without the host. It is empty where the database has
// no logins.
func (db *DB) Login(ctx context.Context) (string, error) {
	var v string
	err := db.Row(ctx, "login", Args{}, &v)
	return v, err
}

// Warning describes a problem of the database's settings, and what to do. It is empty where there is none.
func (db *DB) Warning(ctx context.Context) (string, error) {
	var path, login string
	err := db.Row(ctx, "path", Args{}, &path, &login)
	return db.Problem(path, login), err
}

// Problem describes a problem of the database's settings, and what to do. path and login are the values of @path and @login.
func (db *DB) Problem(path, login string) string {
	if db.e.problem != nil {
		return db.e.problem(db.url)
	}
	return pathProblem(path, login)
}
