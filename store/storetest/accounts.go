package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// Accounts are the logins of a database. Each has the rights that `dbjobs migrate --print-grants`
// prints, and no others. SQLite has no logins: there the three URLs are the same.
type Accounts struct {
	Admin    string // the URL of the login that made the database; it makes the jobs' own tables, and gives rights to the others
	Migrator string // the URL of the login that makes our tables and drops them
	Ticker   string // the URL of the login that does everything else

	SQL *sql.DB // the administrator's, as DB.SQL; nil on SQLite

	granted []string // the jobs' own tables that the ticker may use
}

// Apart gives a new database on the engine, in which one login migrates and another one ticks. It is empty, or the
// migrator has made our tables, and has given the ticker its rights. The test's package has Main. In an empty
// database, the ticker has no right before Grant. On MariaDB and MySQL it may not even enter the database.
func Apart(t testing.TB, engine string, migrated bool) *Accounts {
	t.Helper()
	s := fresh(t, engine, spareKind{migrated: migrated, apart: true})
	if engine == "sqlite" {
		return &Accounts{Admin: s.url, Migrator: s.url, Ticker: s.url}
	}
	isNew := s.accounts == nil
	if isNew {
		s.accounts = accountsOf(t, engine, s.url)
	}
	a := s.accounts
	if a.SQL = s.own; a.SQL == nil {
		admin, err := store.Open(t.Context(), a.Admin, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		a.SQL = s.openSQL(t, admin)
		a.SQL.SetMaxIdleConns(1)
	}
	if isNew {
		a.prepare(t, migrated)
		s.isMade(t, a.SQL)
	}
	if Dialect(engine) == "mariadb" { // a right stays when its table is dropped
		t.Cleanup(func() { a.revokeTables(t) })
	}
	return a
}

// accountsOf returns the URLs of the logins, which have no rights yet.
func accountsOf(t testing.TB, engine, admin string) *Accounts {
	t.Helper()
	pair, err := loginsOn(engine)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal("not a URL")
	}
	a := &Accounts{Admin: admin}
	u.User = pair.migrator
	a.Migrator = u.String()
	u.User = pair.ticker
	a.Ticker = u.String()
	return a
}

// prepare gives the migrator its rights. If asked for, the migrator then makes our tables.
func (a *Accounts) prepare(t testing.TB, migrated bool) {
	t.Helper()
	if err := a.grant(t.Context(), "admin", a.Migrator, false); err != nil || !migrated {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	s, err := store.Open(t.Context(), a.Migrator, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.grant(t.Context(), "ticker", a.Ticker, false); err != nil {
		t.Fatal(err)
	}
}

// Grant gives the ticker its rights on our tables, as they are printed. Call it after each migration.
// Without tables it does nothing.
func (a *Accounts) Grant(ctx context.Context) error {
	if a.SQL == nil {
		return nil
	}
	s, err := store.Open(ctx, a.Migrator, store.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	schema, err := s.Schema(ctx)
	if err != nil || schema.Version == 0 {
		return err
	}
	return a.grant(ctx, "ticker", a.Ticker, schema.Owners)
}

// grant gives the login of a URL the rights of a kind.
func (a *Accounts) grant(ctx context.Context, kind, of string, owners bool) error {
	u, err := url.Parse(of)
	if err != nil {
		return errors.New("not a URL")
	}
	grants, err := store.Grants(kind, a.Admin, u.User.Username(), owners)
	if err != nil {
		return err
	}
	for _, statement := range Statements(grants) {
		if _, err := a.SQL.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// GrantTable gives the ticker the rights that jobs need on a table of their own. The administrator has
// made the table.
func (a *Accounts) GrantTable(ctx context.Context, table string) error {
	if a.SQL == nil {
		return nil
	}
	err := a.ofTable(ctx, "GRANT", table, "TO")
	if err == nil {
		a.granted = append(a.granted, table)
	}
	return err
}

func (a *Accounts) ofTable(ctx context.Context, grant, table, to string) error {
	ticker, err := url.Parse(a.Ticker)
	if err != nil {
		return errors.New("not a URL")
	}
	_, err = a.SQL.ExecContext(ctx, grant+" SELECT, INSERT, UPDATE, DELETE ON "+table+" "+to+" "+ticker.User.Username())
	return err
}

// revokeTables ends the rights that GrantTable gave.
func (a *Accounts) revokeTables(t testing.TB) {
	t.Helper()
	for _, table := range a.granted {
		if err := a.ofTable(context.Background(), "REVOKE", table, "FROM"); err != nil {
			t.Error(err)
		}
	}
	a.granted = nil
}

// logins are the two logins of a server.
type logins struct {
	migrator, ticker *url.Userinfo
	drop             func() error
}

// made has the logins by engine. Main drops them. To make them for each test would take longer than
// many tests take.
var made struct {
	mu sync.Mutex
	by map[string]*logins
}

// loginsOn makes a migrator and a ticker on the engine's server, or returns the two that exist already.
func loginsOn(engine string) (*logins, error) {
	made.mu.Lock()
	defer made.mu.Unlock()
	if l := made.by[engine]; l != nil {
		return l, nil
	}
	variable := "DBJOBS_TEST_" + strings.ToUpper(engine)
	u, err := url.Parse(os.Getenv(variable))
	if err != nil {
		return nil, fmt.Errorf("%s: not a URL", variable)
	}
	driver, source, create, drop := "pgx", pgxDSN(u), "CREATE ROLE %s LOGIN PASSWORD '%s'", "DROP ROLE %s"
	if Dialect(engine) == "mariadb" {
		driver, source, create, drop = "mysql", mysqlDSN(u), "CREATE USER %s IDENTIFIED BY '%s'", "DROP USER %s"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	run := func(list ...string) error {
		for _, statement := range list {
			if _, err := db.Exec(statement); err != nil {
				return fmt.Errorf("%s: %w", strings.Fields(statement)[0:2], err) // the rest may be a password
			}
		}
		return nil
	}
	suffix, password := randomName(), rand.Text()
	migrator, ticker := "dbjobs_test_m_"+suffix, "dbjobs_test_t_"+suffix
	list := []string{fmt.Sprintf(create, migrator, password), fmt.Sprintf(create, ticker, password)}
	if driver == "pgx" {
		list = append(list, "GRANT "+migrator+" TO CURRENT_USER") // without this, it may not drop what that login owns together with a database
	}
	if err := run(list...); err != nil {
		return nil, err
	}
	l := &logins{migrator: url.UserPassword(migrator, password), ticker: url.UserPassword(ticker, password)}
	l.drop = func() error {
		db, err = sql.Open(driver, source)
		if err != nil {
			return err
		}
		defer db.Close()
		return run(fmt.Sprintf(drop, ticker), fmt.Sprintf(drop, migrator))
	}
	if made.by == nil {
		made.by = map[string]*logins{}
	}
	made.by[engine] = l
	return l, nil
}

// dropLogins drops the logins at the end of the package, when all databases of the tests are dropped.
func dropLogins() error {
	made.mu.Lock()
	defer made.mu.Unlock()
	var errs []error
	for _, l := range made.by {
		errs = append(errs, l.drop())
	}
	return errors.Join(errs...)
}
