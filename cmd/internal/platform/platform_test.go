package platform

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// A process that was frozen between two invocations may find that its way to the platform has forgotten a connection: what
// is sent there is lost, and nobody says so. A request must not wait for an answer on such a connection.
func TestNoConnectionOutlivesItsCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
				_, _ = io.Copy(io.Discard, r) // the rest is lost
			}()
		}
	}()
	u := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	call := Call{Method: http.MethodPost, URL: u, Body: []byte("{}"), Login: func(*http.Request, []byte) error { return nil }, Most: 1 << 10}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if text, err := call.Send(ctx); err != nil || string(text) != "{}" {
			t.Fatalf("%q, %v", text, err)
		}
	}
}
