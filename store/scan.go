package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// present scans a column as true if it is not NULL.
type present bool

// Scan never fails.
func (p *present) Scan(src any) error {
	*p = src != nil
	return nil
}

// written scans a text byte for byte, even if it is not UTF-8, as SQLite stores it.
type written struct{ p *string }

func (w written) Scan(src any) error {
	if b, ok := src.([]byte); ok {
		src = string(b)
	}
	text, ok := src.(string)
	if !ok {
		return engine.Holds(src, "text")
	}
	*w.p = text
	return nil
}

// longestWait is the longest duration of a policy. mostMillis is the most milliseconds that a Duration can hold.
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
	if err := engine.Assign(&v, src); err != nil {
		return err
	}
	if v < 0 || v > mostMillis {
		return engine.Holds(src, fmt.Sprintf("milliseconds from 0 to %d, which is 36500d", longestWait.Milliseconds()))
	}
	*m.p = Duration(time.Duration(v) * time.Millisecond)
	return nil
}

// mostCounted bounds counters in columns of 32 bits, mostMade those in columns of 64 bits. Both leave room for one
// more.
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
	if err := engine.Assign(&v, src); err != nil {
		return err
	}
	most := int64(mostCounted)
	if _, large := any(c.p).(*int64); large {
		most = mostMade
	}
	if v > most || v < -most {
		return engine.Holds(src, fmt.Sprintf("at most %d", most))
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
		return engine.Holds(src, "JSON")
	}
	switch p := j.p.(type) {
	case *json.RawMessage:
		if !json.Valid(b) {
			return engine.Holds(src, "JSON")
		}
		*p = append(json.RawMessage(nil), b...)
		return nil
	case *string:
		if !json.Valid(b) {
			return engine.Holds(src, "JSON")
		}
		*p = string(b)
		return nil
	}
	if string(b) == "[]" { // most jobs have no tags
		return nil
	}
	if err := json.Unmarshal(b, j.p); err != nil {
		return fmt.Errorf("%w: %w", engine.Holds(src, "JSON"), err)
	}
	return nil
}

// doc returns the JSON text of rows for a set-based statement.
func doc(rows any) (string, error) {
	b, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("encode rows: %w", err)
	}
	return string(b), nil
}

// borrowed is a text in the driver's memory. It is valid until the next row.
type borrowed []byte

// Scan takes text.
func (b *borrowed) Scan(src any) error {
	switch v := src.(type) {
	case string:
		*b = append((*b)[:0], v...)
	case []byte:
		*b = append((*b)[:0], v...)
	default:
		return engine.Holds(src, "text")
	}
	return nil
}
