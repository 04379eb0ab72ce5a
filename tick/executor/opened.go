package executor

import (
	"context"
	"errors"
)

// opened is another way to the store's database, which the first attempt that needs it opens. Attempts that need it meanwhile
// wait, each as long as its own time lasts. Attempts that go another way wait for nothing.
type opened struct {
	turn chan struct{} // has one place, for the attempt that opens the database, or for close
	is   *database     // nil: not opened yet
}

func newOpened() *opened { return &opened{turn: make(chan struct{}, 1)} }

// get returns the database. After an error, the next attempt tries to open it again.
func (o *opened) get(ctx context.Context, open func() (*database, error)) (*database, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if o.is == nil {
		d, err := open()
		if err != nil {
			return nil, err
		}
		o.is = d
	}
	return o.is, nil
}

// close closes the database, and nothing opens it again. An attempt that a pass has left behind may be opening it now: then it is left
// to the end of the process.
func (o *opened) close() error {
	select {
	case o.turn <- struct{}{}:
	default:
		return nil
	}
	if o.is == nil {
		return nil
	}
	return errors.Join(o.is.sessions.Close(), o.is.way.Close())
}
