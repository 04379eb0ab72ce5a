package storetest

import (
	"database/sql"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// URLWith returns the URL of a new, empty database. It is made with options of CREATE DATABASE, such
// as its encoding.
func URLWith(t testing.TB, engine, options string) string {
	t.Helper()
	variable, driver, dsn := "DBJOBS_TEST_POSTGRES", "pgx", pgxDSN
	if Dialect(engine) == "mariadb" {
		variable, driver, dsn = "DBJOBS_TEST_"+strings.ToUpper(engine), "mysql", mysqlDSN
	}
	s := onServer(t, spareKind{variable: variable, driver: driver}, options, dsn)
	t.Cleanup(func() {
		if err := s.drop(); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return s.url
}

// Version returns the version of a PostgreSQL server, such as 120022.
func Version(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT current_setting('server_version_num')::int").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// onServer makes a database with a random name and with options of CREATE DATABASE. It uses the
// account in the URL of the variable.
func onServer(t testing.TB, kind spareKind, options string, dsn func(*url.URL) string) *spareDB {
	t.Helper()
	variable, driver := kind.variable, kind.driver
	raw := os.Getenv(variable)
	if raw == "" {
		t.Fatalf("%s is not set: `make test` starts the servers and sets it", variable)
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("%s: not a URL", variable)
	}
	db, err := sql.Open(driver, dsn(u))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := "dbjobs_test_" + randomName()
	if _, err := db.Exec("CREATE DATABASE " + name + " " + options); err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	if driver == "pgx" { // the test's login may have the name of our schema, which "$user" on the path would find
		if _, err := db.Exec("ALTER DATABASE " + name + " SET search_path = public"); err != nil {
			t.Fatal(err)
		}
	}
	server := dsn(u)
	u.Path = "/" + name
	return &spareDB{spareKind: kind, url: u.String(), source: dsn(u),
		drop: func() error { return drop(driver, server, name) }}
}

// randomName returns a part for the name of a database or a login. It has letters that form no word: a story says
// `! stdout url` of what a command prints, and commands print these names.
func randomName() string {
	const letters = "bcdfgjkmqvwxz"
	b := make([]byte, 12)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

func drop(driver, server, name string) error {
	db, err := sql.Open(driver, server)
	if err != nil {
		return err
	}
	defer db.Close()
	drop := []string{"DROP DATABASE " + name}
	if driver == "pgx" {
		// FORCE ends the sessions that a test left. The server refuses it while its own vacuum works
		// in the database. The plain form ends that vacuum. PostgreSQL 12 has no FORCE: there the
		// sessions are ended one by one.
		drop = []string{drop[0] + " WITH (FORCE)", drop[0], drop[0], drop[0]}
	}
	for i, st := range drop {
		if i > 1 {
			if _, err := db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
		if _, err = db.Exec(st); err == nil {
			return nil
		}
	}
	return err
}

// DSN returns a server's URL in the form of its driver for database/sql. The driver is pgx or mysql.
func DSN(t testing.TB, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal("not a URL")
	}
	if u.Scheme == "mysql" {
		return mysqlDSN(u)
	}
	return pgxDSN(u)
}

func pgxDSN(u *url.URL) string { return u.String() }

func mysqlDSN(u *url.URL) string {
	password, _ := u.User.Password()
	return u.User.Username() + ":" + password + "@tcp(" + u.Host + ")" + u.Path
}
