package engine

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
)

// jobSQL is how an engine differs in what the SQL of jobs may do to a session.
type jobSQL struct {
	refuses         func(text string) string
	textArguments   bool
	connection      string
	stop            string
	transactionOpen func(context.Context, *sql.Conn) (bool, error)
	savepointGone   func(error) bool
	undone          func(ctx context.Context, tx *sql.Tx, err error, stopped bool) bool // nil: see Witness
	tableOptions    string                                                              // of a temporary table that knows transactions
	describe        func(err error, text string) (Failure, bool)
}

// Refuses says why a statement can never be executed; empty where nothing is known against it.
func (e *Engine) Refuses(text string) string {
	if e.jobs.refuses == nil {
		return ""
	}
	return e.jobs.refuses(text)
}

// TextArguments reports whether all arguments of a statement go as text, of which the server itself finds out the types.
// Elsewhere a parameter has no type, and each value is of its own.
func (e *Engine) TextArguments() bool { return e.jobs.textArguments }

// Stop tells how a statement is stopped on a server whose driver would leave it running when its context ends: the query
// for the connection's number, and the statement (with %d) that stops what it executes, sent from another connection. Empty
// where the driver stops statements itself.
func (e *Engine) Stop() (connection, stop string) { return e.jobs.connection, e.jobs.stop }

// TransactionOpen reports whether statements left a transaction open on a connection, which the end of its session would
// undo in silence. It may end the transaction.
func (e *Engine) TransactionOpen(ctx context.Context, conn *sql.Conn) (bool, error) {
	return e.jobs.transactionOpen(ctx, conn)
}

// SavepointGone reports whether an error says that the transaction in which a savepoint was set has ended.
func (e *Engine) SavepointGone(err error) bool { return e.jobs.savepointGone(err) }

// Undone reports whether the engine itself has undone the whole transaction at an error. stopped says that the statement
// was told to stop.
func (e *Engine) Undone(ctx context.Context, tx *sql.Tx, err error, stopped bool) bool {
	return e.jobs.undone != nil && e.jobs.undone(ctx, tx, err, stopped)
}

// Witness is the statement that makes a temporary table whose rows tell whether a transaction was undone; empty where the
// engine undoes none by itself, so that a savepoint always tells.
func (e *Engine) Witness(table string) string {
	if e.jobs.undone == nil {
		return ""
	}
	return "CREATE TEMPORARY TABLE " + table + " (n int)" + e.jobs.tableOptions
}

// Failure is what an engine tells of an error beside its message, as far as it does: PostgreSQL a SQLSTATE, the severity, a
// detail and a hint, and the place of a mistake in the statement or in a block of PL/pgSQL; MariaDB and MySQL a number with
// the SQLSTATE, and the line of a mistake of syntax; SQLite an extended result code.
type Failure struct {
	Code     string // SQLSTATE, error number or both: 42P01, 1146 (42S02), 2067
	Line     int    // of the statement, from 1
	Severity string // ERROR, FATAL, PANIC
	Detail   string // what is said beside the message: the key that is there already, the processes of a deadlock
	Hint     string // what to do, as the engine sees it
}

// Describe takes from an error of the engine what it tells beside the message. text is the statement that failed. It is
// false where the error is none of the engine's.
func (e *Engine) Describe(err error, text string) (Failure, bool) { return e.jobs.describe(err, text) }

// number is what a pattern finds in a text; 0 where there is none.
func number(pattern *regexp.Regexp, text string) int {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // too long for a number: no line
	return n
}
