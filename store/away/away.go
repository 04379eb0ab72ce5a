// Package away asks for files that may be on a file server that is away.
package away

import (
	"context"
	"fmt"
	"sync"
)

// LateError says that nothing was known of a file in time.
type LateError struct {
	What string
	Err  error // why nobody waits any more
}

func (e *LateError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }
func (e *LateError) Unwrap() error { return e.Err }

// asked has what is being asked now. The channel of each is closed when its answer has come.
var (
	mu    sync.Mutex
	asked = map[string]chan struct{}{}
)

// Within returns the answer of ask. It waits no longer than ctx lasts, and then returns a LateError. ask may go on after that: nothing
// can stop a call for a file on a file server that is away, and it keeps a thread of the system. So the process asks for the same
// thing once at a time.
func Within[T any](ctx context.Context, what string, ask func() (T, error)) (v T, err error) {
	ended, err := turn(ctx, what)
	if err != nil {
		return v, err
	}
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		v, err := ask()
		ended()
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.v, a.err
	case <-ctx.Done():
		return v, &LateError{what, context.Cause(ctx)}
	}
}

// turn waits until nobody else asks for it.
func turn(ctx context.Context, what string) (ended func(), err error) {
	for {
		mu.Lock()
		others, busy := asked[what]
		if !busy {
			own := make(chan struct{})
			asked[what] = own
			mu.Unlock()
			return func() {
				mu.Lock()
				defer mu.Unlock()
				delete(asked, what)
				close(own)
			}, nil
		}
		mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
			return nil, &LateError{what, context.Cause(ctx)}
		}
	}
}
