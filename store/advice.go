package store

import (
	"errors"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// advice is what to do about an error of an engine whose own words do not say it: which setting is in the way, or what to
// look at. It is empty for all others.
func advice(err error) string {
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	var se *sqlitedriver.Error
	switch {
	case errors.As(err, &pe):
		return postgresAdvice[pe.Code]
	case errors.As(err, &me):
		return mysqlAdvice[me.Number]
	case errors.As(err, &se):
		return sqliteAdvice[se.Code()&0xff]
	}
	return ""
}

const rights = "; this login lacks a right that dbjobs needs: store/README.md lists them, with their GRANTs"

const forLogin = ", as it is set for the server, the database or this login"

var postgresAdvice = map[string]string{
	"25006": "; the server is a standby, or default_transaction_read_only is on for the server, the database or this login: " +
		"name the primary server in the URL, or ALTER ROLE … SET default_transaction_read_only = off",
	"42501": rights,
	"57014": "; where nobody cancelled it, statement_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET statement_timeout = '1min'",
	"25P03": "; idle_in_transaction_session_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET idle_in_transaction_session_timeout = '1min'",
	"25P04": "; transaction_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET transaction_timeout = '1min'",
	"57P05": "; idle_session_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET idle_session_timeout = '1min'",
}

const variable = " is too short for dbjobs: a minute does"

var mysqlAdvice = map[uint16]string{
	1044: rights, 1142: rights, 1143: rights,
	1792: "; transaction_read_only (tx_read_only on MariaDB) is on for new sessions: SET GLOBAL … = 0, or name the server that takes writes in the URL",
	1665: "; binlog_format = STATEMENT does not do for dbjobs: SET GLOBAL binlog_format = ROW",
	1969: "; where nobody stopped it, max_statement_time of the server or of this account" + variable,
	3024: "; max_execution_time of the server" + variable,
}

const ownFolder = "; this user has to be able to write the file and its folder" // SQLite makes files beside its own

var sqliteAdvice = map[int]string{
	sqlite3.SQLITE_READONLY: ownFolder,
	sqlite3.SQLITE_PERM:     ownFolder,
	sqlite3.SQLITE_CANTOPEN: ownFolder,
	sqlite3.SQLITE_IOERR:    "; is the disk full, or failing?",
}
