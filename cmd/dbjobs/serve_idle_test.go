package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

// pipes is a listener whose connections are in memory, so that their time is that of the test.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestServeOutwaitsBalancers: a balancer keeps its connection to the process for the next request, and is the one that closes it. If
// the process closed it first, the balancer could just then send a request, which would be lost.
func TestServeOutwaitsBalancers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		h := &handler{timeout: time.Minute, ending: ctx, refusals: newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false })}
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan error)
		go func() { served <- h.serve(p) }()
		defer func() {
			end()
			if err := <-served; err != nil {
				t.Error(err)
			}
		}()
		balancer, conn := net.Pipe()
		defer balancer.Close()
		p.conns <- conn
		answers := bufio.NewReader(balancer)
		for _, waits := range []time.Duration{0, time.Minute, 10 * time.Minute, time.Hour, 4000 * time.Second} { // of ALB, Google, Envoy, and the most of ALB
			time.Sleep(waits) // by the clock of the test
			_, err := io.WriteString(balancer, "GET /healthz HTTP/1.1\r\nHost: jobs\r\n\r\n")
			if err != nil {
				t.Fatalf("after %s: %v", waits, err)
			}
			a, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("after %s: %v", waits, err)
			}
			if _, err = io.ReadAll(a.Body); err != nil || a.StatusCode != http.StatusOK {
				t.Errorf("after %s: %d, %v", waits, a.StatusCode, err)
			}
			a.Body.Close()
		}
		time.Sleep(idleCaller + time.Second)
		if _, err := answers.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is kept without an end: %v", err)
		}
	})
}
