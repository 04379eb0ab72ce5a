package engine

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strconv"
	"strings"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var sqliteJobs = jobSQL{
	transactionOpen: sqliteTransactionOpen,
	savepointGone:   sqliteSavepointGone,
	reset:           func(context.Context, *sql.Conn) error { return nil },
	lasts:           func(text string) bool { return !plainInSQLite.MatchString(text) || actsInSQLite.MatchString(text) },
	looksBack:       func(text string) bool { return lastInSQLite.MatchString(text) },
	undone:          undoneBySQLite,
	describe:        describeSQLite,
}

// A plain statement leaves nothing in its session but the last rowid and counts of changes, nor do the triggers that it
// starts. All others do, or may: PRAGMA, ATTACH, temporary tables.
var (
	plainInSQLite = regexp.MustCompile(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE)\s[^;]*;?\s*$`)
	actsInSQLite  = regexp.MustCompile(`(?i)pragma_|load_extension`)
	lastInSQLite  = regexp.MustCompile(`(?i)last_insert_rowid|changes`)
)

func sqliteTransactionOpen(ctx context.Context, conn *sql.Conn) (bool, error) {
	_, refused := conn.ExecContext(ctx, "ROLLBACK") // SQLite refuses this if no transaction is open
	return refused == nil, nil
}

func sqliteSavepointGone(err error) bool {
	var se *sqlitedriver.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_ERROR && strings.Contains(se.Error(), "no such savepoint")
}

// undoneBySQLite reports whether SQLite rolled back the transaction. It does so if a writing statement
// was stopped; the driver then returns the error of the context. It does not for BUSY, which a statement
// can get in a write transaction if the text of the job has ended that transaction before.
func undoneBySQLite(_ context.Context, _ *sql.Tx, err error, stopped bool) bool {
	if stopped {
		return true
	}
	var se *sqlitedriver.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return true
	}
	return false
}

func describeSQLite(err error, _ string) (Failure, bool) {
	var se *sqlitedriver.Error
	if !errors.As(err, &se) {
		return Failure{}, false
	}
	return Failure{Code: strconv.Itoa(se.Code())}, true
}
