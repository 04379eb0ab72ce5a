package engine

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A target's server may belong to others. It does not learn a password that the environment has for
// dbjobs' own database, only one that the URL gives, or a password file for its host.
func TestTargetDoesNotLearnPassword(t *testing.T) {
	dir := t.TempDir()
	services, passwords := filepath.Join(dir, "services"), filepath.Join(dir, "passwords")
	if err := errors.Join(os.WriteFile(services, []byte("[jobs]\nuser=dbjobs\npassword=geheimnis\n[bare]\nuser=dbjobs\n"), 0o600),
		os.WriteFile(passwords, []byte("127.0.0.1:*:*:bea:geheimnis\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGSERVICEFILE", services)
	t.Setenv("PGPASSFILE", passwords)
	for _, c := range []struct {
		environment, value string
		user, options      string
		target             bool
		want               bool // it gets the password
	}{
		{"PGPASSWORD", "geheimnis", "ann", "", false, true},
		{"PGPASSWORD", "geheimnis", "ann", "", true, false},
		{"PGPASSWORD", "geheimnis", "ann:", "", true, false},
		{"PGPASSWORD", "geheimnis", "ann", "&password=", true, false},
		{"PGPASSWORD", "geheimnis", "ann", "&service=bare", true, false},
		{"PGSERVICE", "jobs", "ann", "", false, true},
		{"PGSERVICE", "jobs", "ann", "", true, false},
		{"PGPASSWORD", "geheimnis", "bea", "", true, true},
		{"PGPASSWORD", "another", "ann", "&service=jobs", true, true},
		{"PGPASSWORD", "another", "ann:geheimnis", "", true, true},
		{"PGPASSWORD", "another", "ann", "&password=geheimnis", true, true},
	} {
		t.Run(c.environment+" "+c.user+c.options, func(t *testing.T) {
			t.Setenv(c.environment, c.value)
			if got := toldServer(t, c.user, c.options, c.target); len(got) == 0 || bytes.Contains(got, []byte("geheimnis")) != c.want {
				t.Errorf("target %t: the server got %q", c.target, got)
			}
		})
	}
}

// toldServer is what a server of PostgreSQL gets when it asks for a password.
func toldServer(t *testing.T, user, options string, target bool) []byte {
	t.Helper()
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
	db, err := New("postgres://"+user+"@"+l.Addr().String()+"/shop?sslmode=disable"+options, Options{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.pool.PingContext(t.Context()); err == nil {
		t.Error("connected to a server that says nothing")
	}
	return <-said
}
