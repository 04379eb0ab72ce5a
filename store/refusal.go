package store

import (
	"context"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// errPanicked stands for a panic in making a batch.
var errPanicked = errors.New("deciding panicked")

// Refused tells that a single row may be at fault: the engine refused what was written or asked for, or making it ended in
// a panic. It is the engine's own answer, and none about a connection, a lock, a right, room or time, of which it is not
// known what became, or which hold for all rows.
func (s *Store) Refused(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return errors.Is(err, errPanicked) || errors.Is(err, errConflict) || s.d.atFault(err) // a conflict: each time that it was tried
}

// postgresAtFault: by the classes of SQLSTATE.
func postgresAtFault(err error) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || len(pe.Code) != 5 {
		return false
	}
	switch pe.Code[:2] {
	case "0L", "20", "21", "22", "23", "27", "2F", "38", "39", "42", "44", "54", "P0":
		return pe.Code != "42501" && classifyPostgres(err) != noTable
	}
	return false
}

// mysqlAtFault: what is known to be about the values of a row, and what a trigger says.
func mysqlAtFault(err error) bool {
	var me *mysql.MySQLError
	if !errors.As(err, &me) {
		return false
	}
	switch me.Number {
	case 1048, 1062, 1138, 1146, 1172, 1242, 1263, 1264, 1265, 1292, 1364, 1365, 1366, 1367, 1406, 1411, 1422, 1425, 1426, 1427, 1436, 1441, 1442,
		1451, 1452, 1525, 1526, 1557, 1586, 1644, 1690, 1748, 1761, 1762, 1906, 3140, 3141, 3143, 3144, 3146, 3156, 3157, 3819, 4025, 4038, 4078, 4079:
		return classifyMySQL(err) != noTable
	}
	return strings.HasPrefix(string(me.SQLState[:]), "22") || strings.HasPrefix(string(me.SQLState[:]), "23") || strings.HasPrefix(string(me.SQLState[:]), "45")
}

// sqliteAtFault: by the primary result codes.
func sqliteAtFault(err error) bool {
	var se *sqlitedriver.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_TOOBIG:
		return true
	case sqlite3.SQLITE_ERROR:
		return classifySQLite(err) != noTable
	}
	return false
}
