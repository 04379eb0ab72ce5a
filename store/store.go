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

// Options are the settings that the program, or a test, adds to a URL.
type Options struct {
	// Create makes an SQLite file, its folder and its tables where they are missing. It never
	// creates a database on a server.
	Create bool
	// Clock replaces the database's clock in tests. Nil means the database's own clock, which alone
	// decides what is due.
	Clock func() time.Time
	// Chance replaces rand.Float64 in tests. It chooses which part of the history a pass sweeps.
	Chance func() float64
	// Wrap, in tests, stands between database/sql and the driver, and counts calls or breaks them.
	Wrap func(driver.Connector) driver.Connector
	// Secrets, if set, are hidden in everything that is recorded or reported. The passwords of the
	// database are added to them.
	Secrets *secret.Known
	// Login, if set, returns the user and the password for each new connection to a server, in
	// place of those in the URL: passwords may change while a process lives, and tokens last for
	// minutes. An empty user means the URL's user.
	Login func(context.Context) (user, password string, err error)
	// Patience is how long the store keeps asking a server that does not answer for a connection, such as a server
	// that sleeps until a client connects. 0: it asks once.
	Patience time.Duration
	// OtherFiles lets the SQL of jobs reach other files than the one of an SQLite database, by ATTACH
	// and VACUUM INTO. It is for JobSessions.
	OtherFiles bool
}

// Store is an open database. It keeps no state in sessions, so a proxy that pools transactions may stand between.
type Store struct {
	db    *engine.DB
	clock func() time.Time
	// chance returns a random number from 0 up to 1.
	chance func() float64
	served []string // owners beside the login: see Serve
}

// Serve makes the store decide for the jobs of these owners, and take their runs, as it does for those of its login.
func (s *Store) Serve(owners []string) { s.served = owners }

// Separate says whether the installation has owners. Then what is recorded about a job that is not this login's hides only the
// secrets that were given to its owner, see secret.Known.For.
func (s *Store) Separate(owners bool, login string) { s.db.Separate(owners, login) }

// Served returns the owners that Serve set.
func (s *Store) Served() []string { return s.served }

// owners is the argument :owners. The list is never empty, since an engine may not accept an empty list.
func (s *Store) owners() []string { return append([]string{""}, s.served...) }

// macros are the macros of the statements that stand for lists and numbers in Go.
var macros = map[string]string{
	"@attempt_columns":     attemptColumns,
	"@job_beside":          jobBeside,
	"@job_changes":         jobChanges,
	"@job_changes_by_name": jobChangesByName,
	"@job_columns":         jobColumns,
	"@job_facts":           jobFacts,
	"@job_fields":          jobFields,
	"@job_types":           jobTypes,
	"@job_values":          jobValues,
	"@most":                fmt.Sprint(mostMade),
	"@pause_columns":       pauseColumns,
	"@run_columns":         runColumns,
	"@run_job":             runJob,
	"@schedule_columns":    scheduleColumns,
	"@selected":            runSelected,
	"@tried":               runTried,
}

var words = engine.NewWords(macros, eachPolicy)

// Statements returns the statements that the store sends to an engine.
func Statements(e *engine.Engine) *engine.Statements { return e.Statements(words) }

// Open connects and makes sure that the database answers. It does not read the schema; CheckSchema
// and Probe do. Errors wrap ErrUnreachable, ErrSchema (no SQLite file) or ErrReadOnly, or are a
// *URLError.
func Open(ctx context.Context, rawURL string, o Options) (*Store, error) {
	db, err := engine.Open(ctx, rawURL, engine.Options{Create: o.Create, Wrap: o.Wrap, Login: o.Login, Secrets: o.Secrets, Patience: o.Patience, Words: words, Actions: actions})
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

// Sleep closes all connections but one, for a process that is frozen between its uses. Before the
// next use, Wake reports whether the database still answers on that connection.
func (s *Store) Sleep() { s.db.Sleep() }

// Wake asks the database for an answer, after Sleep: see engine.DB.
func (s *Store) Wake(ctx context.Context) error { return s.db.Wake(ctx) }

// Rest closes the connections to a file, while the process waits for its next pass: see engine.DB.
func (s *Store) Rest() { s.db.Rest() }

// Engine is the engine of the database. It has everything that differs between engines.
func (s *Store) Engine() *engine.Engine { return s.db.Engine() }

// Writers is the number of transactions that one process has under way at once, so that one is read
// while another is written.
func (s *Store) Writers() int {
	if s.Engine().OneWriter {
		return 1
	}
	return 2
}

// Version is the engine's name and version, such as "PostgreSQL 15.18".
func (s *Store) Version(ctx context.Context) (string, error) { return s.db.Version(ctx) }

// Login is the name under which the database knows this program, without the host. It is empty on
// SQLite, which has no logins.
func (s *Store) Login(ctx context.Context) (string, error) { return s.db.Login(ctx) }

// Warning describes a problem of the database's settings, and what to do. It is empty where there
// is none.
func (s *Store) Warning(ctx context.Context) (string, error) { return s.db.Warning(ctx) }

// Room is how many more connections the server would give to this login, as far as that is known: see engine.DB.
func (s *Store) Room(ctx context.Context) (left int, known bool, err error) { return s.db.Room(ctx) }

// LockHolders names the sessions that have rows or tables of dbjobs locked: see engine.DB.
func (s *Store) LockHolders(ctx context.Context) string { return s.db.LockHolders(ctx) }

// Where names the database for messages: scheme, host and path, never user, password or options.
func (s *Store) Where() string { return s.db.Where() }

// Hold makes this process a holder of runs until release is called: see engine.DB.
func (s *Store) Hold(h Holder) (release func(), err error) { return s.db.Hold(h.Name) }

// JobDB is a pool of connections for the SQL of jobs, apart from the store's own. It has the
// store's Login, and the store's Wrap unless the options have one.
func (s *Store) JobDB(o Options) (*sql.DB, error) {
	return s.db.JobPool(engine.Options{Create: o.Create, Wrap: o.Wrap})
}

// JobSessions are the sessions in which the SQL of jobs is executed.
func (s *Store) JobSessions(o Options) (*engine.Sessions, error) {
	return s.db.JobSessions(engine.Options{Create: o.Create, Wrap: o.Wrap, OtherFiles: o.OtherFiles})
}

// now is the argument :now of the statements; nil means the database's own time.
func (s *Store) now() any {
	if s.clock == nil {
		return nil
	}
	return s.clock()
}

// kept is the text of an error as it is recorded: without secrets, and no longer than a column holds. If the text has
// megabytes, only its beginning is searched for secrets. owner is that of the job; empty: the text is of no job.
func (s *Store) kept(owner, text string) string {
	const most = 64 << 10
	return clip(s.db.Hide(owner, secret.Cut(text, most)))
}

// URLError says what is wrong with a database URL.
type URLError = engine.URLError

// The errors of this package. Every error that a caller may handle in its own way wraps one of
// them.
var (
	ErrNotFound    = engine.ErrNotFound
	ErrExists      = engine.ErrExists
	ErrSeveral     = errors.New("several owners have a job with this name") // and it was named without its owner
	ErrSchema      = engine.ErrSchema
	ErrUnreachable = engine.ErrUnreachable
	ErrReadOnly    = engine.ErrReadOnly
	ErrReplaced    = engine.ErrReplaced
	ErrDenied      = engine.ErrDenied
	ErrLocked      = engine.ErrLocked
	ErrNoAnswer    = engine.ErrNoAnswer
	ErrOutdated    = engine.ErrOutdated
	ErrInDoubt     = engine.ErrInDoubt
	ErrUncommitted = errors.New("the server had confirmed the COMMIT of the step, and the database does not have it: another server took over without it")
	ErrRecorded    = errors.New("the attempt has succeeded, and recorded that") // its effects are committed with the record: it must not end otherwise
)

// ErrNoLogins says that the engine has neither rights nor owners. LoginKinds are the kinds of logins of Grants.
var (
	ErrNoLogins = engine.ErrNoLogins
	LoginKinds  = engine.LoginKinds
)

// ConnLifetime is how long a connection to a server is used again.
const ConnLifetime = engine.ConnLifetime

// Patience is how long the database may take to answer a statement.
const Patience = engine.Patience

// errPanicked stands for a panic while a batch is made.
var errPanicked = errors.New("deciding panicked")

// Refused reports whether a single row may be the cause of an error: the engine refused the values
// of a statement, or a decision ended in a panic.
func (s *Store) Refused(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return errors.Is(err, errPanicked) || s.Engine().Refused(err)
}

// Transient reports whether the transaction lost a conflict with another one, so that it can be
// tried again.
func (s *Store) Transient(err error) bool { return s.Engine().Transient(err) }

// Locked reports whether a statement waited too long for rows that another session has locked.
func (s *Store) Locked(err error) bool { return s.Engine().Locked(err) }
