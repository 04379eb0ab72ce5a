package engine

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Told holds the reports of an attempt's statements besides their success: the rows that they return,
// and the notices and warnings of the engine. It keeps only a bounded part of them.
type Told struct {
	Lines []string // a row is a JSON object on one line, with its columns in order; a notice begins with its severity
	Rows  int64    // returned by all statements
	Asked bool     // a result could have had rows
	first []byte   // the first row, as a JSON object, without values that are too long, and what comes after too many bytes of others

	rows, notices int   // of the lines
	left          int   // notices that were not kept
	more          int64 // rows that were not kept, as the last line says; 0: it says something else
}

// Bounds of what is reported.
const (
	mostRows    = 20      // of an attempt
	mostNotices = 20      // of an attempt
	mostValue   = 1 << 10 // bytes of a value, and of a notice
	mostRow     = 8 << 10 // bytes of a row; the column that passes them is the last one
)

type listening struct{}

// Listen makes the sessions of jobs report to t the rows and notices of the statements of this context.
func Listen(ctx context.Context, t *Told) context.Context {
	return context.WithValue(ctx, listening{}, t)
}

func listener(ctx context.Context) *Told {
	t, _ := ctx.Value(listening{}).(*Told)
	return t
}

// wantsRow counts a row, and reports whether the caller has to keep it by row.
func (t *Told) wantsRow() bool {
	t.Rows++
	return t.rows < mostRows
}

// row keeps a row. value returns the value of a column as JSON, and reports whether it is whole.
func (t *Told) row(columns []string, value func(i int) (text []byte, whole bool)) {
	t.rows++
	t.more = 0
	line, first := []byte{'{'}, []byte{'{'}
	for i, name := range columns {
		shown := len(line) <= mostRow
		if !shown && (t.first != nil || len(first) > mostRow) {
			break
		}
		text, whole := value(i)
		field := slices.Concat(quoteJSON(name), []byte(": "), text)
		if whole && len(first) <= mostRow {
			first = appendField(first, field)
		}
		if !shown {
			continue
		}
		line = appendField(line, field)
		if rest := len(columns) - i - 1; rest > 0 && len(line) > mostRow {
			line = fmt.Appendf(line, `, "…": "%d more columns"`, rest)
		}
	}
	t.Lines = append(t.Lines, string(append(line, '}')))
	if t.first == nil {
		t.first = append(first, '}')
	}
}

// appendField appends a field to a JSON object that is not closed yet.
func appendField(object, field []byte) []byte {
	if len(object) > 1 {
		object = append(object, ", "...)
	}
	return append(object, field...)
}

// ended ends the rows of a result. more is how many of them were not kept. Results that follow one another share a line: a
// procedure may return one in each turn of a loop.
func (t *Told) ended(more int64) {
	if more == 0 {
		return
	}
	if t.more > 0 {
		t.Lines = t.Lines[:len(t.Lines)-1]
	}
	t.more += more
	t.Lines = append(t.Lines, fmt.Sprintf("… %d more rows", t.more))
}

// notice keeps a message.
func (t *Told) notice(text string) {
	if t.notices++; t.notices > mostNotices {
		t.left++
		return
	}
	t.more = 0
	t.Lines = append(t.Lines, shortened(text))
}

// Facts returns the number of rows and the first row, as a JSON object; empty if no statement returns rows.
func (t *Told) Facts() string {
	switch {
	case !t.Asked:
		return ""
	case t.first == nil:
		return `{"rows": 0}`
	}
	return fmt.Sprintf(`{"rows": %d, "row": %s}`, t.Rows, t.first)
}

// End adds the rest of the report.
func (t *Told) End() {
	if t.left > 0 {
		t.Lines = append(t.Lines, fmt.Sprintf("… %d more notices", t.left))
	}
}

func shortened(s string) string {
	if len(s) <= mostValue {
		return s
	}
	return strings.ToValidUTF8(s[:mostValue], "") + "…"
}

func quoteJSON(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(shortened(s)) // a text can always be encoded
	return bytes.TrimRight(b.Bytes(), "\n")
}

// read reads all rows of a driver, in all results, and keeps some of them. It returns how many there were,
// and whether any result had columns.
func (t *Told) read(ctx context.Context, rows driver.Rows) (n int64, columns bool, err error) {
	defer func() {
		if closed := rows.Close(); err == nil {
			err = closed
		}
	}()
	for {
		given, err := t.result(ctx, rows, nil)
		n += given
		columns = columns || len(rows.Columns()) > 0
		if err != nil {
			return n, columns, err
		}
		next, ok := rows.(driver.RowsNextResultSet)
		if !ok || !next.HasNextResultSet() {
			return n, columns, nil
		}
		if err = next.NextResultSet(); errors.Is(err, io.EOF) {
			return n, columns, nil
		} else if err != nil {
			return n, columns, err
		}
	}
}

// result reads the rows of one result of a driver, and keeps some of them. It returns their number. as converts the
// driver's values to the kept form; nil: they have it already.
func (t *Told) result(ctx context.Context, rows driver.Rows, as func(v driver.Value, kind string) driver.Value) (n int64, err error) {
	names := rows.Columns()
	t.Asked = t.Asked || len(names) > 0
	values, more := make([]driver.Value, len(names)), int64(0)
	for len(names) > 0 {
		if err = rows.Next(values); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return n, err
		}
		if n++; ctx.Err() != nil {
			return n, ctx.Err()
		}
		if !t.wantsRow() {
			more++
			continue
		}
		t.row(names, func(i int) ([]byte, bool) {
			v, kind := values[i], typeOf(rows, i)
			if as != nil {
				v = as(v, kind)
			}
			return jsonOf(v, kind), !long(v)
		})
	}
	t.ended(more)
	return n, nil
}

func typeOf(rows driver.Rows, column int) string {
	if r, ok := rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return r.ColumnTypeDatabaseTypeName(column)
	}
	return ""
}

// jsonOf returns a value of a driver as JSON: numbers with their digits, instants in the engine's form, and bytes
// that are not text in hexadecimal digits.
func jsonOf(v driver.Value, kind string) []byte {
	switch v := v.(type) {
	case nil:
		return []byte("null")
	case bool:
		return strconv.AppendBool(nil, v)
	case int64:
		return strconv.AppendInt(nil, v, 10)
	case uint64:
		return strconv.AppendUint(nil, v, 10)
	case float32:
		return number64(float64(v), 32)
	case float64:
		return number64(v, 64)
	case time.Time:
		if kind == "DATE" {
			return quoteJSON(v.Format(time.DateOnly))
		}
		return quoteJSON(v.Format("2006-01-02 15:04:05.999999"))
	case []byte:
		switch {
		case kind == "DECIMAL" && len(v) < mostValue && json.Valid(v):
			return slices.Clone(v)
		case !utf8.Valid(v):
			return quoteJSON("0x" + hex.EncodeToString(v[:min(len(v), mostValue)]))
		}
		return quoteJSON(string(v))
	}
	return quoteJSON(fmt.Sprint(v))
}

// long reports whether a value is longer than the part of a value that is kept: jsonOf cuts it.
func long(v driver.Value) bool {
	switch v := v.(type) {
	case []byte:
		return len(v) > mostValue || len("0x")+2*len(v) > mostValue && !utf8.Valid(v)
	case string:
		return len(v) > mostValue
	}
	return false
}

func number64(v float64, bits int) []byte {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return quoteJSON(fmt.Sprint(v))
	}
	return strconv.AppendFloat(nil, v, 'g', -1, bits)
}
