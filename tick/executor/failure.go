package executor

import (
	"errors"

	"github.com/dbjobs/dbjobs/store/engine"
)

// ErrNotAtomic says that an atomic step ended the transaction in which it was to commit together with its end. What it
// did before stays: to try it again could do that twice.
var ErrNotAtomic = errors.New("the step is not atomic")

// ErrSpec says that a step's definition is such that no try could succeed: it has come by plain SQL, since commands refuse it.
var ErrSpec = errors.New("the step is not well-formed")

// Error is a failure with the facts that the engine gives beside its message.
type Error struct {
	engine.Failure
	Err error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// describe takes from an engine's error what it tells beside the message. text is the statement that failed.
func describe(e *engine.Engine, err error, text string) error {
	if f, told := e.Describe(err, text); told {
		return &Error{f, err}
	}
	return err
}
