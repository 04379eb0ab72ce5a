package engine

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Reader reads rows column by column. If somebody has put a value there by hand that cannot be read,
// that is a fault of this row, with the name of the column. The rows after it are still read.
type Reader struct {
	cells []cell
	into  []any
}

// Reads returns a reader into these destinations. They are the same for all rows: a caller that needs
// them empty resets them between rows.
func Reads(dest ...any) *Reader {
	r := &Reader{make([]cell, len(dest)), make([]any, len(dest))}
	for i := range dest {
		r.cells[i].dest = dest[i]
		r.into[i] = &r.cells[i]
	}
	return r
}

// row reads one row. The fault says which columns could not be read, what they hold and what is wanted.
// It is empty if all could be read. The destination of a column that could not be read keeps its value.
func (r *Reader) row(rows *sql.Rows) (fault string, err error) {
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
		fault = JoinFaults(fault, fmt.Sprintf("column %s: %v", names[i], r.cells[i].err))
	}
	return fault, nil
}

// JoinFaults joins two faults. Either may be empty.
func JoinFaults(fault, other string) string {
	if fault != "" && other != "" && !strings.Contains(fault, other) {
		return fault + "; " + other
	}
	if fault == "" {
		return other
	}
	return fault
}

// Each calls fn after each row, with the fault of that row.
func (r *Reader) Each(fn func(fault string)) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		fault, err := r.row(rows)
		if err == nil {
			fn(fault)
		}
		return err
	}
}

// Scan scans each row into the destinations, as database/sql does, and then calls fn. A value that cannot be read is an error.
func Scan(fn func(), dest ...any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		err := rows.Scan(dest...)
		if err == nil {
			fn()
		}
		return err
	}
}

// Column is Scan for rows that have only one column. It adds the values to a list.
func Column[T any](list *[]T) func(*sql.Rows) error {
	var v T
	return Scan(func() { *list = append(*list, v) }, &v)
}

// cell is a column of a row. It takes any value from the driver, and keeps the error if the value is
// wrong.
type cell struct {
	dest any
	err  error
}

// Scan never fails: see err.
func (c *cell) Scan(src any) error {
	c.err = Assign(c.dest, src)
	return nil
}

// Assign sets a destination as database/sql does, with errors that say what the column holds.
func Assign(dest, src any) error {
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
			return Holds(src, "true or false")
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
			return Holds(src, "text")
		}
		*d = n.String
	}
	if !utf8.ValidString(*d) {
		return Holds(src, "UTF-8 text")
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
		return Holds(src, "a whole number")
	}
	*d = T(n.Int64)
	return nil
}

// Holds says what a column holds instead of what it should.
func Holds(src any, want string) error {
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
	return Assign(n.p, src)
}

// Nullable scans a column into *T and takes NULL for the zero value.
func Nullable[T any](p *T) sql.Scanner { return into[T]{p} }

// At scans an instant from a time or a text. NULL is the zero time. Times are in UTC. A value outside the
// ends of time is an error: infinity, a year of five digits, MySQL's 0000-00-00.
func At(p *time.Time) sql.Scanner { return at{p} }

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
	if !ok || !Clamp(t).Equal(t) {
		return Holds(src, "an instant in UTC such as 2026-01-05T08:00:00.000000Z, of the years 1000 to 9999")
	}
	*a.p = t
	return nil
}

// Moment scans an instant, and notes if there is a value that cannot be read.
type Moment struct {
	time.Time
	Unreadable bool
	Raw        any // the value from the driver
}

// Scan never fails.
func (m *Moment) Scan(src any) error {
	*m = Moment{Raw: src}
	if b, ok := src.([]byte); ok {
		m.Raw = string(b)
	}
	m.Unreadable = at{&m.Time}.Scan(src) != nil
	return nil
}

// Set reports whether the column is not NULL.
func (m *Moment) Set() bool { return m.Unreadable || !m.IsZero() }
