package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
)

// Options are what the tests and the embedded default need beyond a URL.
type Options struct {
	// Create makes an SQLite file, its folder and its tables where they are missing. Servers are never created.
	Create bool
	// Clock stands for the database's clock in tests. Nil means the database's own, which is the only one that
	// decides what is due.
	Clock func() time.Time
	// Wrap stands between database/sql and the driver in tests, to count calls or to break them.
	Wrap func(driver.Connector) driver.Connector
	// Login, if it is set, is asked before each new connection to a server whom to be and with which password, in place
	// of what the URL says: passwords may change while a process lives, and tokens last for minutes. An empty user leaves
	// the URL's.
	Login func(context.Context) (user, password string, err error)

	forJobs bool // the connections are for the SQL of jobs
	secrets *secret.Known
}

// Store is an open database. It holds no session state: a transaction-pooling proxy may stand between.
type Store struct {
	db    *sql.DB
	d     *dialect
	clock func() time.Time
	url   string
	// around and login are the Wrap and the Login of the options.
	around func(driver.Connector) driver.Connector
	login  func(context.Context) (user, password string, err error)
	// secrets are those of the URL and of the login: none of them is in an error or in a record.
	secrets *secret.Known
}

// Open connects and makes sure that the database answers. It does not look at the schema: CheckSchema and Probe do.
// Errors wrap ErrUnreachable, ErrSchema (no SQLite file) or ErrReadOnly, or are a *URLError.
func Open(ctx context.Context, rawURL string, o Options) (*Store, error) {
	d, err := dialectOf(rawURL)
	if err != nil {
		return nil, err
	}
	s := &Store{d: d, clock: o.Clock, url: rawURL, around: o.Wrap, secrets: &secret.Known{}}
	s.secrets.AddURL(rawURL)
	if login := o.Login; login != nil {
		o.Login = func(ctx context.Context) (string, string, error) {
			user, password, err := login(ctx)
			s.secrets.Issue(password)
			return user, password, err
		}
	}
	s.login, o.secrets = o.Login, s.secrets
	c, err := d.connector(rawURL, o)
	if err != nil {
		return nil, s.hide(err)
	}
	if c = connecting(d, c, func() {}); o.Wrap != nil {
		c = o.Wrap(c)
	}
	s.db = sql.OpenDB(c)
	s.db.SetMaxIdleConns(idle)
	conn, err := s.db.Conn(ctx) // connects; a ping would be one round trip more
	if err != nil {
		s.db.Close()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			return nil, fmt.Errorf("connecting: %w: there was no answer in time", ErrUnreachable)
		}
		return nil, s.wrap("connecting", err)
	}
	if err := conn.Close(); err != nil {
		return nil, s.wrap("connecting", err)
	}
	if o.Create && d == sqlite {
		if _, err := s.Migrate(ctx); err != nil {
			s.db.Close()
			return nil, err
		}
	}
	return s, nil
}

// idle is how many connections wait for the next statement: those of many runs side by side, each of which would else
// connect anew for its end.
const idle = 32

// makeRoom ends the store's connections that wait for a statement: the SQL of jobs may need one of them.
func (s *Store) makeRoom() {
	s.db.SetMaxIdleConns(0)
	s.db.SetMaxIdleConns(idle)
}

// Close ends the connections.
func (s *Store) Close() error { return s.db.Close() }

// Sleep closes all connections but one: for a process that is frozen between its uses. Before the next one, Wake tells
// whether the database still answers on it.
func (s *Store) Sleep() { s.db.SetMaxIdleConns(1) }

// Wake asks the database for a sign of life, after Sleep. While the process was frozen, the connection may have died on
// the way without a word: the end of ctx says how long to wait. After an error the store is to be closed.
func (s *Store) Wake(ctx context.Context) error {
	s.db.SetMaxIdleConns(idle)
	return s.wrap("waking the connection", s.db.PingContext(ctx))
}

// Dialect is the dialect's name: postgres, mysql or sqlite.
func (s *Store) Dialect() string { return s.d.name }

// Writers is how many transactions of one process it pays to have under way at once.
func (s *Store) Writers() int {
	if s.d == sqlite { // it has one writer at a time
		return 1
	}
	return 2
}

// Engine is the engine's name and version, such as "PostgreSQL 15.18".
func (s *Store) Engine(ctx context.Context) (string, error) {
	var v string
	if err := s.row(ctx, s.db, "engine", args{}, &v); err != nil {
		return "", err
	}
	if s.d == mysqlDialect {
		if name, rest, ok := strings.Cut(v, "-MariaDB"); ok {
			return strings.TrimSpace("MariaDB " + name + strings.SplitN(rest, "-", 2)[0]), nil
		}
		return "MySQL " + v, nil
	}
	return v, nil
}

// Login is the name under which the database knows us, without host; empty on SQLite, which knows no logins.
func (s *Store) Login(ctx context.Context) (string, error) {
	var v string
	err := s.row(ctx, s.db, "login", args{}, &v)
	return v, err
}

// Warning tells what is wrong with the settings of the database, and what to do; empty where nothing is.
func (s *Store) Warning(ctx context.Context) (string, error) {
	var path, login string
	err := s.row(ctx, s.db, "path", args{}, &path, &login)
	return pathProblem(path, login), err
}

// now is the argument :now of the statements: nil leaves the time to the database.
func (s *Store) now() any {
	if s.clock == nil {
		return nil
	}
	return s.d.encode(s.clock())
}

// querier is what a connection pool, a connection and a transaction have in common.
type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

func (s *Store) prepare(name string, a args) (string, []any, error) {
	st, err := s.d.statement(name)
	if err != nil {
		return "", nil, err
	}
	return st.bind(s.d, a)
}

// exec runs a named statement and counts the rows that it found.
func (s *Store) exec(ctx context.Context, q querier, name string, a args) (int64, error) {
	text, bound, err := s.prepare(name, a)
	if err != nil {
		return 0, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	res, err := insist(ctx, s, q, writing, func() (sql.Result, error) { return q.ExecContext(ctx, text, bound...) })
	if err != nil {
		if _, locked := q.(*sql.Tx); !locked {
			err = s.waited(err)
		}
		return 0, s.wrap(words(name), unanswered(ctx, err))
	}
	n, err := res.RowsAffected()
	return n, s.wrap(words(name), err)
}

// query runs a named statement and hands each row to scan.
func (s *Store) query(ctx context.Context, q querier, name string, a args, scan func(*sql.Rows) error) error {
	text, bound, err := s.prepare(name, a)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := insist(ctx, s, q, reading, func() (*sql.Rows, error) { return q.QueryContext(ctx, text, bound...) })
	if err != nil {
		return s.wrap(words(name), unanswered(ctx, err))
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.wrap(words(name), err)
		}
	}
	return s.wrap(words(name), unanswered(ctx, errors.Join(rows.Err(), rows.Close())))
}

// row scans the one row of a named statement; ErrNotFound where there is none.
func (s *Store) row(ctx context.Context, q querier, name string, a args, dest ...any) error {
	found := false
	err := s.query(ctx, q, name, a, s.each(reads(dest...), func(fault string) error {
		found = true
		if fault != "" {
			return errors.New(fault)
		}
		return nil
	}))
	if err == nil && !found {
		return fmt.Errorf("%s: %w", words(name), ErrNotFound)
	}
	return err
}

// names reads the one row of a named statement as far as it can be read: a name is told even where it is no proper text, and
// a probe stops for no row.
func (s *Store) names(ctx context.Context, q querier, name string, a args, dest ...any) error {
	found := false
	err := s.query(ctx, q, name, a, s.each(reads(dest...), func(string) error {
		found = true
		return nil
	}))
	if err == nil && !found {
		return fmt.Errorf("%s: %w", words(name), ErrNotFound)
	}
	return err
}

func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// errConflict says that somebody changed what a decision was made from: the transaction is tried again.
var errConflict = errors.New("changed by somebody else meanwhile")

// The attempts of a transaction. Where locks are skipped a conflict is rare and one more try enough; an engine that
// tells of conflicts at COMMIT only can refuse the same transaction many times under load. With pauses that double up
// to a quarter of a second this is some five seconds, and the caller's context ends it earlier.
const txAttempts = 18

// Rest is how long to wait before a transaction that lost against others is tried again after so many tries: longer
// each time, and never the same for all who lost.
func Rest(tries int) time.Duration {
	pause := time.Duration(min(1<<tries, 256)) * time.Millisecond
	return pause + rand.N(pause)
}

// tx runs fn in a transaction, and again where the engine or a guard says that it lost against another. Nothing
// that fn did counts before tx has returned nil. A COMMIT whose answer is lost is an error here: what it did is
// found out by the keys and the fence when the work is tried again, and never assumed.
func (s *Store) tx(ctx context.Context, fn func(*sql.Tx) error) error {
	return s.persist(ctx, func() error { return s.once(ctx, fn) })
}

// persist tries again what lost against another transaction, and for LockPatience what waits for one.
func (s *Store) persist(ctx context.Context, fn func() error) error {
	return s.heldBy(ctx, s.persistFor(ctx, int(LockPatience/lockWait), txAttempts, fn))
}

// persistFor tries again what lost against another transaction: up to so many times what waited for one, and what somebody
// else changed meanwhile.
func (s *Store) persistFor(ctx context.Context, waits, conflicts int, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil || ctx.Err() != nil || !s.Transient(err) {
			return err
		}
		if s.Locked(err) {
			if waits--; waits <= 0 {
				return err
			}
			try--
		} else if try >= txAttempts || try >= conflicts && errors.Is(err, errConflict) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(Rest(try)):
		}
	}
}

// Transient tells of an error that the transaction lost against another one, and that it can be tried again.
func (s *Store) Transient(err error) bool {
	return errors.Is(err, errConflict) || errors.Is(err, errInterrupted) || s.d.classify(err) == transient || s.Locked(err)
}

func (s *Store) once(ctx context.Context, fn func(*sql.Tx) error) error {
	ctx, answered, cancel := impatient(ctx)
	defer cancel(nil)
	var tx *sql.Tx
	err := answered(func() (err error) {
		tx, err = s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.d.isolation})
		return s.waited(err)
	})
	if err != nil {
		return s.interrupted(ctx, s.wrap("begin", err))
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // the error that counts is err; a lost connection rolls back by itself
		return s.interrupted(ctx, err)
	}
	return s.wrap("commit", answered(tx.Commit))
}

// errLocked says for what a statement waited until its time was over.
var errLocked = fmt.Errorf("%w: another process holds the lock of the file for writing", ErrReadOnly)

// waited tells that a write which has not begun in time waited for the lock of an SQLite file: it does nothing else that
// takes long.
func (s *Store) waited(err error) error {
	if err != nil && s.d == sqlite && (errors.Is(err, context.DeadlineExceeded) || s.d.classify(err) == transient) {
		return fmt.Errorf("%w: %w", errLocked, err)
	}
	return err
}

type hidden struct {
	error
	text string
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.error }

// hide takes credentials out of an error's text: a driver or a server may quote ours.
func (s *Store) hide(err error) error {
	if err == nil {
		return nil
	}
	if text := s.secrets.Hide(err.Error()); text != err.Error() {
		return hidden{err, text}
	}
	return err
}

// kept is an error's text as it is recorded. Of a text of megabytes only what may be kept is looked through, with room for
// what is hidden in it.
func (s *Store) kept(text string) string {
	const most = 64 << 10
	return clip(s.secrets.Hide(text[:min(len(text), most)]))
}

// Where names the database for messages: scheme, host and path, never user, password or options.
func (s *Store) Where() string {
	if s.d == sqlite {
		path, _, _ := sqlitePath(s.url)
		return "sqlite:" + path
	}
	u, err := url.Parse(s.url)
	if err != nil {
		return s.d.name
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// isBroken tells whether the connection went away under a statement.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, sql.ErrConnDone)
}
