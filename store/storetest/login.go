package storetest

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// As opens the database as another login, and returns its name. The login is made for the test. It has
// the rights of a ticker and no more. SQLite has no logins.
func (d *DB) As(t testing.TB) (login string, s *store.Store) {
	t.Helper()
	login, as := d.Account(t, "ticker")
	s, err := store.Open(t.Context(), as, store.Options{Clock: d.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return login, s
}

// Reader returns the URL of the database for another login that may only read our tables. The login is
// made for the test.
func (d *DB) Reader(t testing.TB) string {
	t.Helper()
	_, as := d.Account(t, "reader")
	return as
}

// Account makes a login with the rights of a kind, as `dbjobs migrate --print-grants` prints them. It returns
// the login's name and URL. In an installation with owners, the login also has the rights that belong to owners.
func (d *DB) Account(t testing.TB, kind string) (login, as string) {
	t.Helper()
	login, password := "dbjobs_test_"+randomName(), rand.Text()
	u, err := url.Parse(d.Direct())
	if err != nil {
		t.Fatal("not a URL")
	}
	schema, err := d.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grants, err := store.Grants(kind, d.Direct(), login, schema.Owners)
	if err != nil {
		t.Fatal(err)
	}
	create, drop := fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s'`, login, password), []string{"DROP OWNED BY " + login, "DROP ROLE " + login}
	if d.Engine == "mariadb" {
		create, drop = fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", login, password), []string{"DROP USER " + login + "@'%'"}
	}
	if _, err := d.SQL.Exec(create); err != nil {
		Skip(t, "this account may make no other: %v", err)
	}
	t.Cleanup(func() {
		for _, text := range drop {
			d.Exec(t, text)
		}
	})
	if d.Engine != "mariadb" { // so that this account may end the rights of the login
		d.Exec(t, "GRANT "+login+" TO CURRENT_USER")
	}
	for _, statement := range Statements(grants) {
		d.Exec(t, statement)
	}
	u.User = url.UserPassword(login, password)
	return login, u.String()
}

// Statements returns the statements of a text of GRANTs.
func Statements(text string) (list []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			list = append(list, strings.TrimSuffix(line, ";"))
		}
	}
	return list
}
