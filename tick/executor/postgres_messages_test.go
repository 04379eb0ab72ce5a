package executor_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// On PostgreSQL, BEGIN is sent together with the first statement of an atomic step, if that text is certainly one
// statement.
func TestBeginOfAnAtomicStepTakesNoTrip(t *testing.T) {
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (n int)")
	const begin, insert, two = "BEGIN ISOLATION LEVEL Read Committed", "INSERT INTO effects VALUES (1)", "INSERT INTO effects VALUES (1); INSERT INTO effects VALUES (1)"
	for _, c := range []struct {
		sql  []string
		want []string
	}{
		{[]string{insert, insert}, []string{begin + " + " + insert, insert, "COMMIT"}},
		{[]string{two}, []string{begin, "SAVEPOINT", two, "RELEASE", "COMMIT"}},
	} {
		w := &wire{}
		st, err := store.Open(t.Context(), w.before(t, d.URL), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		s := newStepper(t, d, st)
		spec, err := json.Marshal(executor.SQLSpec{SQL: executor.Texts(c.sql...), Atomic: true})
		if err != nil {
			t.Fatal(err)
		}
		s.r.Spec, s.r.EndIn = spec, func(context.Context, *sql.Tx, executor.Result) error { return nil }
		if _, err := s.x.Execute(t.Context(), s.r); err != nil {
			t.Fatal(err)
		}
		if got := w.trips(); !slices.Equal(got, c.want) {
			t.Errorf("%q: the trips %q, want %q", c.sql, got, c.want)
		}
	}
	if n := d.Int(t, "SELECT count(*) FROM effects"); n != 4 {
		t.Errorf("%d effects, want 4", n)
	}
}

// If BEGIN is refused, nothing is executed outside of a transaction.
func TestNothingIsExecutedWithoutBegin(t *testing.T) {
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (n int)")
	for _, text := range []string{"INSERT INTO effects VALUES (1)", "INSERT INTO effects VALUES (1);;"} {
		tx, err := d.SQL.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelLinearizable}) // PostgreSQL does not know this level
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := tx.ExecContext(engine.Listen(t.Context(), &engine.Told{}), text); err == nil {
				t.Errorf("%s: no error", text)
			}
		}
		if err := tx.Commit(); err == nil {
			t.Errorf("%s: COMMIT had no error", text)
		}
	}
	if n := d.Int(t, "SELECT count(*) FROM effects"); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
}

// wire is a connection between a program and PostgreSQL that reads the program's statements.
type wire struct {
	mu    sync.Mutex
	asked []string // one for each expected answer
}

// trips returns the statements that control transactions, and the INSERT statements.
func (w *wire) trips() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.asked {
		first, _, _ := strings.Cut(text, " ")
		switch first {
		case "SAVEPOINT", "RELEASE": // the rest is a random name
			list = append(list, first)
		case "BEGIN", "INSERT", "COMMIT":
			list = append(list, text)
		}
	}
	return list
}

// before returns the URL that leads to the server through it.
func (w *wire) before(t *testing.T, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal("not a URL")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	server := u.Host
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(client, server)
		}
	}()
	u.Host, u.RawQuery = l.Addr().String(), "sslmode=disable"
	return u.String()
}

func (w *wire) pass(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server) // until one of them closes
		client.Close()
	}()
	var texts []string
	for kind := byte(0); ; { // the first message has no kind
		head := make([]byte, 5)
		if kind == 0 {
			head = head[1:]
		}
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		size := head[len(head)-4:]
		body := make([]byte, binary.BigEndian.Uint32(size)-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if len(head) == 5 {
			kind = head[0]
			texts = w.read(kind, body, texts)
		} else {
			kind = 1
		}
		if _, err := server.Write(slices.Concat(head, body)); err != nil {
			return
		}
	}
}

// read reads a message. Texts that are answered together are one entry.
func (w *wire) read(kind byte, body []byte, texts []string) []string {
	switch kind {
	case 'P': // a name, and the text
		return append(texts, string(bytes.Split(body, []byte{0})[1]))
	case 'Q':
		texts = []string{string(bytes.TrimRight(body, "\x00"))}
	case 'S':
	default:
		return texts
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, strings.Join(texts, " + "))
	return nil
}
