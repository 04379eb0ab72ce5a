package engine

import (
	"context"
	"database/sql/driver"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

// short is a connector of a process that may open no further file until something is closed.
type short struct {
	driver.Connector
	free bool
}

func (s *short) Connect(context.Context) (driver.Conn, error) {
	if s.free {
		return nil, nil
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
}

// A connection for which the process has no open file left is waited for, as one that the server does not give: a run that
// cannot have one would use up its deliveries.
func TestConnectingWaitsForAnOpenFile(t *testing.T) {
	for _, e := range All() {
		if e.OneWriter {
			continue
		}
		bubble.Test(t, func(t *testing.T) {
			s, asked := &short{}, 0
			_, err := connecting(e, s, func() { asked++; s.free = asked == 3 }, 0).Connect(t.Context())
			if err != nil || asked != 3 {
				t.Errorf("asked for room %d times: %v", asked, err)
			}
			s.free = false
			if _, err := connecting(e, s, func() {}, 0).Connect(t.Context()); err == nil {
				t.Error("no file became free, and there is a connection")
			}
		})
	}
}

// counting is a connector that counts its connections, which do nothing.
type counting struct {
	driver.Connector
	made int
}

type nothing struct{ driver.Conn }

func (nothing) Close() error { return nil }

func (c *counting) Connect(context.Context) (driver.Conn, error) {
	c.made++
	return nothing{}, nil
}

// The name of a server may lead to another one by now, while the first one goes on. So a connection is not used for ever.
func TestConnectionsFollowTheName(t *testing.T) {
	const hours = 12
	for _, url := range []string{"postgres://somebody@nowhere.example/app", "mysql://somebody@nowhere.example/app"} {
		bubble.Test(t, func(t *testing.T) {
			c := &counting{}
			db, err := Open(t.Context(), url, Options{Wrap: func(driver.Connector) driver.Connector { return c }})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for range hours * 60 {
				time.Sleep(time.Minute)
				conn, err := db.pool.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if c.made < hours*10 || c.made > hours*15 {
				t.Errorf("%s: %d connections in %d hours", url, c.made, hours)
			}
		})
	}
}
