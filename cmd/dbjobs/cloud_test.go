package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
)

// cloud is a database on which functions work.
type cloud struct {
	testing.TB
	url string
	sql *sql.DB
	env map[string]string // more variables for commands at a terminal
}

// onServers runs fn on each server, because a function has no file in which it could keep a database.
func onServers(t *testing.T, fn func(t *testing.T, c *cloud)) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e != "sqlite" {
			t.Run(e, func(t *testing.T) {
				t.Parallel()
				fn(t, newCloud(t, e))
			})
		}
	}
}

func onPostgres(t *testing.T) *cloud {
	if !slices.Contains(storetest.Engines(t), "postgres") {
		storetest.Skip(t, "a test for PostgreSQL, which DBJOBS_TEST_DATABASES leaves out")
	}
	t.Parallel()
	return newCloud(t, "postgres")
}

func newCloud(t testing.TB, engine string) *cloud {
	d := storetest.Open(t, engine, store.Options{})
	return &cloud{TB: t, url: d.URL, sql: d.SQL}
}

// dbjobs runs a command line on the database, as its owner at a terminal would.
func (c *cloud) dbjobs(args ...string) {
	c.Helper()
	c.with(nil, args...)
}

func (c *cloud) with(stdin io.Reader, args ...string) {
	c.Helper()
	var talk bytes.Buffer
	env := func(name string) (string, bool) {
		if name == settings.URLVariable {
			return c.url, true
		}
		value, set := c.env[name]
		return value, set
	}
	if code := run(context.Background(), args, stdin, io.Discard, &talk, env, nil); code != exitDone {
		c.Fatalf("%q: code %d: %s", args, code, &talk)
	}
}

// ticker is a job with an occurrence each second. Each one has to be decided and to leave its effect.
func (c *cloud) ticker() {
	c.Helper()
	c.exec("CREATE TABLE effects (at varchar(40) PRIMARY KEY)")
	place := "$1"
	if strings.HasPrefix(c.url, "mysql") {
		place = "?"
	}
	c.with(strings.NewReader(fmt.Sprintf(`jobs:
  ticker:
    rule: every 1s
    overlap: wait-all
    missed: all
    missed_limit: 100000
    steps:
      - {name: note, sql: "INSERT INTO effects VALUES (%s)", args: ["at ${scheduled_for}"], atomic: true}
`, place)), "apply", "-f", "-")
}

func (c *cloud) exec(statement string) {
	c.Helper()
	if _, err := c.sql.Exec(statement); err != nil {
		c.Fatalf("%s: %v", statement, err)
	}
}

func (c *cloud) text(query string) string {
	c.Helper()
	var v sql.NullString
	if err := c.sql.QueryRow(query).Scan(&v); err != nil {
		c.Fatalf("%s: %v", query, err)
	}
	return v.String
}

func (c *cloud) number(query string) int {
	c.Helper()
	n, err := strconv.Atoi(c.text(query))
	if err != nil {
		c.Fatalf("%s: %v", query, err)
	}
	return n
}

// nothingLost checks that every second from the first decision to the last one has one run, which has succeeded once.
func (c *cloud) nothingLost() {
	c.Helper()
	rows, err := c.sql.Query("SELECT at FROM effects ORDER BY at")
	if err != nil {
		c.Fatal(err)
	}
	defer rows.Close()
	var last time.Time
	n := 0
	for ; rows.Next(); n++ {
		var text string
		if err := rows.Scan(&text); err != nil {
			c.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, strings.TrimPrefix(text, "at "))
		if err != nil {
			c.Fatal(err)
		}
		if n > 0 && at.Sub(last) != time.Second {
			c.Errorf("after %s comes %s", last, at)
		}
		last = at
	}
	if err := rows.Err(); err != nil || n == 0 {
		c.Fatalf("%d effects, %v", n, err)
	}
}

func (c *cloud) function(env ...string) *aFunction {
	c.Helper()
	f := startFunction(c, append([]string{"DBJOBS_DATABASE_URL=" + c.url}, env...)...)
	u, err := url.Parse(c.url)
	if err != nil {
		c.Fatal(err)
	}
	password, _ := u.User.Password()
	c.Cleanup(func() { // in every case, no secret may be in the log
		for _, secret := range []string{password, "geheim", "sitzung"} {
			if strings.Contains(f.log.String(), secret) {
				c.Errorf("the log has a secret:\n%s", f.log)
			}
		}
	})
	return f
}

// report returns the answer of an invocation that must succeed.
func (f *aFunction) report(a answer) tick.Report {
	f.t.Helper()
	var r tick.Report
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.failed || a.killed {
		f.t.Fatalf("answered %+v, %v; log:\n%s", a, err, f.log)
	}
	return r
}

// refused returns the answer of an invocation that must fail.
func (f *aFunction) refused(a answer) (kind, message string) {
	f.t.Helper()
	var e struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || !a.failed {
		f.t.Fatalf("answered %+v, %v; log:\n%s", a, err, f.log)
	}
	return e.ErrorType, e.ErrorMessage
}

// passes returns the lines of the log that report a pass.
func (f *aFunction) passes() []map[string]any {
	f.t.Helper()
	var list []map[string]any
	for line := range strings.Lines(f.log.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			f.t.Errorf("no JSON in the log: %s", line)
		}
		if v["msg"] == "pass" {
			list = append(list, v)
		}
	}
	return list
}

func (c *cloud) table(name string) string {
	if strings.HasPrefix(c.url, "postgres") {
		return "dbjobs." + name
	}
	return "dbjobs_" + name
}

// backends counts the connections to the database of a function with this name. It waits until those that are just
// being closed are gone.
func (c *cloud) backends(name string, most int) (n int) {
	c.Helper()
	for range 100 {
		n = c.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = '" + name + "'")
		if n <= most {
			return n
		}
		time.Sleep(50 * time.Millisecond)
	}
	return n
}
