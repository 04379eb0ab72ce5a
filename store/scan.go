package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// reader reads rows column by column. What somebody put there by hand and cannot be read is a fault of that row, told by
// the name of the column, and never the end of the rows behind it.
type reader struct {
	cells []cell
	into  []any
}

// reads is a reader into these destinations. They are the same for all rows: who needs them fresh resets them before row.
func reads(dest ...any) *reader {
	r := &reader{make([]cell, len(dest)), make([]any, len(dest))}
	for i := range dest {
		r.cells[i].dest = dest[i]
		r.into[i] = &r.cells[i]
	}
	return r
}

// row reads one row. The fault says which columns could not be read, what they hold and what is wanted; empty: all could.
// A destination whose column could not be read is left as it was.
func (r *reader) row(rows *sql.Rows) (fault string, err error) {
	if err := rows.Scan(r.into...); err != nil {
		return "", err
	}
	for i := range r.cells {
		if r.cells[i].err == nil {
			continue
		}
		names, err := rows.Columns()
		if err != nil {
			return "", err
		}
		fault = alsoFault(fault, fmt.Sprintf("column %s: %v", names[i], r.cells[i].err))
	}
	return fault, nil
}

// alsoFault joins two faults, of which one may be empty.
func alsoFault(fault, other string) string {
	if fault != "" && other != "" && !strings.Contains(fault, other) {
		return fault + "; " + other
	}
	if fault == "" {
		return other
	}
	return fault
}

// each reads the rows of a statement by the reader, and hands what could not be read of each to fn.
func (s *Store) each(rd *reader, fn func(fault string) error) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		fault, err := rd.row(rows)
		if err != nil {
			return err
		}
		return fn(fault)
	}
}

// cell is a column of a row. It takes whatever the driver gives, and keeps what is wrong with it.
type cell struct {
	dest any
	err  error
}

// Scan never fails: see err.
func (c *cell) Scan(src any) error {
	c.err = assign(c.dest, src)
	return nil
}

// assign is what database/sql does for destinations, with errors that say what the column holds.
func assign(dest, src any) error {
	switch d := dest.(type) {
	case sql.Scanner:
		return d.Scan(src)
	case *string:
		return assignText(d, src)
	case *int64:
		return assignNumber(d, src)
	case *int:
		return assignNumber(d, src)
	case *bool:
		var v sql.NullBool
		if v.Scan(src) != nil || !v.Valid {
			return holds(src, "true or false")
		}
		*d = v.Bool
		return nil
	}
	return fmt.Errorf("no way to read into %T", dest)
}

func assignText(d *string, src any) error {
	switch v := src.(type) {
	case string:
		*d = v
	case []byte:
		*d = string(v)
	default:
		var n sql.NullString
		if n.Scan(src) != nil || !n.Valid {
			return holds(src, "text")
		}
		*d = n.String
	}
	if !utf8.ValidString(*d) {
		return holds(src, "UTF-8 text")
	}
	return nil
}

func assignNumber[T int | int64](d *T, src any) error {
	if v, ok := src.(int64); ok {
		*d = T(v)
		return nil
	}
	var n sql.NullInt64
	if n.Scan(src) != nil || !n.Valid {
		return holds(src, "a whole number")
	}
	*d = T(n.Int64)
	return nil
}

// holds says what a column holds instead of what it should.
func holds(src any, want string) error {
	const most = 60
	var is string
	switch v := src.(type) {
	case nil:
		return errors.New("is NULL, want " + want)
	case time.Time:
		is = v.UTC().Format(time.RFC3339)
	case []byte:
		is = fmt.Sprintf("%.*q", most, v)
	case string:
		is = fmt.Sprintf("%.*q", most, v)
	default:
		is = fmt.Sprint(v)
	}
	return fmt.Errorf("holds %s, want %s", is, want)
}

// into scans a column into *T and takes NULL for the zero value.
type into[T any] struct{ p *T }

func (n into[T]) Scan(src any) error {
	if src == nil {
		var zero T
		*n.p = zero
		return nil
	}
	return assign(n.p, src)
}

func nullable[T any](p *T) into[T] { return into[T]{p} }

// at scans an instant, whether the driver gives a time or text, and takes NULL for the zero time. Times are UTC. What lies
// outside the ends of time is none: infinity, a year of five digits, MySQL's 0000-00-00.
type at struct{ p *time.Time }

func (a at) Scan(src any) error {
	var t time.Time
	ok := false
	switch v := src.(type) {
	case nil:
		*a.p = time.Time{}
		return nil
	case time.Time:
		t, ok = v.UTC(), true
	case string:
		t, ok = parseInstant(v)
	case []byte:
		t, ok = parseInstant(string(v))
	}
	if !ok || !clamp(t).Equal(t) {
		return holds(src, "an instant in UTC such as 2026-01-05T08:00:00.000000Z, of the years 1000 to 9999")
	}
	*a.p = t
	return nil
}

// moment scans an instant, or that there is one which cannot be read.
type moment struct {
	time.Time
	unreadable bool
	raw        any // as the driver gives it
}

// Scan never fails.
func (m *moment) Scan(src any) error {
	*m = moment{raw: src}
	if b, ok := src.([]byte); ok {
		m.raw = string(b)
	}
	m.unreadable = at{&m.Time}.Scan(src) != nil
	return nil
}

// set tells that the column is not NULL.
func (m *moment) set() bool { return m.unreadable || !m.IsZero() }

// present scans whether a column is not NULL.
type present bool

// Scan never fails.
func (p *present) Scan(src any) error {
	*p = src != nil
	return nil
}

// longestWait is the longest duration that a policy may have, and mostMillis what a duration can hold at all.
const (
	longestWait = 100 * 365 * 24 * time.Hour
	mostMillis  = 9_000_000_000_000
)

// ms scans whole milliseconds, and takes NULL for zero.
type ms struct{ p *Duration }

func (m ms) Scan(src any) error {
	*m.p = 0
	if src == nil {
		return nil
	}
	var v int64
	if err := assignNumber(&v, src); err != nil {
		return err
	}
	if v < 0 || v > mostMillis {
		return holds(src, fmt.Sprintf("milliseconds from 0 to %d, which is 36500d", longestWait.Milliseconds()))
	}
	*m.p = Duration(time.Duration(v) * time.Millisecond)
	return nil
}

// mostCounted bounds what counts up in a column of 32 bits, and mostMade in one of 64: room for one more is left.
const (
	mostCounted = 2_000_000_000
	mostMade    = 4_000_000_000_000_000_000
)

// counter scans a number that the program counts up.
type counter[T int | int64] struct{ p *T }

func (c counter[T]) Scan(src any) error {
	var v int64
	if src == nil {
		*c.p = 0
		return nil
	}
	if err := assignNumber(&v, src); err != nil {
		return err
	}
	most := int64(mostCounted)
	if _, large := any(c.p).(*int64); large {
		most = mostMade
	}
	if v > most || v < -most {
		return holds(src, fmt.Sprintf("at most %d", most))
	}
	*c.p = T(v)
	return nil
}

// jsonInto scans JSON text; into a string or raw message as it is.
type jsonInto struct{ p any }

func (j jsonInto) Scan(src any) error {
	var b []byte
	switch v := src.(type) {
	case nil:
		return nil
	case string:
		b = []byte(v)
	case []byte:
		b = v
	default:
		return holds(src, "JSON")
	}
	switch p := j.p.(type) {
	case *json.RawMessage:
		if !json.Valid(b) {
			return holds(src, "JSON")
		}
		*p = append(json.RawMessage(nil), b...)
		return nil
	case *string:
		if !json.Valid(b) {
			return holds(src, "JSON")
		}
		*p = string(b)
		return nil
	}
	if string(b) == "[]" { // a job without tags, as most are
		return nil
	}
	if err := json.Unmarshal(b, j.p); err != nil {
		return fmt.Errorf("%w: %w", holds(src, "JSON"), err)
	}
	return nil
}

// doc is the JSON text of rows for a set-based statement.
func doc(rows any) (string, error) {
	b, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("encode rows: %w", err)
	}
	return string(b), nil
}

// borrowed is text as the driver has it: good until the next row.
type borrowed []byte

// Scan takes text.
func (b *borrowed) Scan(src any) error {
	switch v := src.(type) {
	case string:
		*b = append((*b)[:0], v...)
	case []byte:
		*b = append((*b)[:0], v...)
	default:
		return holds(src, "text")
	}
	return nil
}
