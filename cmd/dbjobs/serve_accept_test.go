package main

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// brokenListener accepts nothing: Accept calls it.
type brokenListener struct {
	net.Listener
	accept func() error
}

func (l brokenListener) Accept() (net.Conn, error) { return nil, l.accept() }

// TestServeWaitsForItsPassesWhenItCannotAccept: the system may refuse to accept connections, as when the kernel has no memory for one
// more. The passes under way are asked to end then, and give back their runs.
func TestServeWaitsForItsPassesWhenItCannotAccept(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &handler{timeout: time.Minute, ending: t.Context(), refusals: newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false })}
	var ended atomic.Bool
	full := errors.New("no buffer space available")
	err = h.serve(brokenListener{listener, func() error {
		h.passes.Go(func() {
			<-h.ending.Done()
			ended.Store(true)
		})
		return full
	}})
	if !errors.Is(err, full) || !ended.Load() {
		t.Errorf("%v, and the pass has ended: %t; want %v and true", err, ended.Load(), full)
	}
}
