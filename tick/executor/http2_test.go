package executor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// The frames of HTTP/2 (RFC 9113) that this test needs.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

	endStream, endHeaders, settingsAck = 1, 4, 1

	noError, protocolError, refusedStream = 0, 1, 7
)

// frames is a server of HTTP/2 that answers each request by a frame of its own.
type frames struct {
	net.Listener
	roots    *x509.CertPool
	requests atomic.Int32 // that have arrived whole
	answer   func(n int32, c *frameConn, stream uint32)
}

type frameConn struct{ net.Conn }

func (c *frameConn) write(kind, flags byte, stream uint32, payload ...byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), stream)
	_, _ = c.Write(append(head, payload...)) // a client that has gone misses nothing
}

// ok answers a request with the status 200, the eighth entry of HPACK's static table.
func (c *frameConn) ok(stream uint32) { c.write(frameHeaders, endHeaders|endStream, stream, 0x88) }

func (c *frameConn) reset(stream, code uint32) {
	c.write(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code)...)
}

// goAway says that the server has begun with no request after the last.
func (c *frameConn) goAway(last uint32) {
	c.write(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), noError)...)
}

func newFrames(t *testing.T, answer func(n int32, c *frameConn, stream uint32)) *frames {
	t.Helper()
	other := httptest.NewTLSServer(nil) // it lends its certificate
	other.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: other.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &frames{Listener: l, roots: x509.NewCertPool(), answer: answer}
	s.roots.AddCert(other.Certificate())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(&frameConn{conn})
		}
	}()
	return s
}

func (s *frames) serve(c *frameConn) {
	defer c.Close()
	if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	c.write(frameSettings, 0, 0)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, c, length); err != nil {
			return
		}
		switch kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:]); {
		case kind == frameSettings && flags&settingsAck == 0:
			c.write(frameSettings, settingsAck, 0)
		case (kind == frameHeaders || kind == frameData) && flags&endStream != 0:
			s.answer(s.requests.Add(1), c, stream)
		}
	}
}

// TestHTTP2RefusedUnread: a server of HTTP/2 that has not begun with a request says so, and gets it again. A request that it may
// have begun with is sent once.
//
// A request without a body has a connection of its own. net/http does not tell why a server has reset it there, so it is sent once.
func TestHTTP2RefusedUnread(t *testing.T) {
	for name, c := range map[string]struct {
		answer   func(n int32, c *frameConn, stream uint32) // to the second request and those after it
		requests int32                                      // that the server gets
		fails    bool
	}{
		"goes away": {func(n int32, c *frameConn, stream uint32) {
			if n > 2 {
				c.ok(stream)
				return
			}
			c.goAway(max(stream, 2) - 2)
		}, 3, false},
		"refuses the stream": {func(n int32, c *frameConn, stream uint32) {
			if n > 2 {
				c.ok(stream)
				return
			}
			c.reset(stream, refusedStream)
		}, 3, false},
		"refuses each":  {func(_ int32, c *frameConn, stream uint32) { c.reset(stream, refusedStream) }, 2 + httpRefusals, true},
		"says no why":   {func(_ int32, c *frameConn, stream uint32) { c.reset(stream, protocolError) }, 2, true},
		"goes at once":  {func(_ int32, c *frameConn, _ uint32) { c.Close() }, 2, true},
		"goes, with it": {func(_ int32, c *frameConn, stream uint32) { c.goAway(stream); c.Close() }, 2, true},
	} {
		for _, method := range []string{"POST", "DELETE"} {
			s := newFrames(t, func(n int32, conn *frameConn, stream uint32) {
				if n == 1 {
					conn.ok(stream)
					return
				}
				c.answer(n, conn, stream)
			})
			x := NewHTTP(loopback(nil))
			x.transport("ann").TLSClientConfig = &tls.Config{RootCAs: s.roots}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			spec := attempt(`{"url": "https://` + s.Addr().String() + `", "method": "` + method + `"}`)
			if _, err := x.Execute(ctx, spec); err != nil {
				t.Fatalf("%s %s: the first request: %v", name, method, err)
			}
			_, err := x.Execute(ctx, spec)
			want, fails := c.requests, c.fails
			if method == "DELETE" {
				want, fails = 2, true
			}
			if n := s.requests.Load(); n != want || (err != nil) != fails || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s %s: the server got %d requests, want %d; %v", name, method, n, want, err)
			}
			x.Close()
		}
	}
}
