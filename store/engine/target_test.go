package engine

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// A target's server may belong to others. It does not learn the password that the environment has for
// dbjobs' own database.
func TestTargetDoesNotLearnPassword(t *testing.T) {
	t.Setenv("PGPASSWORD", "geheimnis")
	for target, want := range map[bool]bool{true: false, false: true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		said := make(chan []byte, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				said <- nil
				return
			}
			defer conn.Close()
			buffer := make([]byte, 4096)
			_, _ = conn.Read(buffer)                               // the greeting
			_, _ = conn.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3}) // asks for the password as it is
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			n, _ := conn.Read(buffer)
			said <- buffer[:n]
		}()
		db, err := New("postgres://ann@"+l.Addr().String()+"/shop?sslmode=disable", Options{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.pool.PingContext(t.Context()); err == nil {
			t.Error("connected to a server that says nothing")
		}
		_ = db.Close()
		if got := <-said; len(got) == 0 || bytes.Contains(got, []byte("geheimnis")) != want {
			t.Errorf("target %t: the server got %q", target, got)
		}
	}
}
