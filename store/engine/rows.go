package engine

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// The macro @rows(id bigint, name text, ...) is a table d of these columns: the rows of the JSON document :rows,
// which AppendField writes. The types are text, name, uuid, int, bigint, bool, instant and json. A name is a text
// that is as short as the columns of names allow.

// column is a column of a document's rows.
type column struct{ name, kind string }

func columnsOf(list string) []column {
	var out []column
	for _, c := range strings.Split(list, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(c), " ")
		out = append(out, column{name, kind})
	}
	return out
}

// table writes the columns of a document, several to a line.
func table(columns []column, each func(column) string) string {
	var b strings.Builder
	for i, c := range columns {
		switch {
		case i > 0 && i%6 == 0:
			b.WriteString(",\n  ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(each(c))
	}
	return b.String()
}

func postgresRows(columns []column) string {
	types := map[string]string{"name": "text", "bool": "boolean", "instant": "timestamptz", "json": "jsonb"}
	return "pg_catalog.json_to_recordset(:rows::json) AS d(" + table(columns, func(c column) string {
		if t, ok := types[c.kind]; ok {
			return c.name + " " + t
		}
		return c.name + " " + c.kind
	}) + ")"
}

// mysqlRows reads a document that is JSON in the document as text, as it is written: MariaDB has no column of JSON for it.
// A LONGTEXT makes each row slower to read by far, so hot statements read names.
func mysqlRows(columns []column) string {
	const text = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
	types := map[string]string{"text": text, "name": "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "json": text, "uuid": "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin", "int": "INT", "bigint": "BIGINT", "bool": "TINYINT", "instant": "DATETIME(6)"}
	return "JSON_TABLE(:rows, '$[*]' COLUMNS (" + table(columns, func(c column) string {
		return c.name + " " + types[c.kind] + " PATH '$." + c.name + "'"
	}) + ")) AS d"
}

// sqliteRows reads each row in the binary form in which the document was read. As text, a row would be written and
// read again, which is half of the cost of a document.
func sqliteRows(columns []column) string {
	return "(SELECT " + table(columns, func(c column) string { return "value ->> '" + c.name + "' AS " + c.name }) + " FROM jsonb_each(:rows)) AS d"
}

// AppendField adds a column to a row of a document. For the first column, b is empty. A value that is nil, or of
// which encode makes NULL, is left out, which is NULL in the row. Call EndRow after the last column.
func (e *Engine) AppendField(b []byte, name string, v any) []byte {
	var value []byte
	switch v := v.(type) {
	case nil:
		return b
	case bool:
		if value = []byte{'0'}; v {
			value[0] = '1'
		}
	case int:
		value = strconv.AppendInt(nil, int64(v), 10)
	case int64:
		value = strconv.AppendInt(nil, v, 10)
	case time.Time:
		if v.IsZero() {
			return b
		}
		value = quoted(e.Instant(v.UTC().Truncate(time.Microsecond)))
	case Document:
		if v == "" {
			return b
		}
		if value = []byte(v); !e.nested {
			value = quoted(string(v))
		}
	case Null:
		if v == "" {
			return b
		}
		value = quoted(string(v))
	case string:
		value = quoted(v)
	}
	if len(b) == 0 {
		b = append(b, '{')
	} else {
		b = append(b, ',')
	}
	b = append(append(append(b, '"'), name...), '"', ':')
	return append(b, value...)
}

// EndRow ends a row.
func EndRow(b []byte) json.RawMessage { return append(b, '}') }

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // strings always encode
	return b
}
