package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// connectError is the error of a connection that was never made. Whatever its text says, the database was not
// reached.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

// Error returns the error with each line once: pgx reports each of its attempts, such as one with TLS and one
// without.
func (e connectError) Error() string {
	var lines []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// errSilent says that a server took a connection, or swallowed it, and said nothing for as long as connecting may take.
var errSilent = errors.New("the server did not answer")

// ahead marks the context of a connection that is made before it is needed: such a connection neither waits for room
// nor makes room.
type ahead struct{}

type connector struct {
	driver.Connector
	e        *Engine
	makeRoom func()
	patience time.Duration // with a server that is starting
}

// connecting marks the errors of connections to a server that were never made. If the server refuses more
// connections, makeRoom closes idle ones. While patience lasts, it asks a server again that does not answer, or that
// says that it is starting.
func connecting(e *Engine, c driver.Connector, makeRoom func(), patience time.Duration) driver.Connector {
	if e.OneWriter { // a file: an error at opening is like an error of any statement
		return c
	}
	return connector{c, e, makeRoom, patience}
}

// slotWait is how long to wait for a connection if the server or the login has all connections that are allowed.
// Connections of this program become free when their runs end.
const slotWait = 10 * time.Second

// noFiles reports whether this process, or its machine, has all the open files that it may have. Like a session of the server,
// one becomes free when a run ends.
func noFiles(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// wakePause is the pause before a sleeping server is asked again.
const wakePause = 500 * time.Millisecond

// waking reports whether an error may come from a database that is waking: nothing accepted the connection, something
// such as a proxy in front of the database dropped it before it said anything, or the server says that it is
// starting. A refusal does not count: it would be the same again, and would use up the attempts of a login.
func (e *Engine) waking(err error) bool {
	if e.starting != nil && e.starting(err) {
		return true
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		return unknown.IsTemporary || unknown.IsTimeout
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout() || isBroken(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errSilent)
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	over := time.NewTimer(c.patience)
	defer over.Stop()
	for {
		conn, err := c.connect(ctx)
		if err == nil || c.patience == 0 || ctx.Value(ahead{}) != nil || !c.e.waking(err) {
			return conn, err
		}
		select {
		case <-over.C:
			return nil, err
		case <-ctx.Done():
			return nil, err
		case <-time.After(wakePause):
		}
	}
}

// connect connects to a server that is awake.
func (c connector) connect(ctx context.Context) (driver.Conn, error) {
	over := time.NewTimer(slotWait)
	defer over.Stop()
	for try := 1; ; try++ {
		conn, err := c.Connector.Connect(ctx)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // the deadline is the driver's own, not the caller's
			err = fmt.Errorf("%w in time: %v", errSilent, err) //nolint:errorlint // the caller must not see that deadline
		}
		if c.e.classify(err) != crowded && !noFiles(err) || ctx.Value(ahead{}) != nil {
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
