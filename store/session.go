package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// connectError is one of a connection that was never made: whatever it says, the database was not reached.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

type connector struct {
	driver.Connector
	d        *dialect
	makeRoom func()
}

// connecting marks the errors of connections to a server that were never made. Where there are as many connections as there
// may be, makeRoom ends some that nobody uses.
func connecting(d *dialect, c driver.Connector, makeRoom func()) driver.Connector {
	if d == sqlite { // a file is locked, or not to be read, as in any statement
		return c
	}
	return connector{c, d, makeRoom}
}

// slotWait is how long a connection is waited for where the server, or the login, has as many as it may have: those of our
// own end with their runs.
const slotWait = 10 * time.Second

// Connect connects.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	over := time.NewTimer(slotWait)
	defer over.Stop()
	for try := 1; ; try++ {
		conn, err := c.Connector.Connect(ctx)
		if err == nil {
			return conn, nil
		}
		if c.d.classify(err) != crowded {
			return nil, connectError{err}
		}
		c.makeRoom()
		select {
		case <-over.C:
			return nil, connectError{fmt.Errorf("none of the connections that there may be was free for %s: %w", slotWait, err)}
		case <-ctx.Done():
			return nil, connectError{err}
		case <-time.After(Rest(min(try+3, 7))):
		}
	}
}

// Broken tells of an error that the connection was lost, or was never made.
func (s *Store) Broken(err error) bool {
	var never connectError
	c := s.d.classify(err)
	return errors.As(err, &never) || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && (c == unreachable || c == gone)
}

// class is what the store does about an error.
func (s *Store) class(err error) class {
	c := s.d.classify(err)
	var never connectError
	if c == other && errors.As(err, &never) {
		return refused
	}
	return c
}

// sent says what a statement that stands alone does.
type sent int

const (
	writing sent = iota // it may have been done where its connection broke
	reading             // it changes nothing, and may be sent again
)

// rereads is how often a statement that only reads is sent again where its connection broke under it: the server may have
// ended the session in the moment in which it was sent.
const rereads = 2

// insist sends a statement that stands alone again where nothing of it is done. The server had ended the session before it
// got the statement, as it does with sessions that were idle for longer than it allows: these are found out one by one until
// a connection is a fresh one. Or the statement lost against another, as it may in sessions that are serializable by
// default. One that only reads is sent again, too, where its connection broke under it.
func insist[T any](ctx context.Context, s *Store, q querier, kind sent, send func() (T, error)) (T, error) {
	for try := 0; ; try++ {
		v, err := send()
		if _, alone := q.(*sql.DB); err == nil || !alone || try > idle || s.d == sqlite { // which waits by itself
			return v, err
		}
		var never connectError
		switch c := s.d.classify(err); {
		case c == gone:
		case c == unreachable && kind == reading && try < rereads && !errors.As(err, &never):
		case c == transient:
			select {
			case <-ctx.Done():
				return v, err
			case <-time.After(Rest(try)):
			}
		default:
			return v, err
		}
	}
}

// errInterrupted is of a transaction whose connection broke before COMMIT was sent: nothing of it is there.
var errInterrupted = errors.New("the connection broke during a transaction")

// interrupted tells that a transaction can be begun again on another connection, where its own broke under a statement. If
// the database is out of reach altogether, connecting says so.
func (s *Store) interrupted(ctx context.Context, err error) error {
	var never connectError
	if c := s.class(err); ctx.Err() != nil || errors.Is(err, ErrNoAnswer) || errors.As(err, &never) || c != gone && c != unreachable {
		return err
	}
	return fmt.Errorf("%w: %w", errInterrupted, err)
}
