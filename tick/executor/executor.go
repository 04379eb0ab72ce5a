// Package executor has the ways in which a step can be executed, one file each, registered by name.
package executor

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Request is one attempt of a step.
type Request struct {
	Task *store.Task
	Spec json.RawMessage
	// EndIn records the attempt as succeeded within the transaction of an atomic step, under the fence of the
	// hand-out: its error means that the run was handed out again, and the transaction must be rolled back.
	EndIn func(ctx context.Context, tx *sql.Tx, rows int64) error
}

// Result is what an attempt that succeeded tells.
type Result struct {
	Rows  *int64 // affected, where it is known
	Ended bool   // the end is on record already (EndIn)
}

// Executor executes attempts. It must end when the context does, and leave nothing behind of what it stopped.
type Executor interface {
	Execute(ctx context.Context, r Request) (Result, error)
}

// Registry finds executors by the name that a step gives.
type Registry map[string]Executor

// Names are those that are registered, in order.
func (r Registry) Names() string { return strings.Join(slices.Sorted(maps.Keys(r)), ", ") }

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
	if json.Unmarshal([]byte(r.Args), &given) == nil {
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
		switch v := v.(type) {
		case nil:
		case time.Time:
			out.WriteString(v.UTC().Format(time.RFC3339Nano))
		default:
			fmt.Fprint(&out, v)
		}
		rest = tail
	}
}
