package executor

import "context"

// opened is a database other than the one that is open from the start: a target, or another way to the store's. The first attempt that
// needs it opens it. Attempts that need it meanwhile wait, each as long as its own time lasts. Attempts that need another one wait
// for nothing.
type opened struct {
	turn chan struct{} // has one place, for the opening of the database, or for close
	is   *database     // nil: not opened yet
}

func newOpened() *opened { return &opened{turn: make(chan struct{}, 1)} }

// get returns the database. After an error, the next attempt tries to open it again. The opening may go on after the end of ctx:
// it may wait for a file on a file server, and nothing can stop that.
func (o *opened) get(ctx context.Context, open func() (*database, error)) (*database, error) {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if o.is != nil {
		defer func() { <-o.turn }()
		return o.is, nil
	}
	type answer struct {
		d   *database
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		d, err := open()
		o.is = d
		<-o.turn
		answers <- answer{d, err}
	}()
	select {
	case a := <-answers:
		return a.d, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
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
	return o.is.close()
}
