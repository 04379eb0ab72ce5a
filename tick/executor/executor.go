// Package executor has the executors of steps, such as sql and http. Each has a file and a registered name.
package executor

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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
	Now  time.Time // by the host's clock
	// Most is how long the attempt may take, also if it has to be stopped; 0: no bound. After it, its end could not be recorded.
	Most time.Duration
	// EndIn records the attempt as succeeded within the transaction of an atomic step, under the fence of the
	// delivery: its error means that the run was delivered again, and the transaction must be rolled back.
	EndIn func(ctx context.Context, tx *sql.Tx, r Result) error
	// EndFollows says that EndIn records only the attempt if the step succeeds; the end of the run is recorded afterwards.
	EndFollows bool
}

// ErrNothingDone says that a failed attempt had no effect: no statement was sent, or everything was undone.
var ErrNothingDone = errors.New("nothing of the step took effect")

// UnsentError is the failure of an attempt that had not begun to touch anything: it was reading a secret, or had no connection to the
// service yet. If the pass has stopped the attempt, the delivery had no effect. Otherwise it is a failure like any other: a
// service that cannot be reached is no service of ours.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }

// ErrAskedToEnd says that a program was ended by a signal that asks it to end, and that did not come from the attempt.
var ErrAskedToEnd = errors.New("ended by a signal")

// ErrFinal says that another try of a failed attempt would also fail: the step's retries do not apply.
var ErrFinal = errors.New("not tried again")

// Result is what an attempt reports. Rows, Ended and Skip are set only if the attempt succeeded.
type Result struct {
	Rows   *int64 // affected or returned, if known
	Output string // any text, also from a failed attempt. store.Output gathers it in bounded memory
	Facts  string // a JSON object with the facts that later steps may name: row, rows, code, body
	Ended  bool   // the end of the attempt is already on record (EndIn)
	Skip   bool   // there is nothing to do: the run ends here, and has succeeded
}

// Executor executes attempts. It must end when the context ends, and must leave nothing behind of an attempt
// that it stopped. If it returns an error, it still returns what the attempt reported.
type Executor interface {
	Execute(ctx context.Context, r Request) (Result, error)
}

// Graceful is an Executor whose attempts may take a while to end when their context ends.
type Graceful interface {
	Executor
	Grace(spec json.RawMessage) time.Duration // at most
}

// Registry finds executors by the name that a step gives.
type Registry map[string]Executor

// Names returns the registered names, in order.
func (r Registry) Names() string { return strings.Join(slices.Sorted(maps.Keys(r)), ", ") }
