package tick_test

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// The rights in store/README.md are enough, and the accounts here have no others. One account migrates, the other does
// everything else.
func TestRightsOfTheReadmeAreEnough(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		if engine == "sqlite" {
			continue
		}
		t.Run(engine, func(t *testing.T) {
			plain := storetest.URL(t, engine)
			admin := storetest.OpenSQL(t, plain)
			u, err := url.Parse(plain)
			if err != nil {
				t.Fatal("not a URL")
			}
			suffix := strings.ToLower(rand.Text()[:10])
			named := func(kind string) string { return "dbjobs_" + kind[:1] + "_" + suffix }
			as := func(kind string) string {
				login := *u
				login.User = url.UserPassword(named(kind), suffix)
				return login.String()
			}
			grant := func(by *sql.DB, name, kind string) {
				t.Helper()
				text, err := store.Grants(kind, plain, named(name), false)
				if err != nil {
					t.Fatal(err)
				}
				for _, statement := range storetest.Statements(text) {
					mustExec(t, by, statement)
				}
			}
			account(t, admin, engine, named("ticker"), suffix)
			account(t, admin, engine, named("migrator"), suffix) // dropped first, with the rights that it has granted

			if s, err := store.Open(t.Context(), as("ticker"), store.Options{}); err == nil { // MariaDB hides the database itself
				_, err = s.Migrate(t.Context())
				s.Close()
				if !errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "lacks a right") {
					t.Errorf("without any right: %v", err)
				}
			} else if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "lacks a right") {
				t.Errorf("without any right: %v", err)
			}
			grant(admin, "migrator", "admin")
			if storetest.Dialect(engine) == "mariadb" {
				app := "`" + strings.ReplaceAll(strings.TrimPrefix(u.Path, "/"), "_", `\_`) + "`"
				mustExec(t, admin, "REVOKE CREATE VIEW ON "+app+".* FROM "+named("migrator"))
				if err := migrateAs(t, as("migrator")); err == nil || !strings.Contains(err.Error(), "needs the rights CREATE VIEW and DROP on the database") {
					t.Errorf("without CREATE VIEW: %v", err)
				}
				grant(admin, "migrator", "admin")
			}
			migrator, err := store.Open(t.Context(), as("migrator"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer migrator.Close()
			if _, err := migrator.Migrate(t.Context()); err != nil {
				t.Fatalf("migrate: %v", err)
			}
			if err := migrator.SetInstance(t.Context(), ""); err != nil {
				t.Fatalf("name the instance: %v", err)
			}
			owner := storetest.SQL(t, migrator)
			mustExec(t, admin, effects(engine))
			by := owner // of the tables
			if engine != "postgres" {
				by = admin // only this login may grant
			}
			grant(by, "ticker", "ticker")
			mustExec(t, admin, "GRANT INSERT ON "+public(engine)+"effects TO "+named("ticker")) // the right that the jobs need
			if engine == "postgres" {
				mustExec(t, admin, "GRANT USAGE ON public.effects_id_seq TO "+named("ticker"))
			}
			if err := useAll(t, engine, as("ticker")); err != nil {
				t.Error(err)
			}
			if _, err := migrator.Uninstall(t.Context(), true); err != nil { // MySQL keeps the account while it owns a view
				t.Errorf("uninstall: %v", err)
			}
		})
	}
}

func migrateAs(t *testing.T, rawURL string) error {
	t.Helper()
	s, err := store.Open(t.Context(), rawURL, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Migrate(t.Context())
	return err
}

// account makes a login that may do nothing, and drops it at the end, when its database has gone.
func account(t *testing.T, admin *sql.DB, engine, name, password string) {
	t.Helper()
	create, drop := fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, password), []string{"GRANT " + name + " TO CURRENT_USER", "DROP OWNED BY " + name + " CASCADE", "DROP ROLE " + name}
	if storetest.Dialect(engine) == "mariadb" {
		create, drop = fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", name, password), []string{"DROP USER " + name}
	}
	if _, err := admin.Exec(create); err != nil {
		storetest.Skip(t, "the test's account may make no other: %v", err)
	}
	t.Cleanup(func() {
		for _, statement := range drop {
			if _, err := admin.Exec(statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
}

func mustExec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// The page quotes the rights as the program prints them.
func TestRightsOfTheReadmeArePrinted(t *testing.T) {
	page, err := os.ReadFile("../store/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range store.LoginKinds {
		text, err := store.Grants(kind, "postgres://db.example.org/app", "nightly", true)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range storetest.Statements(text) {
			head, _, _ := strings.Cut(line, " ON dbjobs.schedules") // a list of all tables
			head, _, _ = strings.Cut(head, " ON dbjobs.v_")
			if strings.HasPrefix(head, "GRANT INSERT (") { // a list of columns
				head = "GRANT INSERT ("
			}
			if !strings.Contains(string(page), head) {
				t.Errorf("%s: store/README.md lacks %s", kind, line)
			}
		}
	}
}
