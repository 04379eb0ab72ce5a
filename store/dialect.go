package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
)

// A dialect is what differs between engines beyond the text of the statements.
type dialect struct {
	name      string            // its folder below sql
	prefix    string            // what stands for "dbjobs." in the statements
	numbered  bool              // an argument that is used twice has one placeholder
	functions string            // what stands before the functions that every engine has
	layout    string            // of an instant in a document
	least     any               // comes before all that a column of instants can hold
	macros    map[string]string // @name in the statements

	placeholder func(n int) string
	instant     func(time.Time) any
	id          func(string) any
	document    func(string) any
	list        func(any) any // a []int64 or []string as one argument

	connector  func(rawURL string, o Options) (driver.Connector, error)
	classify   func(error) class // of a driver's error
	atFault    func(error) bool  // see Store.Refused
	lock       string            // taken at the start of a migration, in its transaction
	ddlCommits bool              // DDL ends a transaction: each statement stands alone
	isolation  sql.IsolationLevel
	connection string // see Store.Interrupt
	stop       string

	statements statements
}

// class is what the store does about an error of the engine.
type class int

const (
	other       class = iota
	transient         // serialization failure, deadlock, busy: the transaction can be tried again
	lockTimeout       // a lock that was waited for until its time was over: likewise, and it may be waited for again
	noTable           // our schema is not there
	readOnly          // the database takes no writes
	diskFull          // nor does its disk
	unreachable       // no connection, or it broke
	gone              // the server had ended the session before it got the statement, of which nothing is done
	refused           // the server does not let us in
	crowded           // it has as many connections as it, or the login, may have
	duplicate         // a unique key
)

func dialectOf(rawURL string) (*dialect, error) {
	scheme, _, ok := strings.Cut(rawURL, ":")
	if ok {
		switch scheme {
		case "postgres", "postgresql":
			return postgres, nil
		case "mysql", "mariadb":
			return mysqlDialect, nil
		case "sqlite", "file":
			return sqlite, nil
		}
	}
	return nil, &URLError{"want postgres://USER@HOST:PORT/DATABASE, mysql://USER@HOST:PORT/DATABASE, or sqlite:PATH"}
}

// URLError says what is wrong with a database URL. It never holds the URL, which may hold a password.
type URLError struct{ Problem string }

func (e *URLError) Error() string { return "database URL: " + e.Problem }

// parseURL reads the URL of a server.
func parseURL(raw string) (*url.URL, error) {
	u, err := secret.ParseURL(raw)
	if err != nil {
		return nil, &URLError{err.Error()}
	}
	return u, nil
}

// The sentinels of this package; every error that a caller may want to tell apart wraps one of them.
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("already there")
	ErrSchema      = errors.New("schema outside the range that this program can use")
	ErrUnreachable = errors.New("database out of reach")
	ErrReadOnly    = errors.New("database not writable")
	ErrOutdated    = errors.New("run delivered again meanwhile") // a write with an old fence
)

// wrap translates an error of the engine at the one door through which all of them leave.
func (s *Store) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	err = s.hide(err)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch s.class(err) {
	case noTable:
		return fmt.Errorf("%s: %w: the tables of dbjobs are not there; run `dbjobs migrate`", doing, ErrSchema)
	case readOnly:
		return fmt.Errorf("%s: %w: %w%s", doing, ErrReadOnly, err, advice(err))
	case diskFull:
		return fmt.Errorf("%s: %w: its disk is full: %w", doing, ErrReadOnly, err)
	case lockTimeout:
		return fmt.Errorf("%s: %w: %w", doing, ErrLocked, err)
	case unreachable, refused, crowded, gone:
		return fmt.Errorf("%s: %w: %w%s", doing, ErrUnreachable, err, advice(err))
	case duplicate:
		return fmt.Errorf("%s: %w: %w", doing, ErrExists, err)
	}
	return fmt.Errorf("%s: %w%s", doing, err, advice(err))
}
