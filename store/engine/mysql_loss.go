package engine

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// mysqlLoss is why a connection was lost. The driver's own error says only that the connection is invalid. The reason, such as
// the alert of a server that does not accept our certificate, goes to the driver's log.
type mysqlLoss struct{ reason atomic.Pointer[error] }

// lossOf is the key in the context in which the driver connects. Its value is the mysqlLoss of that connection.
type lossOf struct{}

// Print implements mysql.Logger. Nothing is printed: errors are returned, not logged.
func (l *mysqlLoss) Print(v ...any) {
	for _, one := range v {
		if err, ok := one.(error); ok {
			l.reason.Store(&err)
		}
	}
}

// told returns the error with the reason why the connection was lost.
func (l *mysqlLoss) told(err error) error {
	if !errors.Is(err, mysql.ErrInvalidConn) {
		return err
	}
	reason := l.reason.Load()
	switch {
	case reason == nil:
		return lostError{err, "the connection to the server was lost"}
	case errors.Is(*reason, io.EOF):
		return lostError{err, endedByServer}
	}
	return lostError{err, fmt.Sprintf("the connection to the server was lost: %v", *reason)}
}

// endedByServer is all that is known where nothing more comes.
const endedByServer = "the connection to the server was lost: the server, or a proxy, ended it (EOF)"

type lostError struct {
	error
	text string
}

func (e lostError) Error() string { return e.text }
func (e lostError) Unwrap() error { return e.error }
