package engine

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
)

// said keeps what a connection would send.
type said struct {
	net.Conn
	bytes bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) { return s.bytes.Write(p) }

// pings is a driver whose ping sends these.
type pings struct {
	to   net.Conn
	sent []string
}

func (p pings) Ping(context.Context) error {
	for _, packet := range p.sent {
		if _, err := p.to.Write([]byte(packet)); err != nil {
			return err
		}
	}
	return nil
}

// A session is reset by one command, in place of a ping and of nothing else: what a driver of another
// version sends instead reaches no server, and fails.
func TestResetIsSentInPlaceOfAPing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ping []string
		sent string
		ok   bool
	}{
		{"a ping", []string{mysqlPing}, mysqlReset, true},
		{"a ping, and more", []string{mysqlPing, "more"}, mysqlReset + "more", true},
		{"nothing", nil, "", false},
		{"a part of it", []string{mysqlPing[:4], mysqlPing[4:]}, "", false},
		{"a query", []string{"\x09\x00\x00\x00\x03SELECT 1"}, "", false},
		{"compressed", []string{"\x05\x00\x00\x00\x00\x00\x00" + mysqlPing}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got said
			w := &mysqlWire{Conn: &got}
			if err := w.reset(t.Context(), pings{w, c.ping}); (err == nil) != c.ok || err != nil && !errors.Is(err, errUnwired) {
				t.Errorf("the reset: %v", err)
			}
			if got.bytes.String() != c.sent {
				t.Errorf("%q is sent, not %q", got.bytes.String(), c.sent)
			}
		})
	}
}
