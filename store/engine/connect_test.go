package engine

import (
	"context"
	"database/sql/driver"
	"net"
	"os"
	"syscall"
	"testing"

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
