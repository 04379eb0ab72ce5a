package engine

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// toldBy is the key under which a connection keeps the Told of the statement that it executes.
const toldBy = "dbjobs.told"

// postgresNotice gets each notice of the server while a statement is executed.
func postgresNotice(conn *pgconn.PgConn, n *pgconn.Notice) {
	t, _ := conn.CustomData()[toldBy].(*Told)
	if t == nil {
		return
	}
	t.notice(severity((*pgconn.PgError)(n)) + ": " + n.Message)
	if n.Detail != "" {
		t.notice("DETAIL: " + n.Detail)
	}
	if n.Hint != "" {
		t.notice("HINT: " + n.Hint)
	}
}

// ExecContext executes a statement in one trip, as the driver's own method does. If the context has
// a listener, it also keeps rows and notices, which the driver would drop.
func (c *postgresJobConn) ExecContext(ctx context.Context, query string, list []driver.NamedValue) (driver.Result, error) {
	t := listener(ctx)
	args, texts := postgresTexts(list)
	if t == nil && c.goesWithCommit(ctx, query, list) {
		return driver.RowsAffected(1), nil
	}
	if t == nil || !texts {
		if err := c.begun(ctx); err != nil {
			return nil, err
		}
		res, err := execOnPgx(ctx, c.Conn, query, list)
		if err != nil && neverSent(err) {
			return nil, driver.ErrBadConn
		}
		return res, lostOnPostgres(err)
	}
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	c.pg().CustomData()[toldBy] = t
	defer delete(c.pg().CustomData(), toldBy)
	affected, err := c.execute(ctx, t, query, args)
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok && failed.Where != "" {
		t.notice("CONTEXT: " + failed.Where)
	}
	if err != nil && neverSent(err) {
		return nil, driver.ErrBadConn
	}
	return driver.RowsAffected(affected), lostOnPostgres(err)
}

// execute sends several statements without arguments as one text. It sends a statement with arguments separately.
func (c *postgresJobConn) execute(ctx context.Context, t *Told, query string, args [][]byte) (affected int64, err error) {
	if c.beginsWith(query) {
		return c.beginAnd(ctx, t, query, args)
	}
	if err := c.begun(ctx); err != nil {
		return 0, err
	}
	if len(args) > 0 {
		return t.postgresResult(c.pg().ExecParams(ctx, query, args, nil, nil, nil))
	}
	if c.renewsAlong(ctx, query) {
		tag, err := c.executeAndRenew(ctx, t, query)
		return tag.RowsAffected(), err
	}
	results := c.pg().Exec(ctx, query)
	for results.NextResult() {
		if n, err := t.postgresResult(results.ResultReader()); err == nil {
			affected = n
		}
	}
	return affected, results.Close()
}

func (t *Told) postgresResult(r *pgconn.ResultReader) (affected int64, err error) {
	var rows postgresRowsTold
	for _, f := range r.FieldDescriptions() {
		rows.column(t, f.Name, f.DataTypeOID)
	}
	for r.NextRow() {
		rows.row(t, r.Values())
	}
	t.ended(rows.more)
	tag, err := r.Close()
	return tag.RowsAffected(), err
}

// postgresRowsTold are the rows of a result, of which some are kept.
type postgresRowsTold struct {
	names []string
	oids  []uint32 // of the columns' types
	more  int64    // rows that are not kept
}

func (r *postgresRowsTold) column(t *Told, name string, oid uint32) {
	t.Asked = true
	r.names, r.oids = append(r.names, name), append(r.oids, oid)
}

func (r *postgresRowsTold) row(t *Told, values [][]byte) {
	if !t.wantsRow() {
		r.more++
		return
	}
	t.row(r.names, func(i int) ([]byte, bool) { return postgresJSON(r.oids[i], values[i]), len(values[i]) <= mostValue })
}

// postgresTexts returns the arguments, and reports whether all of them are text or NULL, as the
// arguments of jobs are.
func postgresTexts(list []driver.NamedValue) ([][]byte, bool) {
	args := make([][]byte, len(list))
	for i, a := range list {
		switch v := a.Value.(type) {
		case nil:
		case string:
			args[i] = append([]byte{}, v...) // empty is not NULL
		default:
			return nil, false
		}
	}
	return args, true
}

// postgresJSON returns a value as JSON. The server sends the value as text.
func postgresJSON(oid uint32, text []byte) []byte {
	if text == nil {
		return []byte("null")
	}
	switch oid {
	case pgtype.BoolOID:
		if string(text) == "t" {
			return []byte("true")
		}
		return []byte("false")
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID, pgtype.JSONOID, pgtype.JSONBOID:
		if len(text) <= mostValue && json.Valid(text) {
			return []byte(strings.ReplaceAll(string(slices.Clone(text)), "\n", " ")) // line ends in JSON are white space
		}
	}
	return quoteJSON(string(text))
}

func severity(e *pgconn.PgError) string {
	if e.SeverityUnlocalized != "" {
		return e.SeverityUnlocalized
	}
	return e.Severity
}
