package storetest

import (
	"bufio"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
)

// Settings makes every new session of a database begin with settings that somebody else has chosen. It
// returns the URL that leads to them. On PostgreSQL they are settings of the database. On MariaDB they
// would be settings of the whole server, so a proxy sets them when a session begins. On SQLite they
// are settings of the file. Each is written name = value.
func Settings(t testing.TB, rawURL string, settings ...string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal("not a URL")
	}
	if u.Scheme == "mysql" {
		return sessionProxy(t, *u, "SET "+strings.Join(settings, ", "))
	}
	driver, source, statement := "pgx", rawURL, "ALTER DATABASE "+strings.TrimPrefix(u.Path, "/")+" SET "
	if u.Scheme == "sqlite" {
		driver, source, statement = "sqlite", u.Opaque, "PRAGMA "
		settings = append(settings, "user_version = 1") // makes the file
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range settings {
		if driver == "pgx" && strings.HasPrefix(s, "idle_session_timeout") && Version(t, db) < 14_00_00 {
			t.Skip("PostgreSQL has idle_session_timeout since version 14")
		}
		if _, err := db.Exec(statement + s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return rawURL
}

// sessionProxy stands between a program and a server that speaks MySQL's protocol. In each session it
// executes a statement before the program gets it. The test fails if the server refuses that
// statement. An error of a connection only closes the session. A program may leave a session at any
// moment. If it did not, it gets an error itself.
func sessionProxy(t testing.TB, u url.URL, statement string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	server := u.Host
	problems := make(chan error, 100)
	t.Cleanup(func() {
		for len(problems) > 0 {
			t.Error("proxy: ", <-problems)
		}
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				defer client.Close()
				if err := proxySession(client, server, statement); errors.As(err, new(refusedStatementError)) {
					select {
					case problems <- err:
					default: // enough of them are known
					}
				}
			}()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// refusedStatementError is an error of the statement that a session begins with.
type refusedStatementError string

func (e refusedStatementError) Error() string { return string(e) }

func proxySession(client net.Conn, address, statement string) error {
	server, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer server.Close()
	fromServer, fromClient := bufio.NewReader(server), bufio.NewReader(client)
	welcome, err := login(client, server, fromClient, fromServer)
	if err != nil || welcome == nil {
		return err
	}
	const query = 3
	if _, err := server.Write(packet(0, append([]byte{query}, statement...))); err != nil {
		return err
	}
	answer, err := readPacket(fromServer)
	if err != nil {
		return err
	}
	if answer[4] != 0 {
		return refusedStatementError(fmt.Sprintf("%s: %q", statement, answer[4:]))
	}
	// First come two zeros: no changed rows, and no id of a new row. Then comes the state of the
	// session, which has changed.
	copy(welcome[7:9], answer[7:9])
	if _, err := client.Write(welcome); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(server, fromClient) // if one connection ends, so does the other
		server.Close()
	}()
	_, _ = io.Copy(client, fromServer)
	return nil
}

// login carries packets in both directions until the server accepts the client. It returns the packet in which
// the server accepts, which the client has not received yet. It returns nil if the server refuses the client.
func login(client, server net.Conn, fromClient, fromServer *bufio.Reader) (welcome []byte, err error) {
	const welcomed, more, known, refused = 0, 1, 3, 255
	for greeted := false; ; greeted = true {
		p, err := readPacket(fromServer)
		if err != nil {
			return nil, err
		}
		if greeted && p[4] == welcomed {
			return p, nil
		}
		if _, err := client.Write(p); err != nil || p[4] == refused {
			return nil, err
		}
		if greeted && p[4] == more && p[len(p)-1] == known {
			continue // MySQL remembers the password, asks nothing, and says so before it accepts the client
		}
		answer, err := readPacket(fromClient)
		if err != nil {
			return nil, err
		}
		if _, err := server.Write(answer); err != nil {
			return nil, err
		}
	}
}

func packet(number byte, payload []byte) []byte {
	p := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	p[3] = number
	return append(p, payload...)
}

func readPacket(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	p := make([]byte, len(head)+(int(head[0])|int(head[1])<<8|int(head[2])<<16))
	copy(p, head)
	_, err := io.ReadFull(r, p[len(head):])
	if err == nil && len(p) < 5 {
		err = errors.New("an empty packet")
	}
	return p, err
}
