package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// cell is a value of a row.
type cell struct {
	column string
	value  any // a text, if the driver returns bytes
}

// eachRow calls fn with each row of an answer, and of the answers that follow it, and closes them. It returns the error
// with which the answer ends.
func eachRow(t *testing.T, rows *sql.Rows, fn func(row []cell)) error {
	t.Helper()
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			row, into := make([]cell, len(columns)), make([]any, len(columns))
			for i, name := range columns {
				row[i].column, into[i] = name, &row[i].value
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i := range row {
				if b, ok := row[i].value.([]byte); ok {
					row[i].value = string(b)
				}
			}
			fn(row)
		}
	}
	return rows.Err()
}

// plainText returns the value as text. JSON has one fixed form.
func (c cell) plainText() string {
	text := fmt.Sprint(c.value)
	var document any
	if (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Unmarshal([]byte(text), &document) == nil {
		b, _ := json.Marshal(document) // it was JSON
		return string(b)
	}
	return text
}
