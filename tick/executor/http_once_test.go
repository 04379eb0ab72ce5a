package executor

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

// TestHTTPIsSentOnce: the server takes a request on a connection that was used before, and drops it without an answer. The attempt
// fails, and the request is not sent again.
func TestHTTPIsSentOnce(t *testing.T) {
	for _, request := range []string{`"method": "GET"`, `"method": "DELETE"`, `"method": "POST"`, `"method": "POST", "body": "x"`} {
		s, got := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/drop" {
				return
			}
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		})
		x := NewHTTP(loopback(nil))
		if _, err := x.Execute(t.Context(), attempt(`{"url": "`+s.URL+`", `+request+`}`)); err != nil {
			t.Error(err)
		}
		if _, err := x.Execute(t.Context(), attempt(`{"url": "`+s.URL+`/drop", `+request+`}`)); err == nil {
			t.Errorf("%s: it has not failed", request)
		}
		if n := len(got()); n != 2 {
			t.Errorf("%s: the server got %d requests, want 2", request, n)
		}
		x.Close()
	}
}

// TestHTTPKeepsAConnectionShortly: requests one after the other share a connection. One that comes seconds later, when the server may be
// about to close that connection, has another.
func TestHTTPKeepsAConnectionShortly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := pipes{make(chan net.Conn), make(chan struct{})}
		s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		x, made := NewHTTP(loopback(nil)), 0
		defer x.Close()
		x.transport("ann").DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			made++
			l.conns <- theirs
			return ours, nil
		}
		for i, want := range []int{1, 1, 1, 2} {
			if i == 3 {
				time.Sleep(2 * time.Second)
			}
			if _, err := x.Execute(t.Context(), attempt(`{"url": "http://127.0.0.1/"}`)); err != nil || made != want {
				t.Errorf("request %d: %d connections, want %d; %v", i+1, made, want, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }
