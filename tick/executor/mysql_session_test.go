package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A step changes each setting of its session on MariaDB or MySQL. For the next step, the setting has the value of a new
// session.
func TestSettingsAreAsNewForTheNextStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" {
			t.Skip("PostgreSQL has a list of its own for DISCARD ALL, and on SQLite a statement that sets something closes the session")
		}
		d.Exec(t, "CREATE TABLE seen (session int, what longtext)")
		schema := "information_schema"
		if _, err := d.SQL.Exec("SELECT 1 FROM information_schema.session_variables LIMIT 1"); err != nil {
			schema = "performance_schema" // MySQL
		}
		// Left out are the clock, values that the server draws anew, and values that belong to the server though a
		// session can read them.
		all := `SELECT CONNECTION_ID(), (SELECT GROUP_CONCAT(variable_name, '=', variable_value ORDER BY variable_name SEPARATOR '\n')
			FROM ` + schema + `.session_variables WHERE LOWER(variable_name) NOT IN ('timestamp', 'rand_seed1', 'rand_seed2', 'max_relay_log_size',
			'sql_slave_skip_counter', 'pseudo_thread_id', 'group_concat_max_len', 'statement_id')
			AND LOWER(variable_name) NOT LIKE 'gtid%' AND LOWER(variable_name) NOT LIKE 'pro%ling%')`
		s := newStepper(t, d, d.Store)
		look := func() (session int, what string) {
			t.Helper()
			if err := s.step("SET group_concat_max_len = 1000000", "INSERT INTO seen "+all); err != nil {
				t.Fatal(err)
			}
			if err := d.SQL.QueryRow("SELECT session, what FROM seen").Scan(&session, &what); err != nil {
				t.Fatal(err)
			}
			d.Exec(t, "DELETE FROM seen")
			return session, what
		}
		before, want := look()
		try, err := storetest.OpenSQL(t, d.URL).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer try.Close()
		var accepted []string
		for line := range strings.Lines(want) {
			set := otherSetting(strings.Cut(strings.TrimSuffix(line, "\n"), "="))
			if _, err := try.ExecContext(t.Context(), set); err == nil { // otherwise it cannot be set in a session, or not to this value
				accepted = append(accepted, set)
			}
		}
		if len(accepted) < 100 {
			t.Errorf("only %d settings were changed", len(accepted))
		}
		// A session that waits or is reset for too long is dropped, so a slow machine may need several rounds.
		for range 10 {
			if err := s.step(accepted...); err != nil {
				t.Fatal(err)
			}
			after, got := look()
			if got != want {
				t.Errorf("the next step finds\n%s\nnot\n%s", got, want)
			}
			if after == before {
				return
			}
			before = after
		}
		t.Error("the next step gets another session, each of ten times")
	})
}

// otherSetting is a statement that gives a setting another value than it has.
func otherSetting(name, value string, _ bool) string {
	number, err := strconv.ParseUint(value, 10, 64)
	switch name = strings.ToLower(name); {
	case err == nil && number > math.MaxInt32:
		value = strconv.FormatUint(number-1024, 10)
	case err == nil:
		value = strconv.FormatUint(number+1024, 10)
	case value == "ON":
		value = "OFF"
	case value == "OFF":
		value = "ON"
	default:
		value = "'" + value + "'"
		for part, other := range map[string]string{"character_set": "latin2", "collation": "latin2_bin", "lc_": "'de_DE'", "time_zone": "'+01:00'",
			"isolation": "'SERIALIZABLE'", "sql_mode": "'ANSI_QUOTES'", "engine": "'MyISAM'", "completion_type": "'CHAIN'"} {
			if strings.Contains(name, part) {
				value = other
			}
		}
	}
	return "SET SESSION " + name + " = " + value
}

// A session is closed if a proxy says that it was reset, and did not forward the reset. It is also closed under TLS,
// where the command for the reset cannot be sent.
func TestSessionThatCannotBeResetIsClosed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" {
			t.Skip("TestPoolerOfTransactions… has the poolers of PostgreSQL, and SQLite has none")
		}
		d.Exec(t, "CREATE TABLE seen (session int, what text)")
		for what, through := range map[string]func(*url.URL){
			"directly":                 func(*url.URL) {},
			"a proxy that passes on":   func(u *url.URL) { u.Host = proxy(t, u.Host, "no command", "no command") },
			"a proxy that passes none": func(u *url.URL) { u.Host = proxy(t, u.Host, "\x01\x00\x00\x00\x1f", "\x01\x00\x00\x00\x0e") },
			"TLS":                      func(u *url.URL) { u.RawQuery = "tls=skip-verify" },
		} {
			u, err := url.Parse(d.URL)
			if err != nil {
				t.Fatal("not a URL")
			}
			through(u)
			st, err := store.Open(t.Context(), u.String(), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			s := newStepper(t, d, st)
			const facts = "SELECT CONNECTION_ID(), COALESCE(@mine, 'none')"
			before, _ := s.look(facts)
			if err := s.step("SET @mine = 'kept'"); err != nil {
				t.Fatal(err)
			}
			after, got := s.look(facts)
			if want := what == "directly" || what == "a proxy that passes on"; got != "none" || want != (before == after) {
				t.Errorf("%s: the next step finds %s; it gets the same session: %v", what, got, before == after)
			}
		}
	})
}

// proxy forwards everything that is sent to a server, but replaces one packet by another. It returns its address.
func proxy(t *testing.T, server, packet, another string) string {
	return between(t, server, func(client, to net.Conn) {
		go replaced(client, to, packet, packet)
		replaced(to, client, packet, another)
	})
}

// between listens before a server. It calls forward with each connection of a client, and with a new one to the server. It
// returns its address.
func between(t *testing.T, server string, forward func(client, to net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			go forward(client, to)
		}
	}()
	return l.Addr().String()
}

// Several servers may be behind one address, each with numbers of its own for its sessions. A statement is stopped on its own server, by
// a connection that leads there. Where none does, nothing is stopped on another server, and the attempt says that the statement may
// go on. The server of the test has two names: one for each of the two servers.
func TestAStatementIsStoppedOnItsServerOnly(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if storetest.Dialect(d.Engine) != "mariadb" {
			t.Skip("other engines do not stop a statement by a number")
		}
		for name, there := range map[string]bool{"it is there": true, "it is gone": false} {
			t.Run(name, func(t *testing.T) { stopsOnItsServer(t, d, there) })
		}
	})
}

func stopsOnItsServer(t *testing.T, d *storetest.DB, there bool) {
	d.Exec(t, "CREATE TABLE effects (n int)")
	d.Exec(t, "INSERT INTO effects VALUES (0)")
	t.Cleanup(func() { d.Exec(t, "DROP TABLE effects") })
	servers := startTwoServers(t, d)
	st, err := store.Open(t.Context(), servers.url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	s := newStepper(t, d, st) // it has asked for the login
	other, err := d.SQL.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback() }()
	if _, err := other.Exec("UPDATE effects SET n = 0"); err != nil {
		t.Fatal(err)
	}
	if s.r.Spec, err = json.Marshal(executor.SQLSpec{SQL: executor.Texts("UPDATE effects SET n = n + 1")}); err != nil {
		t.Fatal(err)
	}
	const waits = "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE effects SET n = n + 1%'"
	ctx, stop := context.WithCancelCause(t.Context())
	servers.second.Store(true)
	go func() {
		for d.Int(t, waits) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		servers.second.Store(there)
		stop(errStop)
	}()
	res, err := s.x.Execute(ctx, s.r)
	if told := strings.Contains(res.Output, "may go on there"); err == nil || told == there {
		t.Errorf("%v, output %q", err, res.Output)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	for d.Int(t, waits) > 0 {
		time.Sleep(5 * time.Millisecond)
	}
	if n := d.Int(t, "SELECT n FROM effects"); n == 1 == there {
		t.Errorf("its server is there: %t; the statement took effect %d times", there, n)
	}
}

// twoServers are two servers with one address. The second is the first one with another name.
type twoServers struct {
	url    string
	second atomic.Bool // the next connections lead to it
}

func startTwoServers(t *testing.T, d *storetest.DB) *twoServers {
	t.Helper()
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal("not a URL")
	}
	var name string
	if err := d.SQL.QueryRow("SELECT /*M! CONCAT(@@hostname, ':', @@port, ':', @@server_id) */ /*!80003 @@server_uuid */").Scan(&name); err != nil {
		t.Fatal(err)
	}
	letters := []byte(name)
	slices.Reverse(letters)
	another := string(letters)
	s := &twoServers{}
	u.Host = between(t, u.Host, func(client, to net.Conn) {
		if !s.second.Load() {
			go replaced(client, to, name, name)
			replaced(to, client, name, name)
			return
		}
		go replaced(client, to, name, another)
		replaced(to, client, fmt.Sprintf("%x", another), fmt.Sprintf("%x", name))
	})
	s.url = u.String()
	return s
}

// replaced forwards what it reads, but replaces one text by another. The end of one connection ends the other.
func replaced(to, from net.Conn, text, another string) {
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		_, _ = io.WriteString(to, strings.ReplaceAll(string(buffer[:n]), text, another))
	}
}

// The server's list of warnings stays until another statement reads a table or warns. A step reports neither a warning of an
// earlier step in its session, nor one of what makes the session like a new one.
func TestWarningsAreOfTheOwnStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if storetest.Dialect(d.Engine) != "mariadb" {
			t.Skip("other engines tell a warning once")
		}
		d.Exec(t, "CREATE TABLE strict (n int PRIMARY KEY)")
		d.Exec(t, "CREATE PROCEDURE nothing() BEGIN END")
		sessions, err := d.JobSessions(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sessions.Close()
		for range 3 { // a reset by itself, one in one trip, one along with the last statement
			s, number := takeMadeAsNew(t, sessions, "SELECT CONNECTION_ID()")
			var told engine.Told
			if _, err := s.Conn.ExecContext(s.Last(engine.Listen(t.Context(), &told)), "INSERT IGNORE INTO strict VALUES (1), (1)"); err != nil || len(told.Lines) == 0 {
				t.Fatalf("%q, %v", told.Lines, err)
			}
			s.Release(true)
			s, err := sessions.Take(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			told = engine.Told{}
			if _, err := s.Conn.ExecContext(engine.Listen(t.Context(), &told), "CALL nothing()"); err != nil || len(told.Lines) > 0 {
				t.Errorf("the next step reports %q, %v", told.Lines, err)
			}
			var then int64
			if err := s.Conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&then); err != nil || then != number {
				t.Errorf("session %d after %d, %v", then, number, err)
			}
			s.Release(true)
		}
	})
}

// The driver writes arguments into the text that it sends. In some character sets the server would read the sign before a quote as
// a part of a character, and what follows the quote as SQL. Such a step is refused before anything is sent. A routine cannot
// set the character set: the server undoes that at its end.
func TestArgumentIsNoSQLInAnyCharset(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if storetest.Dialect(d.Engine) != "mariadb" {
			t.Skip("other engines get arguments apart from the text")
		}
		d.Exec(t, "CREATE TABLE notes (what varchar(100))")
		d.Exec(t, "CREATE PROCEDURE sets() BEGIN SET CHARACTER SET gbk; END")
		s := newStepper(t, d, d.Store)
		for set, refused := range map[string]bool{"SET CHARACTER SET gbk": true, "CALL sets()": false} {
			spec, err := json.Marshal(executor.SQLSpec{SQL: []executor.Statement{{Text: "INSERT INTO notes VALUES ('sent')"}, {Text: set},
				{Text: "INSERT INTO notes VALUES (?)", Args: []any{"\u5618'), (version()) -- "}}}})
			if err != nil {
				t.Fatal(err)
			}
			s.r.Spec = spec
			_, err = s.x.Execute(t.Context(), s.r)
			if got := err != nil && strings.Contains(err.Error(), "the character set"); got != refused {
				t.Errorf("%s: %v", set, err)
			}
			if sent := d.Int(t, "SELECT count(*) FROM notes WHERE what = 'sent'"); sent > 0 == refused {
				t.Errorf("%s: %d statements were sent", set, sent)
			}
			if n := d.Int(t, "SELECT count(*) FROM notes WHERE what = version()"); n > 0 {
				t.Errorf("%s: the argument became SQL", set)
			}
			d.Exec(t, "DELETE FROM notes")
		}
	})
}

// An error of a statement is no sign that its session had ended before: the statement would be executed again and again.
// MariaDB gives the number by which MySQL says that to a trigger that is not there, and any routine may raise it.
func TestErrorOfAStatementExecutesItOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if storetest.Dialect(d.Engine) != "mariadb" {
			t.Skip("on other engines it has no such number")
		}
		d.Exec(t, "CREATE TABLE effects (what varchar(100))")
		d.Exec(t, "CREATE PROCEDURE raises() BEGIN INSERT INTO effects VALUES ('raised'); SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 4031, MESSAGE_TEXT = 'no more'; END")
		s := newStepper(t, d, d.Store)
		for range 3 { // then the session is one that has waited
			if err := s.step("INSERT INTO effects VALUES ('polite')"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := s.stepWithin(ctx, "CALL raises()"); err == nil || !strings.Contains(err.Error(), "no more") || ctx.Err() != nil {
			t.Error(err)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects WHERE what = 'raised'"); n != 1 {
			t.Errorf("executed %d times", n)
		}
	})
}
