package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
)

// An Engine has what differs between databases besides the texts of the statements.
type Engine struct {
	Name        string // its folder below sql
	OneWriter   bool   // it has one writer at a time, and the driver waits for its turn
	Creates     bool   // Open can create a database
	KnowsLogins bool   // sessions have logins, and a job belongs to one
	TextIDs     bool   // the id of a run may be a text that is no UUID
	Isolation   sql.IsolationLevel
	Port        int    // default port of its servers; 0: the database is a file
	SchemaLock  string // statement at the start of a migration, in its transaction

	schemes   []string          // of its URLs
	form      string            // of a URL, for messages
	prefix    string            // replaces "dbjobs." in the statements
	numbered  bool              // placeholders are numbered: an argument that is used twice has one placeholder
	functions string            // prefix of the functions that every engine has
	layout    string            // of an instant in a document
	least     any               // see Earliest
	macros    map[string]string // @name in the statements

	placeholder func(n int) string
	instant     func(time.Time) any
	id          func(string) any
	document    func(string) any
	list        func(any) any // a []int64 or []string as one argument
	rows        func([]column) string
	nested      bool // a document holds JSON as it is, not as text: see AppendField

	encrypted  func(options url.Values) bool // nil: there is nothing to encrypt
	connector  func(rawURL string, o Options) (driver.Connector, error)
	where      func(rawURL string) string                                     // name of the database for messages; nil: the URL without its secrets
	version    func(answer string) string                                     // makes the answer of the statement engine readable; nil: it is readable
	classify   func(error) class                                              // of a driver's error
	passedOn   func(error) bool                                               // see Engine.TakesNoWrites; nil: no routine raises the error
	starting   func(error) bool                                               // the server says in its own way that it is starting; nil: it never says so
	atFault    func(error) bool                                               // see Engine.Refused
	advise     func(error) string                                             // what to do about an error whose text does not say it; "" for others
	problem    func(rawURL string) string                                     // see DB.Problem; nil: there is only the search path
	holderLock func(rawURL, holder string) (path, database string, err error) // see DB.Hold; nil: there is only the heartbeat
	ddlCommits bool                                                           // DDL ends a transaction, so each statement stands alone
	unusable   func(error) bool                                               // the error of reading a view says that nobody can read it; nil: there is no such view
	unwritable func(rawURL string) []string                                   // see DB.Unwritable; nil: it has logins
	untold     string                                                         // why the engine may refuse lock_holders
	lacks      func(statement string, err error) bool                         // the server lacks something for a statement that is not essential; nil: every statement is

	views map[string]string // macros of the views: no text of a view has arguments

	// barrier changes a view so that a caller's WHERE cannot get at rows that the view leaves out, by failing or by
	// keeping what it computes for a row: without it, the server may compute the WHERE for those rows too. nil: no
	// view needs one.
	barrier func(view *Repeatable)

	// viewAlso returns the statements that follow on a statement that makes a view. comment is what the file of the
	// view says about it.
	viewAlso func(name, comment string) []string

	orReplace    []string                                                // kinds of objects that every server of the engine replaces by CREATE OR REPLACE
	mayReplace   []string                                                // kinds that only some servers replace that way
	replaces     func(context.Context, *DB, *Tx, []Repeatable) error     // nil: one after the other; see DB.Replace
	rightsOf     map[string]string                                       // rights that an object of a kind needs, where the server does not name them
	called       map[string]string                                       // rights on routines that a tick needs, each with a call that is only explained
	nameOfKey    func(table string, primary bool, columns string) string // the name that the engine gives to a key; nil: no copy lacks one
	quote        string                                                  // around a name
	account      func(login string) string                               // a login as GRANT wants it; nil: it is a name
	besides      func(tables []string) (before, after []string)          // what is dropped with the tables, before and after them; nil: nothing
	hides        bool                                                    // it hides from a login the objects that the login may not use
	clientSplits bool                                                    // its client ends a statement at each semicolon

	jobs jobSQL
}

// All returns the engines that can hold dbjobs' own tables.
//
// A new engine needs an entry here, a file with its Engine, and a folder below sql: queries.sql has the statements that it says in
// other words, schema makes the tables, and where it has them, there are grants.sql, owners, routines and views. For the tests, it
// needs an entry in store/storetest/engines.go, with its dialect, and a server in scripts/testservers. Tests then name the
// remarks, pages and kept statements that lack it.
func All() []*Engine { return []*Engine{postgres, mysqlEngine, sqlite} }

// class is the kind of an error, by what the caller has to do about it.
type class int

const (
	other       class = iota
	transient         // serialization failure, deadlock, busy: the transaction can be tried again
	lockTimeout       // the wait for a lock timed out: the transaction can be tried again, and wait again
	noTable           // our tables do not exist
	readOnly          // the database accepts no writes
	diskFull          // the disk is full
	unreachable       // there is no connection, or it broke
	gone              // the server had ended the session before the statement arrived: no part of the statement was executed
	refused           // the server refuses the login, or does not have its database
	forbidden         // the login lacks a right
	crowded           // all connections that the server or the login may have are in use
	duplicate         // a unique key exists already
	outdated          // a routine found that the run was delivered again
)

// Of returns the engine of the URL of dbjobs' own database. The error is a *URLError.
func Of(rawURL string) (*Engine, error) { return of(rawURL, false) }

func of(rawURL string, target bool) (*Engine, error) {
	scheme, _, ok := strings.Cut(rawURL, ":")
	for _, e := range append(All(), sqlserver) {
		switch {
		case !ok || !slices.Contains(e.schemes, scheme):
		case e == sqlserver && !target:
			return nil, &URLError{"SQL Server cannot hold dbjobs' own tables; it can be a target, in which steps run their statements; want " + Forms()}
		default:
			return e, nil
		}
	}
	if target {
		return nil, &URLError{"want " + strings.Replace(Forms(), " or ", ", ", 1) + " or " + sqlserver.form}
	}
	return nil, &URLError{"want " + Forms()}
}

// Forms lists the forms of a database URL, for messages.
func Forms() string {
	engines := All()
	forms := make([]string, len(engines))
	for i, e := range engines {
		forms[i] = e.form
	}
	last := len(forms) - 1
	return strings.Join(forms[:last], ", ") + " or " + forms[last]
}

// Table returns the name of a table on this engine.
func (e *Engine) Table(name string) string { return e.prefix + name }

// Encrypted reports whether a URL asks for TLS and for a check of the server's certificate.
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
