package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

var sqliteJobs = jobSQL{
	transactionOpen: sqliteTransactionOpen,
	waits:           waitsInSQLite,
	savepointGone:   sqliteSavepointGone,
	reset:           func(context.Context, *sql.Conn) (int64, string, error) { return 0, "", nil },
	lasts:           func(text string) bool { return !plainInSQLite.MatchString(text) || actsInSQLite.MatchString(text) },
	looksBack:       func(text string) bool { return lastInSQLite.MatchString(text) },
	undone:          undoneBySQLite,
	describe:        describeSQLite,
}

// A plain statement and the triggers that it starts leave nothing in the session except the last rowid and counts
// of changes. All other statements may leave more, such as PRAGMA, ATTACH, and those about temporary tables.
var (
	plainInSQLite = lazyregexp.New(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE)\s[^;]*;?\s*$`)
	actsInSQLite  = lazyregexp.New(`(?i)pragma_|load_extension`)
	lastInSQLite  = lazyregexp.New(`(?i)last_insert_rowid|changes`)
)

func sqliteTransactionOpen(ctx context.Context, conn *sql.Conn) (bool, error) {
	_, refused := conn.ExecContext(ctx, "ROLLBACK") // SQLite refuses this if no transaction is open
	return refused == nil, nil
}

// A PRAGMA that meets a lock may do so at each try, such as one that changes the journal: other connections of this process are open.
var (
	writersInSQLite = []string{"SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "ALTER", "DROP", "REINDEX", "ANALYZE", "VACUUM", "BEGIN"}
	boundedInSQLite = lazyregexp.New(`(?i)busy_timeout|\battach\b`)
)

// waitsInSQLite looks at texts that are one statement: of several, nobody knows which one has met the lock.
func waitsInSQLite(err error, texts []string) bool {
	var se *sqlitedriver.Error
	if !errors.As(err, &se) || se.Code()&0xff != sqlite3.SQLITE_BUSY || slices.ContainsFunc(texts, boundedInSQLite.MatchString) {
		return false
	}
	text := blanked(texts[len(texts)-1], quotedInSQLite)
	return oneText.MatchString(text) && slices.Contains(writersInSQLite, mainVerb(text))
}

func sqliteSavepointGone(err error) bool {
	var se *sqlitedriver.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_ERROR && strings.Contains(se.Error(), "no such savepoint")
}

// undoneBySQLite reports whether SQLite rolled back the transaction. It does so if a writing statement
// was stopped. The driver then returns the error of the context. It does not do so for BUSY. A statement
// can get BUSY in a write transaction if the text of the job has ended that transaction before.
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

// asStored lets rows give texts as they are stored. Where a column is declared as DATE, DATETIME or TIMESTAMP, the driver would make
// an instant of a text, and the form of the text would be lost: its zone, its T, zeros at its end. SQLite compares such values as
// texts, so another form is another value. The driver has no option for that: it forgets how the columns are declared.
func asStored(rows driver.Rows) {
	declared := reflect.Indirect(reflect.ValueOf(rows)).FieldByName("decltypes")
	if declared.CanAddr() { // a test notices where the driver has another field
		types := reflect.NewAt(declared.Type(), declared.Addr().UnsafePointer()).Elem()
		types.Set(reflect.MakeSlice(types.Type(), types.Len(), types.Len()))
	}
}

// vacuum matches a VACUUM in place, which reaches no other file.
var vacuum = lazyregexp.New(`(?i)^\s*VACUUM(\s+\w+)?\s*;?\s*$`)

// keepToOneFile lets statements reach no other file than the database. ATTACH could read and write all
// that this process may. The same is true of VACUUM INTO, which attaches a file. If the name of the
// file is not known before the statement is executed, SQLite reports an empty name.
func (c *sqliteJobConn) keepToOneFile() error {
	conn, ok := c.sqliteConn.(sqlitedriver.AuthorizerRegisterer)
	if !ok {
		return errors.New("the driver's connections lack a method that dbjobs needs")
	}
	return conn.RegisterAuthorizer(func(action sqlitedriver.AuthorizerActionCode, file, _, _, _ string) sqlitedriver.AuthorizerReturnCode {
		if action != sqlitedriver.AuthAttach || file == ":memory:" || file == "" && c.vacuums {
			return sqlitedriver.AuthorizerOK
		}
		return sqlitedriver.AuthorizerDeny
	})
}

// otherFile explains the error of SQLite for an ATTACH that is not allowed. This error would be
// classified as a lost connection.
func otherFile(err error) error {
	var se *sqlitedriver.Error
	if errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_AUTH {
		return errors.New("the statement reaches another file, and others than the user of this process can write the database: " +
			"that is for a database file that only this user can write, see dbjobs config check")
	}
	return err
}
