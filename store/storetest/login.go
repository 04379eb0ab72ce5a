package storetest

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// As opens the database as another login, made for the test, with the rights on our tables that store/README.md asks for, and
// returns its name. SQLite knows no logins.
func (d *DB) As(t testing.TB) (login string, s *store.Store) {
	t.Helper()
	login, as := d.login(t, "SELECT, INSERT, UPDATE, DELETE")
	s, err := store.Open(t.Context(), as, store.Options{Clock: d.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return login, s
}

// Reader is the URL of the database for another login, made for the test, that may only read our tables.
func (d *DB) Reader(t testing.TB) string {
	t.Helper()
	_, as := d.login(t, "SELECT")
	return as
}

// login makes a login with rights on our tables, and returns its name and URL.
func (d *DB) login(t testing.TB, rights string) (login, as string) {
	t.Helper()
	login, password := "dbjobs_test_"+strings.ToLower(rand.Text()[:8]), rand.Text()
	schema, give, drop := strings.TrimSuffix(d.Table(""), "."), []string{"CREATE ROLE %[1]s LOGIN PASSWORD '%[2]s'",
		"GRANT USAGE ON SCHEMA %[3]s TO %[1]s", "GRANT " + rights + " ON ALL TABLES IN SCHEMA %[3]s TO %[1]s"},
		[]string{"REVOKE ALL ON ALL TABLES IN SCHEMA %[3]s FROM %[1]s", "REVOKE USAGE ON SCHEMA %[3]s FROM %[1]s", "DROP ROLE %[1]s"}
	u, err := url.Parse(d.Direct())
	if err != nil {
		t.Fatal("not a URL")
	}
	if d.Engine == "mariadb" {
		schema = strings.TrimPrefix(u.Path, "/")
		give, drop = []string{"CREATE USER %[1]s@'%%' IDENTIFIED BY '%[2]s'"}, []string{"DROP USER %[1]s@'%%'"}
		for _, table := range d.tables(t) { // of a database, only who has it by this very name may give rights
			give = append(give, "GRANT "+rights+" ON %[3]s."+table+" TO %[1]s@'%%'")
		}
	}
	words := func(text string) string { return fmt.Sprintf(text+"%.0[1]s%.0[2]s%.0[3]s", login, password, schema) }
	for i, text := range give {
		if _, err := d.SQL.Exec(words(text)); err != nil && i == 0 {
			Skip(t, "this account may make no other: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, text := range drop {
			d.Exec(t, words(text))
		}
	})
	u.User = url.UserPassword(login, password)
	return login, u.String()
}

// tables are ours in the test's database, on MariaDB.
func (d *DB) tables(t testing.TB) (names []string) {
	t.Helper()
	rows, err := d.SQL.Query("SHOW TABLES LIKE 'dbjobs\\_%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}
