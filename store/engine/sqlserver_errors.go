package engine

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"
)

// sqlserverError has all errors of a text. As a rule, the first one is the cause of the others.
type sqlserverError struct {
	list []mssql.Error
	end  error // how the answer ended: a fatal error ends the session
}

func (e *sqlserverError) Error() string {
	const most = 5
	texts := make([]string, 0, most)
	for i, one := range e.list {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %d more errors", len(e.list)-i))
			break
		}
		texts = append(texts, messageOfSQLServer(one))
	}
	return strings.Join(texts, "; then ")
}

func (e *sqlserverError) Unwrap() []error {
	if e.end == nil {
		return []error{e.list[0]}
	}
	return []error{e.list[0], e.end}
}

// messageOfSQLServer returns an error in the words of the server's own tools.
func messageOfSQLServer(e mssql.Error) string {
	where := ""
	if e.ProcName != "" {
		where = ", Procedure " + e.ProcName
	}
	return fmt.Sprintf("Msg %d, Level %d, State %d%s, Line %d: %s", e.Number, e.Class, e.State, where, e.LineNo, e.Message)
}

// describeSQLServer: a line within a procedure is not a line of the statement.
func describeSQLServer(err error, _ string) (Failure, bool) {
	e, ok := errors.AsType[mssql.Error](err)
	if !ok {
		return Failure{}, false
	}
	f := Failure{Code: strconv.Itoa(int(e.Number)), Severity: strconv.Itoa(int(e.Class)), Detail: fmt.Sprintf("state %d", e.State)}
	if e.ProcName == "" {
		f.Line = int(e.LineNo)
	} else {
		f.Detail += fmt.Sprintf("; procedure %s, line %d", e.ProcName, e.LineNo)
	}
	return f, true
}

func classifySQLServer(err error) class {
	if _, fatal := errors.AsType[mssql.ServerError](err); fatal || isBroken(err) || errors.Is(err, driver.ErrBadConn) {
		return unreachable
	}
	if e, ok := errors.AsType[mssql.Error](err); ok {
		return classOfSQLServer[e.Number]
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return unreachable
	}
	return other
}

var classOfSQLServer = map[int32]class{
	1205: transient, 3960: transient, 3961: transient, // deadlock; conflict with a newer snapshot
	1222: lockTimeout,
	3906: readOnly, 3908: readOnly,
	1105: diskFull, 9002: diskFull, // a file group, and the log
	2601: duplicate, 2627: duplicate,
	229: refused, 230: refused, 262: refused, 297: refused, 300: refused, 916: refused, 4060: refused, 4064: refused,
	18452: refused, 18456: refused, 18470: refused, 18486: refused, 18487: refused, 18488: refused,
	10928: crowded, 10929: crowded, 10936: crowded, 17809: crowded,
	6005: unreachable, 17142: unreachable, 18401: unreachable, 40197: unreachable, 40501: unreachable, 40613: unreachable,
}
