package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// exchange is a connection that keeps what is sent, and gives prepared answers.
type exchange struct {
	net.Conn
	sent    bytes.Buffer
	trips   int
	answers *strings.Reader
}

func (e *exchange) Write(p []byte) (int, error) {
	e.trips++
	return e.sent.Write(p)
}

func (e *exchange) Read(p []byte) (int, error) { return e.answers.Read(p) }

// A command is sent in place of the one that the driver sends, and of nothing else. If a driver of
// another version sends something else, that reaches no server, and fails.
func TestCommandsAreSentInPlaceOfOthers(t *testing.T) {
	t.Parallel()
	ping, reset := mysqlPacket(mysqlPing, ""), mysqlPacket(mysqlReset, "")
	for _, c := range []struct {
		name   string
		driver []string
		sent   string
		ok     bool
	}{
		{"a ping", []string{ping}, reset, true},
		{"a ping, and more", []string{ping, "more"}, reset + "more", true},
		{"a part of it", []string{ping[:4], ping[4:]}, "", false},
		{"a query", []string{mysqlPacket(mysqlQuery, "SELECT 1")}, "", false},
		{"compressed", []string{"\x05\x00\x00\x00\x00\x00\x00" + ping}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got exchange
			w := &mysqlWire{Conn: &got}
			w.expect([]mysqlCommand{{ping, reset}}, nil, false)
			err := writeAll(w, c.driver...)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, errUnwired) {
				t.Errorf("%v", err)
			}
			if got.sent.String() != c.sent {
				t.Errorf("%q is sent, not %q", got.sent.String(), c.sent)
			}
		})
	}
}

func writeAll(w io.Writer, packets ...string) error {
	for _, p := range packets {
		if _, err := io.WriteString(w, p); err != nil {
			return err
		}
	}
	return nil
}

// Commands that are sent in one trip are sent once, behind the statement that they go along with. The
// driver gets each answer by itself: its buffer has to be empty when it sends the next command.
func TestCommandsAreSentInOneTrip(t *testing.T) {
	t.Parallel()
	ping, reset, set := mysqlPacket(mysqlPing, ""), mysqlPacket(mysqlReset, ""), queryOnWire("SET a = 1")
	commands := []mysqlCommand{{ping, reset}, set}
	insert, prepare := mysqlPacket(mysqlQuery, "INSERT"), mysqlPacket("\x16", "INSERT")
	answers := []string{"\x02\x00\x00\x01ok", "\x03\x00\x00\x01yes", "\x00\x00\x00\x01"}
	all := strings.Join(answers, "")
	for _, c := range []struct {
		name   string
		behind bool
		driver []string
		sent   string
		trips  int
		ok     bool
	}{
		{"by themselves", false, []string{ping, set.driver}, reset + set.wire, 1, true},
		{"along with a statement", true, []string{insert, ping, set.driver}, insert + reset + set.wire, 1, true},
		{"not along with a statement that is prepared", true, []string{prepare, ping, set.driver}, prepare + ping + set.driver, 3, true},
		{"another comes first", false, []string{insert}, "", 0, false},
		{"another comes between", false, []string{ping, insert}, reset + set.wire, 1, false},
		{"another comes before they are read", true, []string{insert, insert}, insert + reset + set.wire, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := exchange{answers: strings.NewReader(all)}
			w := &mysqlWire{Conn: &got, greeted: true}
			w.expect(commands, joined(commands), c.behind)
			var err error
			for i, p := range c.driver {
				if err = writeAll(w, p); err != nil {
					break
				}
				if answer := readOnce(w, len(answers[i])); c.trips == 1 && answer != answers[i] {
					t.Errorf("the answer is %q, not %q", answer, answers[i])
				}
			}
			if (err == nil) != c.ok || err != nil && !errors.Is(err, errUnwired) {
				t.Errorf("%v", err)
			}
			if got.sent.String() != c.sent || got.trips != c.trips {
				t.Errorf("%q is sent in %d trips, not %q in %d", got.sent.String(), got.trips, c.sent, c.trips)
			}
		})
	}
}

// readOnce reads as much as a driver that wants n bytes gets.
func readOnce(r io.Reader, n int) string {
	answer := make([]byte, 100)
	got, _ := io.ReadAtLeast(r, answer, n) // at the end there is less
	return string(answer[:got])
}

// An answer to nothing that was asked is given to nobody. The connection is then of no more use.
func TestAnswersToNothingEndTheConnection(t *testing.T) {
	t.Parallel()
	ping := mysqlPacket(mysqlPing, "")
	got := exchange{answers: strings.NewReader("\x02\x00\x00\x01ok\x02\x00\x00\x00no")}
	w := &mysqlWire{Conn: &got, greeted: true}
	commands := []mysqlCommand{{ping, ping}}
	w.expect(commands, joined(commands), false)
	if err := writeAll(w, ping); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(w, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := writeAll(w, ping); !errors.Is(err, errUnwired) {
		t.Errorf("the next command: %v", err)
	}
}

func TestNumberOfTheGreeting(t *testing.T) {
	t.Parallel()
	const rest = "\x07\x01\x00\x00salt"
	for packet, want := range map[string]int64{
		"\x20\x00\x00\x00\x0a5.5.5-10.11.19-MariaDB\x00" + rest: 263,
		"\x20\x00\x00\x00\x0a5.5.5-10.11.19-MariaDB\x00\x07":    0,
		"\x20\x00\x00\x00\x0a5.5.5-10.11.19-MariaDB":            0,
		"\x20\x00\x00\x00\x09old\x00" + rest:                    0,
		"\x20\x00\x00\x01\xff\x10\x04Too many connections\x00":  0,
		"": 0,
	} {
		if got := greeted([]byte(packet)); got != want {
			t.Errorf("%q: %d, want %d", packet, got, want)
		}
	}
}

// A session is renewed along with a statement only if the server answers that statement with one
// packet, and if nothing is to be asked after it.
func TestStatementsThatTakeARenewalAlong(t *testing.T) {
	t.Parallel()
	c := mysql.NewConfig()
	c.DBName = "d"
	renewal := newMySQLRenewal(c)
	final := context.WithValue(t.Context(), last{}, true)
	for text, want := range map[string]bool{
		"INSERT INTO t VALUES (1)":             true,
		"  insert into t values (1);\n":        true,
		"/* c */ UPDATE t SET a = 1":           true,
		"DELETE FROM t":                        true,
		"REPLACE INTO t VALUES (1)":            true,
		"INSERT IGNORE INTO t VALUES (1)":      false,
		"INSERT INTO t VALUES (1) RETURNING a": false,
		"INSERT INTO t VALUES (1); COMMIT":     false,
		"SELECT 1":                             false,
		"CALL p()":                             false,
		"SET a = 1":                            false,
		"LOAD DATA INFILE 'f' INTO TABLE t":    false,
		"":                                     false,
		"INSERT INTO t VALUES ('" + strings.Repeat("a", 9000) + "')": false,
	} {
		for _, along := range []bool{true, false} {
			j := &mysqlJobConn{wire: &mysqlWire{}, renewal: renewal, along: along}
			if j.renewAlong(final, text); j.wire.behind != (want && along) {
				t.Errorf("%.40q: %v, want %v", text, j.wire.behind, want && along)
			}
			if j.wire.expect(nil, nil, false); along {
				if j.renewAlong(t.Context(), text); j.wire.behind {
					t.Errorf("%.40q is not the last of its attempt", text)
				}
			}
		}
	}
	renewal.apart.Store(true)
	j := &mysqlJobConn{wire: &mysqlWire{}, renewal: renewal, along: true}
	if j.renewAlong(final, "DELETE FROM t"); j.wire.behind {
		t.Error("the server does not bear it")
	}
	if want := []string{"\x1f", "\x02d"}; !slices.ContainsFunc(renewal.commands, func(c mysqlCommand) bool { return strings.HasSuffix(c.wire, want[0]) }) ||
		!slices.ContainsFunc(renewal.commands, func(c mysqlCommand) bool { return strings.HasSuffix(c.wire, want[1]) }) {
		t.Errorf("%q", renewal.commands)
	}
}
