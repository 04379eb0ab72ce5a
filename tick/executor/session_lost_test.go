package executor_test

import (
	"bytes"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A connection may break after the server has executed a statement, and before its answer has come. Then the statement is
// not sent again in the same attempt, also if the session was used before, and nobody says that nothing was done.
func TestStatementWhoseAnswerIsLostIsNotSentAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("SQLite has no server")
		}
		d.Exec(t, "CREATE TABLE effects (what varchar(10))")
		u, err := url.Parse(d.URL)
		if err != nil {
			t.Fatal(err)
		}
		var loses atomic.Bool
		u.Host = losesAnswer(t, u.Host, "'lost'", &loses)
		s, err := store.Open(t.Context(), u.String(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		steps := newStepper(t, d, s)
		const insert = "INSERT INTO effects VALUES ('lost')"
		for _, kept := range []bool{false, true} {
			for name, texts := range map[string][]string{"first": {insert, "SELECT 1"}, "last": {insert}} {
				if kept {
					for range 2 {
						if err := steps.step("SELECT 1"); err != nil {
							t.Fatal(err)
						}
					}
				}
				loses.Store(true)
				before := d.Int(t, "SELECT count(*) FROM effects")
				if err := steps.step(texts...); err == nil || errors.Is(err, executor.ErrNothingDone) {
					t.Errorf("kept %t, %s: %v, want an error that leaves open what was done", kept, name, err)
				}
				if err != nil && (strings.Contains(err.Error(), "invalid") || strings.Contains(err.Error(), "conn closed")) {
					t.Errorf("kept %t, %s: %v, want that the connection was lost", kept, name, err)
				}
				if n := d.Int(t, "SELECT count(*) FROM effects") - before; n != 1 {
					t.Errorf("kept %t, %s: the statement took effect %d times", kept, name, n)
				}
			}
		}
	})
}

// losesAnswer forwards everything to a server and back, until a client sends this text. Then the next answer of the server
// is lost, and the connection ends, once for each time that loses is set. It returns its address.
func losesAnswer(t *testing.T, server, text string, loses *atomic.Bool) string {
	return between(t, server, func(client, to net.Conn) { loseAnswer(client, to, []byte(text), loses) })
}

// loseAnswer forwards what two connections send to each other.
func loseAnswer(client, server net.Conn, text []byte, loses *atomic.Bool) {
	var asked atomic.Bool
	go func() {
		defer server.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			if bytes.Contains(buffer[:n], text) && loses.CompareAndSwap(true, false) {
				asked.Store(true)
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	defer client.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil || asked.Load() {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
