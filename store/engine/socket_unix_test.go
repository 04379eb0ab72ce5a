//go:build unix

package engine

import (
	"net"
	"syscall"
	"testing"
)

// A look at a socket does not wait, also while the driver reads from it.
func TestNothingToRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if !nothingToRead(conn) {
		t.Error("something is to be read, and nothing was sent")
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	reading, come := make(chan struct{}), make(chan error, 1)
	first := true
	go func() {
		come <- raw.Read(func(uintptr) bool {
			if first {
				first = false
				close(reading)
				return false
			}
			return true
		})
	}()
	<-reading
	if !nothingToRead(conn) {
		t.Error("something is to be read while another reads, and nothing was sent")
	}
	if _, err := server.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-come; err != nil {
		t.Fatal(err)
	}
	if nothingToRead(conn) {
		t.Error("what has come is not seen")
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	for nothingToRead(conn) { // until the end has come
	}
}
