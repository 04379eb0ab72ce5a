package engine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

const (
	// stopPatience is how long a statement may take to stop on the server before its connection is dropped.
	stopPatience = 10 * time.Second
	// closePatience is how long the server, or a pooler, may take to close the connection of a request to stop after
	// the statement has ended.
	closePatience = 5 * time.Second
	// stopRest is how long a stopped session is not used. A pooler may report a request as done
	// when the server is still about to stop a statement.
	stopRest = 100 * time.Millisecond
)

// postgresStop stops the statement of a connection whose context has ended. It does so by a request
// on a connection of its own.
//
// The end of an attempt waits until the server has closed that connection. Otherwise the request might be sent while
// the program exits, and never arrive. The driver's own handler closes the connection as soon as the statement has
// ended. PgBouncer 1.18 still waits for the server's part then, and ends with a fatal error for all its clients.
type postgresStop struct {
	conn  *pgconn.PgConn
	ended context.CancelFunc // of the statement
	done  chan struct{}      // the request's connection is closed
}

func stopsPostgres(conn *pgconn.PgConn) ctxwatch.Handler { return &postgresStop{conn: conn} }

// HandleCancel sends the request.
func (s *postgresStop) HandleCancel(context.Context) {
	asked, give := context.WithTimeout(context.Background(), stopPatience+closePatience)
	until, _ := asked.Deadline()
	_ = s.conn.Conn().SetDeadline(until.Add(-closePatience)) // if this fails, the wait ends with the session
	ended, end := context.WithCancel(context.Background())
	s.ended, s.done = end, make(chan struct{})
	context.AfterFunc(ended, func() { time.AfterFunc(closePatience, give) })
	go func() {
		defer close(s.done)
		defer give()
		_ = s.conn.CancelRequest(asked) // if it could not stop the statement, the deadline ends the statement
		time.Sleep(stopRest)
	}()
}

// HandleUnwatchAfterCancel is called when the statement has ended.
func (s *postgresStop) HandleUnwatchAfterCancel() {
	s.ended()
	<-s.done
	_ = s.conn.Conn().SetDeadline(time.Time{}) // its error is ignored, as above
}
