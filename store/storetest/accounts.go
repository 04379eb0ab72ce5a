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

	engine    string
	grantable *sql.DB // the administrator's; nil on SQLite
}

// Apart gives a new, empty database on the engine, in which one login migrates and another one ticks. The test's
// package has Main. The ticker has no right before Grant. On MariaDB and MySQL it may not even enter the database.
func Apart(t testing.TB, engine string) *Accounts {
	t.Helper()
	a := &Accounts{Admin: URL(t, engine), engine: engine}
	a.Migrator, a.Ticker = a.Admin, a.Admin
	if engine == "sqlite" {
		return a
	}
	pair, err := loginsOn(engine)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(a.Admin)
	if err != nil {
		t.Fatal("not a URL")
	}
	u.User = pair.migrator
	a.Migrator = u.String()
	u.User = pair.ticker
	a.Ticker = u.String()
	a.grantable = OpenSQL(t, a.Admin)
	a.grantable.SetMaxIdleConns(1)
	grants, err := store.Grants("admin", a.Admin, pair.migrator.Username(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range Statements(grants) {
		if _, err := a.grantable.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if Dialect(engine) == "postgres" {
		t.Cleanup(func() { // the next test gets the database as it was
			for _, statement := range Statements(grants) {
				statement = strings.NewReplacer("GRANT ", "REVOKE ", " TO ", " FROM ").Replace(statement)
				if _, err := a.grantable.Exec(statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
			}
		})
	}
	return a
}

// Grant gives the ticker its rights on our tables, as they are printed. Call it after each migration.
// Without tables it does nothing.
func (a *Accounts) Grant(ctx context.Context) error {
	if a.grantable == nil {
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
	ticker, err := url.Parse(a.Ticker)
	if err != nil {
		return errors.New("not a URL")
	}
	grants, err := store.Grants("ticker", a.Admin, ticker.User.Username(), schema.Owners)
	if err != nil {
		return err
	}
	for _, statement := range Statements(grants) {
		if _, err := a.grantable.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// GrantTable gives the ticker the rights that jobs need on a table of their own. The administrator has
// made the table.
func (a *Accounts) GrantTable(ctx context.Context, table string) error {
	if a.grantable == nil {
		return nil
	}
	ticker, err := url.Parse(a.Ticker)
	if err != nil {
		return errors.New("not a URL")
	}
	_, err = a.grantable.ExecContext(ctx, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+table+" TO "+ticker.User.Username())
	return err
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
