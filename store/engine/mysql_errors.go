package engine

import (
	"database/sql/driver"
	"errors"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
)

func classifyMySQL(err error) class {
	var me *mysql.MySQLError
	if errors.As(err, &me) {
		if mysqlDiskFull(me) {
			return diskFull
		}
		switch me.Number {
		case 1213, 1020, 3101: // deadlock, record changed since last read, another server of the group has changed the row
			return transient
		case 1205, 3572: // lock timeout, NOWAIT
			return lockTimeout
		case 1146:
			if strings.Contains(me.Message, "dbjobs_") {
				return noTable
			}
		case 1290: // an option of the server forbids the statement
			if strings.Contains(me.Message, "read-only") {
				return readOnly
			}
		case 1792, 1836, 1665: // read-only transaction, read-only mode, statement binlog under READ COMMITTED
			return readOnly
		case 1062:
			return duplicate
		case 4031: // idle for too long; MariaDB gives the number to a trigger that is not there, and a routine may raise it
			if strings.Contains(me.Message, "wait_timeout") {
				return gone
			}
		case 1053, 1077, 1079, 1927:
			return unreachable
		case 2006, 2013, 9001, 9002, 9501: // so ProxySQL and RDS Proxy tell that the server is away; a routine may use these numbers
			if !passedOnByMySQL(me) {
				return unreachable
			}
		case 1047: // a node of a Galera cluster that has lost the others; else a command that the server does not know
			if strings.Contains(me.Message, "WSREP") {
				return unreachable
			}
		case 1045, 1049, 1698, 1130, 1129, 3159, 1820, 1862: // the last two: the password has expired, as MariaDB says to the first statement
			return refused
		case 1044, 1142, 1143, 1227, 1370:
			return forbidden
		case 1040, 1203, 1226:
			return crowded
		}
		return other
	}
	var ne net.Error
	if errors.As(err, &ne) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || isBroken(err) {
		return unreachable
	}
	return other
}

// passedOnByMySQL reports whether SIGNAL has raised an error that is read-only or unreachable by its number, as far as it shows: the
// server does not tell who raised an error, but itself gives it the SQLSTATE HY000 or 25006. A routine mostly gives 45000, whatever the number.
func passedOnByMySQL(err error) bool {
	e, told := errors.AsType[*mysql.MySQLError](err)
	return told && string(e.SQLState[:]) != "HY000" && string(e.SQLState[:]) != "25006"
}

// mysqlDiskFull recognizes a disk that is full: that of the tables, or that of the server's tmpdir, where a long transaction and
// some queries keep what they have. The numbers are those of any error of a file, or of a table; the text tells the system's
// error. There, a temporary table that could not be written shows as a damaged one.
func mysqlDiskFull(e *mysql.MySQLError) bool {
	switch e.Number {
	case 1021, 1114: // disk full; table full, which InnoDB reports if its files cannot grow
		return true
	case 3, 1005, 1026, 1030: // writing a file; creating a table; writing a file, in other words; an error of the storage engine
		return noSpace.MatchString(e.Message)
	case 1034, 1194: // the index, or the table, is damaged
		return strings.Contains(e.Message, "(temporary)") || strings.Contains(e.Message, "#sql")
	}
	return false
}

// noSpace finds ENOSPC, or the engine's own number for a file without room.
var noSpace = lazyregexp.New(`(?i)(errcode|errno|error):? (28|135)\b`)

// lacksOnMySQL reports whether the server has no CREATE OR REPLACE for routines. MySQL has none, and
// refuses it as a syntax error. On MariaDB, the statement keeps the rights on the routine.
func lacksOnMySQL(statement string, err error) bool {
	var me *mysql.MySQLError
	return statement == replaceRoutine && errors.As(err, &me) && me.Number == 1064
}

// unusableOnMySQL recognizes a view whose definer is gone, which a server may also tell as a refused login, or may no longer read
// the tables.
func unusableOnMySQL(err error) bool {
	var me *mysql.MySQLError
	var never connectError
	return errors.As(err, &me) && (me.Number == 1449 || me.Number == 1356 || me.Number == 1045 && !errors.As(err, &never))
}

// mysqlStarts recognizes a connection that ends before the server has said anything.
func mysqlStarts(err error) bool {
	return errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn)
}

// mysqlAtFault lists the errors about the values of a row, those raised by a trigger, and those about a statement that is too
// large: with fewer rows, it may not be.
func mysqlAtFault(err error) bool {
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return true
	}
	var me *mysql.MySQLError
	if !errors.As(err, &me) {
		return false
	}
	switch me.Number {
	case 1048, 1062, 1138, 1146, 1153, 1172, 1242, 1263, 1264, 1265, 1292, 1364, 1365, 1366, 1367, 1406, 1411, 1422, 1425, 1426, 1427, 1436, 1441, 1442,
		1451, 1452, 1525, 1526, 1557, 1586, 1644, 1690, 1748, 1761, 1762, 1906, 3140, 3141, 3143, 3144, 3146, 3156, 3157, 3819, 4025, 4038, 4078, 4079:
		return classifyMySQL(err) != noTable
	}
	return strings.HasPrefix(string(me.SQLState[:]), "22") || strings.HasPrefix(string(me.SQLState[:]), "23") || strings.HasPrefix(string(me.SQLState[:]), "45")
}

func adviseOnMySQL(err error) string {
	var me *mysql.MySQLError
	if !errors.As(err, &me) {
		return ofCertificate(err, "ssl-ca")
	}
	if (me.Number == 1290 || me.Number == 1047) && classifyMySQL(me) == other { // such as --secure-file-priv
		return ""
	}
	return mysqlAdvice[me.Number]
}

const variable = " is too short for dbjobs; set it to one minute"

const readOnlyServer = "; the server is a replica, or read_only is on: name the server that takes writes in the URL"

const expired = "; the password of this login has expired: ALTER USER … IDENTIFIED BY …, and let the URL have the new one"

var mysqlAdvice = secret.Ours(map[uint16]string{
	1045: "; the password is wrong, the login may not come from this host, or it has REQUIRE SSL and the URL has no ssl-mode=REQUIRED, or REQUIRE X509, ISSUER or SUBJECT and the URL has no ssl-cert for that",
	1047: "; this server has lost the others of its cluster: it takes no statements until it finds them",
	1226: "; it is a limit of this account: ALTER USER … WITH MAX_QUERIES_PER_HOUR 0, or with another of its limits, takes it off",
	1820: expired, 1862: expired,
	1153: "; max_allowed_packet of the server is too small for this: SET GLOBAL max_allowed_packet = 16777216",
	1290: readOnlyServer, 1836: readOnlyServer,
	3159: "; add ssl-mode=REQUIRED to the URL, or, to have the server's certificate checked, ssl-ca=FILE",
	1044: "; the server says so, too, where there is no database of this name" + rights,
	1142: rights, 1143: rights, 1227: rights, 1370: rights,
	1792: "; transaction_read_only (tx_read_only on MariaDB) is on for new sessions: SET GLOBAL … = 0, or name the server that takes writes in the URL",
	1665: "; dbjobs cannot work with binlog_format = STATEMENT: SET GLOBAL binlog_format = ROW",
	1969: "; where nobody stopped it, max_statement_time of the server or of this account" + variable,
	3024: "; max_execution_time of the server" + variable,
})
