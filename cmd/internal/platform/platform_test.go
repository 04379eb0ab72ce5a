package platform

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest/bubble"
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

// A try that hangs, as behind a balancer whose server has gone, leaves time for another one: an alarm that is not set is a pass
// that is missing.
func TestATryThatHangsIsNotTheOnlyOne(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if asked.Add(1) == 1 {
			<-r.Context().Done() // the client has given up
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // as for an alarm
	defer cancel()
	call := Call{Method: http.MethodPost, URL: u, Body: []byte("{}"), Login: func(*http.Request, []byte) error { return nil }, Most: 1 << 10}
	if text, err := call.Send(ctx); err != nil || string(text) != "{}" || asked.Load() != 2 {
		t.Errorf("%q, %v, after %d requests", text, err, asked.Load())
	}
}

// A login that hangs takes the time of one try only. One that is refused was tried again by itself.
func TestALoginThatHangsIsNotTheOnlyOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // as for an alarm
		defer cancel()
		asked, refused := 0, errors.New("no such role")
		login := func(req *http.Request, _ []byte) error {
			if asked++; asked == 1 {
				<-req.Context().Done()
				return req.Context().Err()
			}
			return refused
		}
		_, err := Call{Method: http.MethodPost, URL: &url.URL{Scheme: "https", Host: "scheduler.example.org"}, Login: login}.Send(ctx)
		if !errors.Is(err, refused) || asked != 2 {
			t.Errorf("%v, after %d logins", err, asked)
		}
	})
}
