// Package executor has the ways in which a step can be executed, one file each, registered by name.
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
	// EndIn records the attempt as succeeded within the transaction of an atomic step, under the fence of the
	// delivery: its error means that the run was delivered again, and the transaction must be rolled back.
	EndIn func(ctx context.Context, tx *sql.Tx, r Result) error
	// EndFollows: where the step succeeds, EndIn records no more than the attempt, and the end of the run is recorded after it.
	EndFollows bool
}

// ErrNothingDone says of an attempt that failed that nothing of it took effect: no statement was sent, or all of it was undone.
var ErrNothingDone = errors.New("nothing of the step took effect")

// ErrFinal says of an attempt that failed that no other one would do better: the step's retries do not apply.
var ErrFinal = errors.New("not tried again")

// Result is what an attempt tells. Rows, Ended and Skip are of one that succeeded.
type Result struct {
	Rows   *int64 // affected, where it is known
	Output string // any text, also of an attempt that failed. store.Output gathers it in bounded memory
	Facts  string // a JSON object of what later steps may name: row, rows, code, body
	Ended  bool   // the end of the attempt is on record already (EndIn)
	Skip   bool   // there is nothing to do: the run ends here, and has succeeded
}

// Executor executes attempts. It must end when the context does, and leave nothing behind of what it
// stopped. It returns what the attempt told also together with an error.
type Executor interface {
	Execute(ctx context.Context, r Request) (Result, error)
}

// Registry finds executors by the name that a step gives.
type Registry map[string]Executor

// Names are those that are registered, in order.
func (r Registry) Names() string { return strings.Join(slices.Sorted(maps.Keys(r)), ", ") }
