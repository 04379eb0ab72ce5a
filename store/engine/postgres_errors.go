package engine

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store/secret"
)

func classifyPostgres(err error) class {
	var ce *pgconn.ConnectError
	var pe *pgconn.PgError
	coded := errors.As(err, &pe)
	if errors.As(err, &ce) && !(coded && pe.Code == "53300") { // a proxy that refuses a connection sends other codes
		return refused
	}
	if coded {
		switch pe.Code {
		case "40001", "40P01":
			return transient
		case "55P03":
			return lockTimeout
		case "53100":
			return diskFull
		case "42P01", "3F000":
			if strings.Contains(pe.Message, "dbjobs") {
				return noTable
			}
		case "25006":
			return readOnly
		case "54000": // values that are too large, and:
			if withoutIDs(pe) {
				return readOnly
			}
		case "23505":
			if numberedTable(pe) == "" {
				return duplicate
			}
		case "JB006":
			return outdated
		case "57P05", "25P03": // the session or its transaction was idle for too long; the server ended it before it read the statement
			return gone
		case "28P01", "28000", "3D000": // login and database
			return refused
		case "42501":
			return forbidden
		case "53300":
			return crowded
		}
		if pe.Code == "08P01" && strings.Contains(pe.Message, "statement pooling mode") { // a pooler that never allows a transaction
			return refused
		}
		if strings.HasPrefix(pe.Code, "08") || strings.HasPrefix(pe.Code, "57P") { // connections; a server that stops or starts
			return unreachable
		}
		return other
	}
	var ne net.Error
	if errors.As(err, &ne) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, driver.ErrBadConn) || isBroken(err) {
		return unreachable
	}
	return other
}

// passedOnByPostgres reports whether an error was raised by PL/pgSQL, or is that of a server behind this one.
func passedOnByPostgres(err error) bool {
	e, told := errors.AsType[*pgconn.PgError](err)
	return told && slices.Contains([]string{"exec_stmt_raise", "dblink_res_error", "pgfdw_report_error"}, e.Routine)
}

// numberedTable returns the table of dbjobs to which no row could be added, because another row has the number that the
// server gave the new one; else "". It is the server that gives these numbers, so the definition itself is not a duplicate.
func numberedTable(e *pgconn.PgError) string {
	if e.Code == "23505" && e.SchemaName == "dbjobs" && e.ConstraintName == e.TableName+"_pkey" {
		switch e.TableName {
		case "schedules", "jobs", "pauses", "job_ends", "changes":
			return "dbjobs." + e.TableName
		}
	}
	return ""
}

// nameOfPostgresKey returns the name that the server gives to a key of which the schema says no name.
func nameOfPostgresKey(table string, primary bool, columns string) string {
	if primary {
		return table + "_pkey"
	}
	return table + "_" + strings.ReplaceAll(columns, ", ", "_") + "_key"
}

// AdvanceSequence returns the statement that brings the sequence of a table up to the numbers of its rows.
func AdvanceSequence(table string) string {
	return fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%[1]s', 'id'), max(id)) FROM %[1]s", table)
}

// neverSent reports whether a statement was certainly not sent. The driver says so about each connection that is closed. But
// it says the same if the connection of a statement without arguments breaks after the statement was sent: then the server
// may have executed the statement, and it must not be sent again.
func neverSent(err error) bool {
	return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// heldByPooler recognizes how PgBouncer ends a client that waits for a session of the server. It sends none of these messages
// to a client that has a session, so no statement was sent.
func heldByPooler(err error) bool {
	e, told := errors.AsType[*pgconn.PgError](err)
	if !told || severity(e) == raised {
		return false
	}
	switch e.Message {
	case "query_wait_timeout", "query_timeout", "server shutting down", "client_login_timeout (server down)":
		return e.Code == "08P01"
	}
	return e.Code == "08P01" && strings.HasPrefix(e.Message, "server login has been failing")
}

// ofOthers is the detail of an error, with one line for each object, in one line.
func ofOthers(detail string) string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(detail), "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, ", ")
}

// ofPooler is the advice about errors that poolers send. All of them have the same code.
func ofPooler(e *pgconn.PgError) string {
	switch {
	case strings.HasPrefix(e.Message, "unsupported startup parameter"):
		return "; PgBouncer passes this parameter of the URL, after ?, not on: leave it out, and set it with ALTER ROLE … SET"
	case strings.HasPrefix(e.Message, "no more connections allowed"), strings.HasPrefix(e.Message, "client connections exceeded"):
		return "; all connections that PgBouncer takes are in use: raise that setting of PgBouncer, or start fewer processes at a time"
	case strings.HasPrefix(e.Message, "server login has been failing"):
		return "; PgBouncer itself could not log in to the server: the log of PgBouncer says why"
	case e.Message == "query_wait_timeout" || e.Message == "query_timeout":
		return "; PgBouncer had no free session of the server for that long: raise its default_pool_size, or use pool_mode = transaction"
	case strings.Contains(e.Message, "statement pooling mode"):
		return "; dbjobs needs transactions: use pool_mode = transaction, or give the URL of the server itself"
	}
	return ""
}

// lacksOnPostgres reports whether the server has no advisory locks. Some servers that speak the protocol have
// none. dbjobs uses one such lock so that only one migrator works at a time, and another one so that only one
// process takes runs at a time. Both kinds of work are correct without the lock, because of keys and conditions.
func lacksOnPostgres(statement string, err error) bool {
	var pe *pgconn.PgError
	spares := statement == "reserve_queued" || statement == schemaLock
	return spares && errors.As(err, &pe) && (pe.Code == "42883" || pe.Code == "0A000") // the function does not exist; not supported
}

// postgresStarts recognizes cannot_connect_now.
func postgresStarts(err error) bool {
	pe, coded := errors.AsType[*pgconn.PgError](err)
	return coded && pe.Code == "57P03"
}

// postgresAtFault decides by the classes of SQLSTATE.
func postgresAtFault(err error) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || len(pe.Code) != 5 {
		return false
	}
	switch pe.Code[:2] {
	case "0L", "20", "21", "22", "23", "27", "2F", "38", "39", "42", "44", "54", "P0":
		return pe.Code != "42501" && classifyPostgres(err) != noTable && !withoutIDs(pe)
	}
	return false
}

// withoutIDs recognizes a server that takes no writes any more, because it has no ids left for transactions, or for locks that
// several of them share. The message may be in any language: see passedOnByPostgres.
func withoutIDs(err *pgconn.PgError) bool {
	return err.Code == "54000" && (err.Routine == "GetNewTransactionId" || err.Routine == "GetNewMultiXactId")
}

func adviseOnPostgres(err error) string {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return ofCertificate(err, "sslrootcert")
	}
	if pe.Code == "42501" && strings.HasSuffix(pe.Message, `row-level security policy for table "ticks"`) {
		return "; with owners, the ticks of a user have the name of its login: give it as --name or DBJOBS_NAME; the login of a tick for all owners " +
			"is a member of dbjobs_ticker; after a restore, run `dbjobs migrate --owners`"
	}
	if pe.Code == "42501" && strings.HasSuffix(pe.Message, `row-level security policy for table "changes"`) {
		return "; with owners, the change log names a user by its login: leave out --by and DBJOBS_BY, which are for an administrator"
	}
	if pe.Code == "42501" && strings.Contains(pe.Message, "row-level security") {
		return "; with owners (`dbjobs migrate --owners`), only an administrator may write what belongs to another login, or name that"
	}
	if pe.Code == "42704" && strings.Contains(pe.Message, "configuration parameter") {
		return "; an option of the URL, after ?, that is not about the connection is a parameter of the server"
	}
	if table := numberedTable(pe); table != "" {
		return "; the sequence that numbers the rows is behind them, as after a restore or a replication of the rows alone; `dbjobs doctor` names all such sequences. Here: " +
			AdvanceSequence(table)
	}
	if pe.Code == "08P01" {
		return ofPooler(pe)
	}
	if withoutIDs(pe) {
		return "; the server has no ids for transactions left: end old transactions, prepared transactions and replication slots that nobody needs, then VACUUM"
	}
	if pe.Code == "2BP01" && pe.Detail != "" { // the message says that there are such objects, the detail which ones
		return "; " + ofOthers(pe.Detail) + ": drop what is not of dbjobs first"
	}
	return postgresAdvice[pe.Code]
}

const forLogin = ", as it is set for the server, the database or this login"

var postgresAdvice = secret.Ours(map[string]string{
	"28P01": "; the password is wrong, or the login has none, or its VALID UNTIL is over",
	"25006": "; the server is a standby, or default_transaction_read_only is on for the server, the database or this login: " +
		"name the primary server in the URL, of several hosts with ?target_session_attrs=read-write, or ALTER ROLE … SET default_transaction_read_only = off",
	"42501": rights,
	"57014": "; where nobody cancelled it, statement_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET statement_timeout = '1min'",
	"25P03": "; idle_in_transaction_session_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET idle_in_transaction_session_timeout = '1min'",
	"25P04": "; transaction_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET transaction_timeout = '1min'",
	"57P05": "; idle_session_timeout" + forLogin + ", is too short for dbjobs: ALTER ROLE … SET idle_session_timeout = '1min'",
})
