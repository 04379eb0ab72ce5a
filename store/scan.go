package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// into scans a column into *T and takes NULL for the zero value.
type into[T any] struct{ p *T }

func (n into[T]) Scan(src any) error {
	var v sql.Null[T]
	if err := v.Scan(src); err != nil {
		return err
	}
	*n.p = v.V
	return nil
}

func nullable[T any](p *T) into[T] { return into[T]{p} }

// at scans an instant, whether the driver gives a time or text, and takes NULL for the zero time. Times are UTC.
type at struct{ p *time.Time }

func (a at) Scan(src any) error {
	var text string
	switch v := src.(type) {
	case nil:
		*a.p = time.Time{}
		return nil
	case time.Time:
		*a.p = v.UTC()
		return nil
	case string:
		text = v
	case []byte:
		text = string(v)
	default:
		return fmt.Errorf("instant: unexpected %T", src)
	}
	text = strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "Z")
	t, err := time.Parse("2006-01-02 15:04:05.999999", text)
	if err != nil {
		return fmt.Errorf("instant %q: want UTC text such as 2026-01-05T08:00:00.000000Z", text)
	}
	*a.p = t
	return nil
}

// ms scans whole milliseconds.
type ms struct{ p *Duration }

func (m ms) Scan(src any) error {
	var v int64
	if err := nullable(&v).Scan(src); err != nil {
		return err
	}
	*m.p = Duration(time.Duration(v) * time.Millisecond)
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
		return fmt.Errorf("JSON: unexpected %T", src)
	}
	switch p := j.p.(type) {
	case *json.RawMessage:
		*p = append(json.RawMessage(nil), b...)
		return nil
	case *string:
		*p = string(b)
		return nil
	}
	if string(b) == "[]" { // a job without tags, as most are
		return nil
	}
	return json.Unmarshal(b, j.p)
}

// doc is the JSON text of rows for a set-based statement.
func doc(rows any) (string, error) {
	b, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("encode rows: %w", err)
	}
	return string(b), nil
}
