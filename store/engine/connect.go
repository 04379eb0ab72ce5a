package engine

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

// connectError is the error of a connection that was never made. Whatever it says, the database was not
// reached.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

// ahead is in the context of a connection that is made before it is needed: that waits for no room, and makes none.
type ahead struct{}

type connector struct {
	driver.Connector
	e        *Engine
	makeRoom func()
}

// connecting marks the errors of connections to a server that were never made. If the server refuses
// more connections, makeRoom closes idle ones.
func connecting(e *Engine, c driver.Connector, makeRoom func()) driver.Connector {
	if e.OneWriter { // a file: an error at opening is like an error of any statement
		return c
	}
	return connector{c, e, makeRoom}
}

// slotWait is how long to wait for a connection if the server or the login has all that are allowed.
// Connections of our own become free when their runs end.
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
		if c.e.classify(err) != crowded || ctx.Value(ahead{}) != nil {
			return nil, connectError{err}
		}
		c.makeRoom()
		select {
		case <-over.C:
			return nil, connectError{fmt.Errorf("no connection became free within %s: %w", slotWait, err)}
		case <-ctx.Done():
			return nil, connectError{err}
		case <-time.After(RetryDelay(min(try+3, 7))):
		}
	}
}
