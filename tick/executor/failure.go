package executor

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNotAtomic says that an atomic step ended the transaction in which it was to commit together with its end. What it
// did before stays: to try it again could do that twice.
var ErrNotAtomic = errors.New("the step is not atomic")

// ErrSpec says that a step's definition is such that no try could succeed: it has come by plain SQL, since commands refuse it.
var ErrSpec = errors.New("the step is not well-formed")

// Error is a failure with what the engine tells of it, as far as it does: PostgreSQL a SQLSTATE, the severity, a
// detail and a hint, and the place of a mistake in the statement or in a block of PL/pgSQL; MariaDB and MySQL a number with the SQLSTATE, and the
// line of a mistake of syntax; SQLite an extended result code.
type Error struct {
	Code     string // SQLSTATE, error number or both: 42P01, 1146 (42S02), 2067
	Line     int    // of the statement, from 1
	Severity string // ERROR, FATAL, PANIC
	Detail   string // what is said beside the message: the key that is there already, the processes of a deadlock
	Hint     string // what to do, as the engine sees it
	Err      error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

var (
	atLine   = regexp.MustCompile(`at line (\d+)$`)
	inBlock  = regexp.MustCompile(`(?m)^PL/pgSQL function inline_code_block line (\d+) `)
	sqlState = regexp.MustCompile(`^[0-9A-Z]{5}$`)
)

// describe takes from an engine's error what it tells beside the message. text is the statement that failed.
func describe(err error, text string) error {
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	var se *sqlite.Error
	switch {
	case errors.As(err, &pe):
		e := &Error{Code: pe.Code, Severity: pe.SeverityUnlocalized, Detail: pe.Detail, Hint: pe.Hint, Err: err}
		if e.Severity == "" {
			e.Severity = pe.Severity
		}
		if pe.Position > 0 {
			e.Line = lineOf(text, int(pe.Position))
		} else {
			e.Line = number(inBlock, pe.Where)
		}
		return e
	case errors.As(err, &me):
		e := &Error{Code: strconv.Itoa(int(me.Number)), Line: number(atLine, me.Message), Err: err}
		if state := string(me.SQLState[:]); sqlState.MatchString(state) {
			e.Code += fmt.Sprintf(" (%s)", state)
		}
		return e
	case errors.As(err, &se):
		return &Error{Code: strconv.Itoa(se.Code()), Err: err}
	}
	return err
}

// lineOf is the line of a character of a text, both counted from 1.
func lineOf(text string, position int) int {
	r := []rune(text)
	return 1 + strings.Count(string(r[:min(position-1, len(r))]), "\n")
}

func number(pattern *regexp.Regexp, text string) int {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // too long for a number: no line
	return n
}

// noSavepoint: the transaction in which a savepoint was set has ended.
func noSavepoint(err error) bool {
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	var se *sqlite.Error
	switch {
	case errors.As(err, &pe):
		return pe.Code == "3B001" || pe.Code == "25P01"
	case errors.As(err, &me):
		return me.Number == 1305
	case errors.As(err, &se):
		return se.Code()&0xff == sqlite3.SQLITE_ERROR && strings.Contains(se.Error(), "no such savepoint")
	}
	return false
}

// undone: an error at which the engine itself has undone the whole transaction. A lock that InnoDB waited for in vain
// undoes the statement alone, unless the server is set otherwise: asked only then. SQLite undoes none for BUSY, which
// who has the lock for writing gets where its text has given that away.
// It undoes one whose write it was told to stop, of which its driver tells by the error of the context.
func (e *SQL) undone(s session, tx *sql.Tx, err error) bool {
	var me *mysql.MySQLError
	var se *sqlite.Error
	switch {
	case e.dialect == "sqlite" && s.attempt.Err() != nil:
		return true
	case errors.As(err, &me):
		if me.Number == 1205 {
			var whole bool
			asked := tx.QueryRowContext(s.after, "SELECT @@innodb_rollback_on_timeout").Scan(&whole)
			return asked == nil && whole
		}
		return me.Number == 1213 || me.Number == 1020
	case errors.As(err, &se):
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
			return true
		}
	}
	return false
}
