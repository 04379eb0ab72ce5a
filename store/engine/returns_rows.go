package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Drivers that answer either with rows or with the number of rows affected are asked for rows where the
// text looks as if it returns some. A wrong guess costs a trip more, or loses the rows.
var (
	beginOfText = lazyregexp.New(`(?s)^(\s|\(|--[^\n]*(\n|$)|#[^\n]*(\n|$)|/\*.*?\*/)*`)
	firstWord   = lazyregexp.New(`^[A-Za-z]+`)
	returning   = lazyregexp.New(`(?i)\bRETURNING\b`)
	writes      = lazyregexp.New(`(?i)\b(INSERT|UPDATE|DELETE|REPLACE)\b`)
	oneText     = lazyregexp.New(`^[^;]*;?\s*$`)
)

// quotedInSQLite matches literals, names and comments, in which no word and no sign belongs to the statement.
var quotedInSQLite = lazyregexp.New("(?s)'[^']*'|\"[^\"]*\"|`[^`]*`|\\[[^\\]]*\\]|--[^\\n]*|/\\*.*?\\*/|/\\*.+$")

// closedInSQLite is a text without the comment at its end, if nothing closes the comment.
func closedInSQLite(text string) string {
	list := quotedInSQLite.FindAllString(text, -1)
	if len(list) == 0 {
		return text
	}
	last := list[len(list)-1]
	if !strings.HasPrefix(last, "/*") || len(last) > len("/*/") && strings.HasSuffix(last, "*/") {
		return text
	}
	return strings.TrimSuffix(text, last)
}

// blanked is a text with blanks in place of what quoted matches.
func blanked(text string, quoted *lazyregexp.Regexp) string {
	return quoted.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)) })
}

var wordOrSign = lazyregexp.New(`[A-Za-z_]\w*|[(),]`)

// mainVerb is the verb of a text that is blanked. After WITH, it is the first one that is in no brackets and names no query.
func mainVerb(text string) string {
	v, depth, before := verb(text), 0, ""
	if v != "WITH" {
		return v
	}
	for _, word := range wordOrSign.FindAllString(text, -1) {
		word = strings.ToUpper(word)
		names := before == "WITH" || before == "RECURSIVE" || before == ","
		before = word
		switch {
		case word == "(":
			depth++
		case word == ")":
			depth--
		case depth == 0 && !names && (word == "SELECT" || word == "VALUES" || word == "TABLE" || writes.MatchString(word)):
			return word
		}
	}
	return v
}

// verb is the first word of a text, in capital letters.
func verb(text string) string {
	return strings.ToUpper(firstWord.FindString(text[len(beginOfText.FindString(text)):]))
}

// ExecContext executes a statement. Where somebody listens, it keeps rows; and warnings, for which it has
// to ask once more, since the driver drops their number: so it asks only after texts that are likely to
// have some, and never after a plain INSERT.
func (c *mysqlJobConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	t := listener(ctx)
	if t == nil {
		return c.boundedConn.ExecContext(ctx, query, args)
	}
	affected, err := c.execute(ctx, t, query, args)
	if err == nil && mysqlMayWarn(query) {
		err = c.warnings(ctx, t)
	}
	return driver.RowsAffected(affected), err
}

func (c *mysqlJobConn) execute(ctx context.Context, t *Told, query string, args []driver.NamedValue) (int64, error) {
	if !mysqlReturnsRows(query) {
		c.renewAlong(ctx, query)
		r, err := c.boundedConn.ExecContext(ctx, query, args)
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	rows, err := c.QueryContext(ctx, query, args)
	if err != nil {
		return 0, err
	}
	n, columns, err := t.read(ctx, rows)
	switch {
	case err != nil:
		return 0, c.why.told(err)
	case !columns: // also where RETURNING is only a word of a text
		return c.rowCount(ctx)
	}
	return n, nil
}

var (
	mysqlRowVerbs = []string{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "CALL", "EXECUTE", "HANDLER", "XA", "CHECK", "CHECKSUM", "ANALYZE", "OPTIMIZE", "REPAIR", "HELP", "CACHE",
		"BEGIN", "IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR"} // these begin statements of MariaDB that have others in them
	// forOne matches the settings for one statement that MariaDB takes before it.
	forOne = lazyregexp.New(`(?is)^\s*SET\s+STATEMENT\s.*?\bFOR\b`)
	// maintains matches what returns rows, although other statements with its verb do not.
	maintains = lazyregexp.New(`(?is)^\s*(LOAD\s+INDEX\b|ALTER\b.*\b(ANALYZE|CHECK|OPTIMIZE|REPAIR)\s+PARTITION\b)`)
	// executed matches the begin of a comment that is part of the statement.
	executed = lazyregexp.New(`^/\*M?!\d*`)
)

// mysqlPlain is a text that is blanked, with the words of comments that the server executes.
func mysqlPlain(text string) string {
	return placesInMySQL.ReplaceAllStringFunc(text, func(s string) string {
		if begin := executed.FindString(s); begin != "" {
			return " " + blanked(s[len(begin):len(s)-len("*/")], placesInMySQL) + " "
		}
		return strings.Repeat(" ", len(s))
	})
}

func mysqlReturnsRows(text string) bool {
	plain := mysqlPlain(text)
	plain = plain[len(forOne.FindString(plain)):]
	v := mainVerb(plain)
	return slices.Contains(mysqlRowVerbs, v) || returning.MatchString(text) && writes.MatchString(v) || maintains.MatchString(plain)
}

var (
	mysqlWarningVerbs = []string{"CALL", "CREATE", "ALTER", "DROP", "LOAD", "TRUNCATE"}
	ignoring          = lazyregexp.New(`(?i)^\s*(INSERT|UPDATE|DELETE|REPLACE)\s+((LOW_PRIORITY|HIGH_PRIORITY|QUICK)\s+)?IGNORE\b`)
)

func mysqlMayWarn(text string) bool {
	return slices.Contains(mysqlWarningVerbs, verb(mysqlPlain(text))) || ignoring.MatchString(text)
}

// rowCount is the number of rows that the last statement changed, such as the last of a procedure.
func (c *mysqlJobConn) rowCount(ctx context.Context) (n int64, err error) {
	err = c.each(ctx, "SELECT ROW_COUNT()", func(v []driver.Value) { n, _ = v[0].(int64) })
	return max(n, 0), err
}

func (c *mysqlJobConn) warnings(ctx context.Context, t *Told) error {
	return c.each(ctx, "SHOW WARNINGS", func(v []driver.Value) {
		text := make([]string, 0, len(v))
		for _, one := range v {
			var s sql.NullString
			_ = s.Scan(one) // texts and a number
			text = append(text, s.String)
		}
		if len(text) == 3 {
			t.notice(strings.ToUpper(text[0]) + ": " + text[2] + " (" + text[1] + ")")
		}
	})
}

func (c *mysqlJobConn) each(ctx context.Context, query string, row func([]driver.Value)) error {
	rows, err := c.QueryContext(ctx, query, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case err == nil:
			row(values)
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// sqliteForJobs makes connections that report rows.
type sqliteForJobs struct {
	sqliteOfFile
	oneFile bool // they reach no other file
	own     bool // the file is that of the ledger
}

// Connect connects.
func (c sqliteForJobs) Connect(ctx context.Context) (driver.Conn, error) {
	kept, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &sqliteJobConn{keptStatements: kept}
	if c.own {
		err = conn.syncWithLedger(ctx)
	}
	if c.oneFile && err == nil {
		err = conn.keepToOneFile()
	}
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	return conn, nil
}

type sqliteJobConn struct {
	*keptStatements
	vacuums bool // what is executed is a VACUUM, which attaches a file without a name
	later   bool // its commits are synced later, but for those of atomic steps: see syncWithLedger
	synced  bool // the next one is
	atomic  bool // a transaction of such a step is open
}

// ExecContext executes a statement. Where somebody listens, it keeps rows.
//
// The driver stops a statement at the end of its context only while it looks for the first row. So a
// SELECT is executed as a whole before its first row is given: as a table of which all rows are read.
func (c *sqliteJobConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	t, whole := listener(ctx), ""
	if t != nil {
		whole = sqliteWhole(query)
	}
	if whole == "" {
		c.relax(ctx)
		c.vacuums = vacuum.MatchString(query)
		res, err := c.keptStatements.ExecContext(ctx, query, args)
		c.vacuums = false
		return res, otherFile(err)
	}
	rows, err := c.QueryContext(ctx, whole, args)
	if err != nil {
		return nil, err
	}
	asStored(rows)
	n, columns, err := t.read(ctx, rows)
	if err == nil && !columns && writes.MatchString(mainVerb(blanked(query, quotedInSQLite))) { // RETURNING is only a word, such as a name
		n, err = c.changes(ctx)
	}
	return driver.RowsAffected(n), err
}

// changes is the number of rows that the last statement changed.
func (c *sqliteJobConn) changes(ctx context.Context) (n int64, err error) {
	rows, err := c.QueryContext(ctx, "SELECT changes()", nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	values := make([]driver.Value, 1)
	if err = rows.Next(values); err == nil {
		n, _ = values[0].(int64)
	}
	return n, err
}

// sqliteWhole is the text that has all of its rows before it gives the first; empty: the text returns
// none, or is not known to be one statement.
func sqliteWhole(text string) string {
	plain := blanked(text, quotedInSQLite)
	v := mainVerb(plain)
	if end := strings.IndexByte(plain, ';'); end >= 0 {
		text = text[:end]
	}
	switch {
	case !oneText.MatchString(plain):
		return ""
	case returning.MatchString(plain) && writes.MatchString(v): // changes all rows first
		return text
	case v == "PRAGMA" || v == "EXPLAIN":
		return text
	case v == "SELECT" || v == "VALUES":
		return "WITH dbjobs_rows AS MATERIALIZED (" + closedInSQLite(text) + "\n) SELECT * FROM dbjobs_rows"
	}
	return ""
}
