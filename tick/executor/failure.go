package executor

import (
	"errors"

	"github.com/dbjobs/dbjobs/store/engine"
)

// ErrNotAtomic says that an atomic step has ended the transaction in which the step and its end should commit together. The
// effects up to that point stay: another try could repeat them.
var ErrNotAtomic = errors.New("the step is not atomic")

// errSpec says that no try of a step could succeed, because of its definition. Such a definition was written by plain SQL,
// since commands refuse it.
var errSpec = errors.New("the step is not well-formed")

// Error is a failure with the facts that the engine gives in addition to its message.
type Error struct {
	engine.Failure
	Err error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// describe reads from an engine's error the facts beyond its message. text is the statement that failed.
func describe(e *engine.Engine, err error, text string) error {
	if f, told := e.Describe(err, text); told {
		return &Error{f, err}
	}
	return err
}
