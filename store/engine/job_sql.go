package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// jobSQL holds the differences between engines that concern the SQL of jobs and its session.
type jobSQL struct {
	refuses         func(text string, arguments bool) string
	textArguments   bool
	textPlaces      func(text string) []bool               // see Engine.TextPlaces; nil: an instant has one form anyway
	instant         func(time.Time) any                    // see Engine.InstantArgument; nil: its text
	runsOn          bool                                   // see Engine.RunsOn
	look            string                                 // the query for a session's number, and for whether it is like a new one; empty: none is asked
	stop            func(number int64, look string) string // the statement that stops a session's from another connection; nil: the driver does
	elsewhere       func(error) bool                       // whether the answer to it comes from a server that does not know the session
	transactionOpen func(context.Context, *sql.Conn) (bool, error)
	tellsOpen       bool                                 // see Engine.TransactionKnown
	lasts           func(text string) bool               // see Engine.lasts
	looksBack       func(text string) bool               // see Engine.looksBack
	unsent          func(error) bool                     // see Engine.Unsent
	held            func(error) bool                     // see Engine.Held
	waits           func(err error, texts []string) bool // see Engine.Waits; nil: several sessions write at once
	savepointGone   func(error) bool
	routineGone     func(error) bool                                                    // see Engine.RoutineGone; nil: there is no routine
	commitsNothing  func(text string) bool                                              // see Engine.CommitsNothing; nil: nothing is known of a text
	undone          func(ctx context.Context, tx *sql.Tx, err error, stopped bool) bool // nil: see Witness
	tableOptions    string                                                              // of a temporary table that knows transactions
	describe        func(err error, text string) (Failure, bool)

	forRecord func(database, look string, plain, others []string) []string // see Session.ForRecord; nil: nothing is needed

	// reset makes a session like a new one, and returns the answer to look. If it is nil, no session is used again.
	reset func(context.Context, *sql.Conn) (number int64, what string, err error)
}

// Refuses says why a statement can never be executed. It is empty if there is no known reason. arguments says that a statement
// of the same session has some.
func (e *Engine) Refuses(text string, arguments bool) string {
	if e.jobs.refuses == nil {
		return ""
	}
	return e.jobs.refuses(text, arguments)
}

// TextArguments reports whether all arguments of a statement are sent as text, and the server infers
// the types. On other engines, each value has a type of its own.
func (e *Engine) TextArguments() bool { return e.jobs.textArguments }

// TextPlaces reports for each placeholder of a statement whether its text says there that it is a text. It
// is for engines on which an instant is written in another form where it is none, and where the server
// tells no types of places. A place that is left out says nothing.
func (e *Engine) TextPlaces(text string) []bool {
	if e.jobs.textPlaces == nil {
		return nil
	}
	return e.jobs.textPlaces(text)
}

// InstantArgument is an instant as an argument of a statement.
func (e *Engine) InstantArgument(at time.Time) any {
	if e.jobs.instant == nil {
		return e.Instant(at)
	}
	return e.jobs.instant(Clamp(at).UTC())
}

// RunsOn reports whether statements may follow one another without a semicolon, so that each text may be several.
func (e *Engine) RunsOn() bool { return e.jobs.runsOn }

// CommitsNothing reports whether a text can certainly not end the transaction in which it is executed.
func (e *Engine) CommitsNothing(text string) bool {
	return e.jobs.commitsNothing != nil && e.jobs.commitsNothing(text)
}

// TransactionOpen reports whether statements left a transaction open on a connection. The end of the
// session would silently roll it back. TransactionOpen may end the transaction.
func (e *Engine) TransactionOpen(ctx context.Context, conn *sql.Conn) (bool, error) {
	return e.jobs.transactionOpen(ctx, conn)
}

// TransactionKnown reports whether TransactionOpen needs no question to the server. Where it asks, the question is the last
// statement of the session.
func (e *Engine) TransactionKnown() bool { return e.jobs.tellsOpen }

// lasts reports whether a statement may leave something in its session that reset does not undo. It looks at the words of
// the text, which do not show what a function or a trigger does.
func (e *Engine) lasts(text string) bool { return e.jobs.lasts != nil && e.jobs.lasts(text) }

// looksBack reports whether a statement may see, after a reset, what earlier statements left in the session.
func (e *Engine) looksBack(text string) bool {
	return e.jobs.looksBack != nil && e.jobs.looksBack(text)
}

// Unsent reports whether an error says that the session was over before the server got the statement, so that nothing of it
// was done.
func (e *Engine) Unsent(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || e.jobs.unsent != nil && e.jobs.unsent(err)
}

// Held reports whether an error says that a pooler has held the statement back until its patience was over. So nothing of it
// was done, but another session would wait as long.
func (e *Engine) Held(err error) bool { return e.jobs.held != nil && e.jobs.held(err) }

// Waits reports whether the last of some statements of a session has met the lock of another writer of a file, so that nothing of it
// was done if no transaction is open. It does not report this if the session has said how long it waits, or has opened another file.
func (e *Engine) Waits(err error, texts []string) bool {
	return e.jobs.waits != nil && e.jobs.waits(err, texts)
}

// SavepointGone reports whether an error says that the transaction in which a savepoint was set has ended.
func (e *Engine) SavepointGone(err error) bool { return e.jobs.savepointGone(err) }

// RoutineGone reports whether the record of a step's end, or the COMMIT that goes with it, was refused because a routine of dbjobs
// is not there, or the right to call it has gone with it, as while `dbjobs migrate` replaces the routine.
func (e *Engine) RoutineGone(err error) bool {
	return e.jobs.routineGone != nil && e.jobs.routineGone(err)
}

// Undone reports whether the engine itself has rolled back the whole transaction at an error. stopped
// says that somebody stopped the statement.
func (e *Engine) Undone(ctx context.Context, tx *sql.Tx, err error, stopped bool) bool {
	return e.jobs.undone != nil && e.jobs.undone(ctx, tx, err, stopped)
}

// Witness is the statement that creates a temporary table whose rows show whether a transaction was
// rolled back. It is empty if the engine rolls back none by itself, so that a savepoint always shows it.
func (e *Engine) Witness(table string) string {
	if e.jobs.undone == nil {
		return ""
	}
	return "CREATE TEMPORARY TABLE " + table + " (n int PRIMARY KEY)" + e.jobs.tableOptions // MySQL may require a key
}

// Failure holds what an engine reports of an error besides its message. PostgreSQL reports a SQLSTATE,
// the severity, a detail, a hint, and the place of a mistake in the statement or in a block of PL/pgSQL;
// MariaDB and MySQL a number with the SQLSTATE, and the line of a syntax error; SQLite an extended result
// code; SQL Server a number, the level as the severity, and the state, with the procedure, as the detail.
type Failure struct {
	Code     string // SQLSTATE, error number or both: 42P01, 1146 (42S02), 2067
	Line     int    // of the statement, from 1
	Severity string // ERROR, FATAL, PANIC
	Detail   string // such as the key that exists already, or the processes of a deadlock
	Hint     string // what to do, in the engine's words
}

// Describe returns what an error of the engine holds besides its message. text is the statement that
// failed. It returns false if the error is not one of the engine's.
func (e *Engine) Describe(err error, text string) (Failure, bool) { return e.jobs.describe(err, text) }

// number is the number that a pattern finds in a text, or 0.
func number(pattern *lazyregexp.Regexp, text string) int {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // too long for a number: no line
	return n
}
