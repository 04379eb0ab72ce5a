package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
)

// Options are what the tests and the embedded default need beyond a URL.
type Options struct {
	// Create makes an SQLite file, its folder and its tables where they are missing. Servers are never created.
	Create bool
	// Clock stands for the database's clock in tests. Nil means the database's own, which is the only one that
	// decides what is due.
	Clock func() time.Time
	// Chance stands for rand.Float64 in tests, where it says which part of the history a pass sweeps.
	Chance func() float64
	// Wrap stands between database/sql and the driver in tests, to count calls or to break them.
	Wrap func(driver.Connector) driver.Connector
	// Secrets, if it is set, are hidden in all that is recorded and told, and are told those of the database.
	Secrets *secret.Known
	// Login, if it is set, is asked before each new connection to a server whom to be and with which password, in place
	// of what the URL says: passwords may change while a process lives, and tokens last for minutes. An empty user leaves
	// the URL's.
	Login func(context.Context) (user, password string, err error)
}

// Store is an open database. It holds no session state: a transaction-pooling proxy may stand between.
type Store struct {
	db    *engine.DB
	clock func() time.Time
	// chance is a number from 0 up to 1, another one each time.
	chance func() float64
}

// words are the macros of the statements that are lists in Go.
var words = map[string]string{
	"@job_columns": jobColumns, "@job_fields": jobFields, "@job_types": jobTypes, "@job_values": jobValues, "@job_changes": jobChanges,
	"@job_changes_by_name": jobChangesByName,
	"@run_columns":         runColumns, "@pause_columns": pauseColumns, "@schedule_columns": scheduleColumns,
	"@most": fmt.Sprint(mostMade)}

// Open connects and makes sure that the database answers. It does not look at the schema: CheckSchema and Probe do.
// Errors wrap ErrUnreachable, ErrSchema (no SQLite file) or ErrReadOnly, or are a *URLError.
func Open(ctx context.Context, rawURL string, o Options) (*Store, error) {
	db, err := engine.Open(ctx, rawURL, engine.Options{Create: o.Create, Wrap: o.Wrap, Login: o.Login, Secrets: o.Secrets, Words: words, Actions: actions})
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, clock: o.Clock, chance: o.Chance}
	if s.chance == nil {
		s.chance = rand.Float64
	}
	if o.Create && db.Engine().Creates {
		if _, err := s.Migrate(ctx); err != nil {
			s.db.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close ends the connections.
func (s *Store) Close() error { return s.db.Close() }

// Sleep closes all connections but one: for a process that is frozen between its uses. Before the next one, Wake reports
// whether the database still answers on it.
func (s *Store) Sleep() { s.db.Sleep() }

// Wake asks the database for a sign of life, after Sleep: see engine.DB.
func (s *Store) Wake(ctx context.Context) error { return s.db.Wake(ctx) }

// Engine is the database's, and answers what differs between engines.
func (s *Store) Engine() *engine.Engine { return s.db.Engine() }

// Writers is how many transactions of one process it pays to have under way at once.
func (s *Store) Writers() int {
	if s.Engine().OneWriter {
		return 1
	}
	return 2
}

// Version is the engine's name and version, such as "PostgreSQL 15.18".
func (s *Store) Version(ctx context.Context) (string, error) { return s.db.Version(ctx) }

// Login is the name under which the database knows us, without host; empty on SQLite, which knows no logins.
func (s *Store) Login(ctx context.Context) (string, error) { return s.db.Login(ctx) }

// Warning tells what is wrong with the settings of the database, and what to do; empty where nothing is.
func (s *Store) Warning(ctx context.Context) (string, error) { return s.db.Warning(ctx) }

// LockHolders says which sessions have rows or tables of dbjobs locked: see engine.DB.
func (s *Store) LockHolders(ctx context.Context) string { return s.db.LockHolders(ctx) }

// Where names the database for messages: scheme, host and path, never user, password or options.
func (s *Store) Where() string { return s.db.Where() }

// Hold makes this process a holder of runs until release is called: see engine.DB.
func (s *Store) Hold(h Holder) (release func(), err error) { return s.db.Hold(h.Name) }

// JobDB is a pool of connections for the SQL of jobs, apart from the store's own. Without a Wrap, it has the store's; its
// Login is the store's.
func (s *Store) JobDB(o Options) (*sql.DB, error) {
	return s.db.JobPool(engine.Options{Create: o.Create, Wrap: o.Wrap})
}

// JobSessions are the sessions in which the SQL of jobs is executed.
func (s *Store) JobSessions(o Options) (*engine.Sessions, error) {
	return s.db.JobSessions(engine.Options{Create: o.Create, Wrap: o.Wrap})
}

// now is the argument :now of the statements: nil leaves the time to the database.
func (s *Store) now() any {
	if s.clock == nil {
		return nil
	}
	return s.clock()
}

// kept is an error's text as it is recorded. Of a text of megabytes only what may be kept is looked through, with room for
// what is hidden in it.
func (s *Store) kept(text string) string {
	const most = 64 << 10
	return clip(s.db.Hide(text[:min(len(text), most)]))
}

// URLError says what is wrong with a database URL.
type URLError = engine.URLError

// The sentinels of this package; every error that a caller may want to tell apart wraps one of them.
var (
	ErrNotFound    = engine.ErrNotFound
	ErrExists      = engine.ErrExists
	ErrSchema      = engine.ErrSchema
	ErrUnreachable = engine.ErrUnreachable
	ErrReadOnly    = engine.ErrReadOnly
	ErrLocked      = engine.ErrLocked
	ErrNoAnswer    = engine.ErrNoAnswer
	ErrOutdated    = errors.New("the run was delivered again") // a write with an old fence
)

// Patience is how long the database may take to answer a statement.
const Patience = engine.Patience

// errPanicked stands for a panic in making a batch.
var errPanicked = errors.New("deciding panicked")

// Refused reports whether a single row may be at fault: the engine refused what was written or asked for, or making it ended in
// a panic.
func (s *Store) Refused(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return errors.Is(err, errPanicked) || s.Engine().Refused(err)
}

// Transient tells of an error that the transaction lost against another one, and that it can be tried again.
func (s *Store) Transient(err error) bool { return s.Engine().Transient(err) }

// Locked tells of an error that a statement waited for rows that another session has locked, until its time was over.
func (s *Store) Locked(err error) bool { return s.Engine().Locked(err) }
