package engine

import (
	"database/sql"
	"database/sql/driver"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
)

// An Engine is what differs between databases beyond the text of the statements.
type Engine struct {
	Name        string // its folder below sql
	OneWriter   bool   // it has one writer at a time, which waits for its turn by itself
	Creates     bool   // Open makes a database where there is none, if it is asked to
	KnowsLogins bool   // jobs belong to the login that made them
	Isolation   sql.IsolationLevel
	Port        int    // of its servers, where the URL names none; 0: it is a file
	SchemaLock  string // is sent at the start of a migration, in its transaction

	schemes   []string          // of its URLs
	prefix    string            // what stands for "dbjobs." in the statements
	numbered  bool              // an argument that is used twice has one placeholder
	functions string            // what stands before the functions that every engine has
	layout    string            // of an instant in a document
	least     any               // see Earliest
	macros    map[string]string // @name in the statements

	placeholder func(n int) string
	instant     func(time.Time) any
	id          func(string) any
	document    func(string) any
	list        func(any) any // a []int64 or []string as one argument

	encrypted  func(options url.Values) bool // nil: there is nothing to encrypt
	connector  func(rawURL string, o Options) (driver.Connector, error)
	where      func(rawURL string) string                           // names the database for messages; nil: the URL without its secrets does
	version    func(answer string) string                           // what the statement engine answers, for people; nil: as it is
	classify   func(error) class                                    // of a driver's error
	atFault    func(error) bool                                     // see Engine.Refused
	advise     func(error) string                                   // what to do about an error whose own words do not say it; empty for all others
	holderLock func(rawURL, holder string) (path string, err error) // see DB.Hold; nil: the heartbeat alone tells
	ddlCommits bool                                                 // DDL ends a transaction: each statement stands alone
	untold     string                                               // why lock_holders may be refused

	jobs jobSQL
}

// All are the engines.
func All() []*Engine { return []*Engine{sqlite, postgres, mysqlEngine} }

// class is what is done about an error of the engine.
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

// Of is the engine of a URL. The error is a *URLError.
func Of(rawURL string) (*Engine, error) {
	scheme, _, ok := strings.Cut(rawURL, ":")
	for _, e := range All() {
		if ok && slices.Contains(e.schemes, scheme) {
			return e, nil
		}
	}
	return nil, &URLError{"want postgres://USER@HOST:PORT/DATABASE, mysql://USER@HOST:PORT/DATABASE, or sqlite:PATH"}
}

// Encrypted reports whether a URL asks for TLS with a server whose certificate is good.
func (e *Engine) Encrypted(u *url.URL) bool { return e.encrypted != nil && e.encrypted(u.Query()) }

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
