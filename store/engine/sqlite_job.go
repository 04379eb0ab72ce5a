package engine

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var sqliteJobs = jobSQL{
	transactionOpen: sqliteTransactionOpen,
	savepointGone:   sqliteSavepointGone,
	undone:          undoneBySQLite,
	describe:        describeSQLite,
}

func sqliteTransactionOpen(ctx context.Context, conn *sql.Conn) (bool, error) {
	_, refused := conn.ExecContext(ctx, "ROLLBACK") // refused where none is open
	return refused == nil, nil
}

func sqliteSavepointGone(err error) bool {
	var se *sqlitedriver.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_ERROR && strings.Contains(se.Error(), "no such savepoint")
}

// undoneBySQLite: SQLite undoes nothing for BUSY, which a statement gets that holds the lock for writing where its text has
// given the lock away. It undoes a transaction whose write it was told to stop, of which its driver tells by the error of
// the context.
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
