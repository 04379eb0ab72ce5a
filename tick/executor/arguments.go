package executor

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Facts are what a run is told about itself, by the names that arguments may use as ${name}. Instants that are not
// known are nil.
func Facts(t *store.Task) map[string]any {
	at := func(v time.Time) any {
		if v.IsZero() {
			return nil
		}
		return v
	}
	r := &t.Run
	facts := map[string]any{
		"scheduled_for": at(r.ScheduledFor), "interval_start": at(r.IntervalStart), "interval_end": at(r.IntervalEnd),
		"run_id": r.ID, "attempt": int64(r.Attempt), "fence": int64(r.Fence), "job": r.Job, "owner": r.Owner,
	}
	var given map[string]any
	dec := json.NewDecoder(strings.NewReader(r.Args))
	dec.UseNumber()
	if dec.Decode(&given) == nil {
		for k, v := range given {
			facts["args."+k] = v
		}
	}
	return facts
}

// Expand replaces ${name} in an argument. One that is nothing but a reference becomes the fact itself, an instant or
// a number; within a longer text it becomes text.
func Expand(arg any, facts map[string]any) (any, error) {
	s, ok := arg.(string)
	if !ok {
		return arg, nil
	}
	var out strings.Builder
	for rest := s; ; {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("argument %q: ${ without }", s)
		}
		v, known := facts[name]
		if !known {
			return nil, fmt.Errorf("argument %q: there is no ${%s}; there are %s", s, name, strings.Join(slices.Sorted(maps.Keys(facts)), ", "))
		}
		if s == "${"+name+"}" {
			return v, nil
		}
		within, err := text(v)
		if err != nil {
			return nil, err
		}
		out.WriteString(within)
		rest = tail
	}
}

// text is a value as text: an instant in the form of RFC 3339, in UTC with microseconds; a list or object as JSON; what is
// not known is empty.
func text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000000Z"), nil
	case map[string]any, []any:
		b, err := json.Marshal(v)
		return string(b), err
	}
	return fmt.Sprint(v), nil
}

// bind puts the arguments of the statements into the forms in which the driver takes them.
func (e *SQL) bind(list []Statement, facts map[string]any) (err error) {
	for i := range list {
		if list[i].Args, err = e.arguments(list[i].Args, facts); err != nil {
			return err
		}
	}
	return nil
}

// arguments are what a statement is given. On PostgreSQL all of it is text, of which the server itself finds out the types:
// see store's connections. Elsewhere a parameter has no type, and each value is of its own; a number that would lose digits
// stays text there.
func (e *SQL) arguments(list []any, facts map[string]any) ([]any, error) {
	out := make([]any, len(list))
	for i, a := range list {
		v, err := Expand(a, facts)
		if err != nil {
			return nil, err
		}
		if at, ok := v.(time.Time); ok {
			v = e.engine.Instant(at)
		}
		number, isNumber := v.(json.Number)
		_, isBool := v.(bool)
		_, isInt := v.(int64)
		switch {
		case v == nil:
		case e.engine.TextArguments() || !isNumber && !isBool && !isInt:
			if v, err = text(v); err != nil {
				return nil, err
			}
		case isNumber:
			v = exact(number)
		}
		out[i] = v
	}
	return out, nil
}

// exact is a number in a form of Go's that has all of its digits; text where there is none.
func exact(n json.Number) any {
	if v, err := n.Int64(); err == nil {
		return v
	}
	v, err := n.Float64()
	if err != nil {
		return n.String()
	}
	if v == 0 { // also what is nearer to it than any other number: as a fraction that could be of any size
		return v
	}
	written, _ := new(big.Rat).SetString(n.String())
	kept, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
	if written != nil && kept != nil && written.Cmp(kept) == 0 {
		return v
	}
	return n.String()
}
