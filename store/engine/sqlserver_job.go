package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/golang-sql/sqlexp"
	mssql "github.com/microsoft/go-mssqldb"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// sqlserverJobs: a session is closed after its attempt, since a reset would leave some of its state, such as the
// level of isolation. The driver stops a statement on the server, and waits until that is confirmed.
var sqlserverJobs = jobSQL{
	refuses:         sqlserverRefuses,
	instant:         func(t time.Time) any { return t },
	runsOn:          true,
	transactionOpen: sqlserverTransactionOpen,
	describe:        describeSQLServer,
}

var (
	placesInSQLServer = lazyregexp.New(`(?s)'[^']*'|"[^"]*"|\[([^\]]|\]\])*\]|/\*|--[^\n]*|\?`)
	commentSign       = lazyregexp.New(`/\*|\*/`)
	goLine            = lazyregexp.New(`(?im)^[ \t]*GO([ \t]+\d+)?[ \t]*;?[ \t]*\r?$`)
)

func sqlserverRefuses(text string, _ bool) string {
	plain := inSQLServer(text, func(found string) string {
		switch {
		case found == "?":
			return found
		case strings.HasPrefix(found, "--"): // it may follow GO
			return ""
		}
		return "''"
	})
	if !goLine.MatchString(plain) {
		return ""
	}
	return "GO is a word of sqlcmd and of Management Studio, and no statement of SQL Server: give the texts between them one by one, as a list"
}

// inSQLServer writes a text with replacements for its placeholders, literals, names in signs, and comments. Comments nest
// there.
func inSQLServer(text string, replace func(found string) string) string {
	var b strings.Builder
	for {
		at := placesInSQLServer.FindStringIndex(text)
		if at == nil {
			return b.String() + text
		}
		from, end := at[0], at[1]
		for depth := 1; text[from:at[1]] == "/*" && depth > 0; {
			sign := commentSign.FindStringIndex(text[end:])
			if sign == nil {
				end = len(text)
				break
			}
			if depth--; text[end+sign[0]] == '/' {
				depth += 2
			}
			end += sign[1]
		}
		b.WriteString(text[:from] + replace(text[from:end]))
		text = text[end:]
	}
}

func sqlserverTransactionOpen(ctx context.Context, conn *sql.Conn) (open bool, err error) {
	depth := 0
	err = conn.QueryRowContext(ctx, "SELECT @@TRANCOUNT").Scan(&depth)
	return depth > 0, err
}

type sqlserverJobConn struct {
	*mssql.Conn
	w *wire
}

// outputs finds a statement that returns the rows that it has changed.
var outputs = lazyregexp.New(`(?i)\bOUTPUT\b`)

// ExecContext executes a text. It keeps rows and messages for a listener. All errors of the text are returned as one
// error: the server may continue after an error.
func (c *sqlserverJobConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	t := listener(ctx)
	if t == nil {
		t = &Told{}
	}
	query, err := sqlserverPlaces(query, len(args))
	if err != nil {
		return nil, err
	}
	within, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	defer c.w.watch(lose)()
	prepared, err := c.PrepareContext(within, query)
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	m := &sqlserverMessages{t: t, outputs: outputs.MatchString(query)}
	if err := c.CheckNamedValue(&driver.NamedValue{Value: &m.queue}); !errors.Is(err, driver.ErrRemoveArgument) {
		return nil, err
	}
	rows, err := prepared.(driver.StmtQueryContext).QueryContext(within, args)
	if err != nil {
		return nil, err
	}
	err = m.read(within, rows.(sqlserverRows))
	_ = rows.Close() // its errors are among the messages
	if broken := context.Cause(within); broken != nil && ctx.Err() == nil {
		err = broken
	} else if len(m.errs) > 0 && ctx.Err() == nil {
		err = &sqlserverError{m.errs, err}
	}
	return driver.RowsAffected(m.affected), err
}

type sqlserverRows interface {
	driver.RowsNextResultSet
	driver.RowsColumnTypeDatabaseTypeName
}

// sqlserverMessages reads the server's answer to one text: rows, messages, counts and errors, in their order.
type sqlserverMessages struct {
	t        *Told
	queue    sqlexp.ReturnMessage
	outputs  bool
	returned bool // the next count is that of rows that were returned
	affected int64
	errs     []mssql.Error
}

func (m *sqlserverMessages) read(ctx context.Context, rows sqlserverRows) error {
	for {
		switch v := m.queue.Message(ctx).(type) {
		case sqlexp.MsgNotice:
			if e, ok := v.Message.(mssql.Error); ok {
				m.t.sqlserverNotice(e)
			}
		case sqlexp.MsgError:
			e, ok := errors.AsType[mssql.Error](v.Error)
			if !ok {
				return v.Error // the answer cannot be read
			}
			m.errs = append(m.errs, e)
		case sqlexp.MsgRowsAffected:
			if !m.returned || m.outputs {
				m.affected += v.Count
			}
			m.returned = false
		case sqlexp.MsgNext:
			m.returned = true
			if _, err := m.t.result(ctx, rows, sqlserverValue); err != nil {
				return err
			}
		case sqlexp.MsgNextResultSet:
			if err := rows.NextResultSet(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
}

// sqlserverNotice keeps a message of a class below 11, such as one of PRINT. It drops messages that the database or
// the language was changed, and that a statement was ended by the error beside it.
func (t *Told) sqlserverNotice(e mssql.Error) {
	switch e.Number {
	case 5701, 5703, 3621:
	case 0, 50000: // of PRINT, and of RAISERROR with a text
		t.notice("INFO: " + e.Message)
	default:
		t.notice(fmt.Sprintf("INFO: %s (%d)", e.Message, e.Number))
	}
}

// sqlserverValue returns a value of a column in the form of the other engines: as text if the driver gives bytes or
// an instant.
func sqlserverValue(v driver.Value, kind string) driver.Value {
	switch v := v.(type) {
	case []byte:
		var id mssql.UniqueIdentifier
		if kind == "UNIQUEIDENTIFIER" && id.Scan(v) == nil {
			return id.String()
		}
	case time.Time:
		switch kind {
		case "TIME":
			return v.Format("15:04:05.9999999")
		case "DATETIME2":
			return v.Format("2006-01-02 15:04:05.9999999")
		case "DATETIMEOFFSET":
			return v.Format("2006-01-02 15:04:05.9999999 -07:00")
		}
	}
	return v
}
