package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// asleep stands before a server and drops the first connections, as a proxy does before a database that wakes.
func asleep(t *testing.T, raw string, first int32) (through string, asked *atomic.Int32) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked = &atomic.Int32{}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			if asked.Add(1) <= first {
				client.Close()
				continue
			}
			go func() {
				defer client.Close()
				s, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer s.Close()
				go func() { _, _ = io.Copy(s, client) }()
				_, _ = io.Copy(client, s)
			}()
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), asked
}

// A database that wakes is asked until it answers. A database that refuses a login is asked only once.
func TestPatienceWithADatabaseThatWakes(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue // a file does not sleep
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			through, asked := asleep(t, d.URL, 4)
			if _, err := store.Open(t.Context(), through, store.Options{}); !errors.Is(err, store.ErrUnreachable) || asked.Load() > 2 { // a driver may try twice
				t.Fatalf("without patience: %v, asked %d times", err, asked.Load())
			}
			s, err := store.Open(t.Context(), through, store.Options{Patience: time.Minute})
			if err != nil || asked.Load() < 5 {
				t.Fatalf("%v, asked %d times", err, asked.Load())
			}
			s.Close()
			u, err := url.Parse(through)
			if err != nil {
				t.Fatal(err)
			}
			u.User = url.UserPassword(u.User.Username(), "wrong")
			before := asked.Load()
			if _, err := store.Open(t.Context(), u.String(), store.Options{Patience: time.Minute}); !errors.Is(err, store.ErrUnreachable) || asked.Load()-before > 2 {
				t.Errorf("a wrong password: %v, asked %d times", err, asked.Load()-before)
			}
		})
	}
}

// A server, or what stands before it, takes connections and says nothing. It is out of reach, whatever its engine, and with
// patience it is asked again.
func TestPatienceWithASilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := make(chan struct{}, 100)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			defer client.Close()
			taken <- struct{}{}
		}
	}()
	for _, form := range []string{"postgres://u:word@%s/d?connect_timeout=1", "mysql://u:word@%s/d?timeout=1s"} {
		raw := fmt.Sprintf(form, l.Addr())
		for patience, times := range map[time.Duration]int{0: 1, time.Minute: 2} {
			for len(taken) > 0 { // a driver may try twice
				<-taken
			}
			ctx, cancel := context.WithCancel(t.Context())
			opened := make(chan error, 1)
			go func() {
				_, err := store.Open(ctx, raw, store.Options{Patience: patience})
				opened <- err
			}()
			for range times {
				<-taken
			}
			if patience > 0 { // it was asked again, and that was to be seen
				cancel()
			}
			if err := <-opened; patience == 0 && (!errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "did not answer")) {
				t.Errorf("%s: %v", form, err)
			}
			cancel()
		}
	}
}
