package tick_test

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// The rights that store/README.md names are enough, and all that the accounts here have: one migrates, the other does all else.
func TestRightsOfTheReadmeAreEnough(t *testing.T) {
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
			database, suffix := strings.TrimPrefix(u.Path, "/"), strings.ToLower(rand.Text()[:10])
			if storetest.Dialect(engine) == "mariadb" { // whose own right is for a pattern, and may be granted for a pattern only
				database = "`" + strings.ReplaceAll(database, "_", `\_`) + "`"
			}
			names := strings.NewReplacer("app", database, "migrator", "dbjobs_m_"+suffix, "ticker", "dbjobs_t_"+suffix)
			as := func(name string) string {
				login := *u
				login.User = url.UserPassword(names.Replace(name), suffix)
				return login.String()
			}
			account(t, admin, engine, names.Replace("ticker"), suffix)
			account(t, admin, engine, names.Replace("migrator"), suffix) // dropped first, with what it has granted

			if s, err := store.Open(t.Context(), as("ticker"), store.Options{}); err == nil { // MariaDB hides the database itself
				_, err = s.Migrate(t.Context())
				s.Close()
				if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "lacks a right") {
					t.Errorf("without any right: %v", err)
				}
			} else if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "lacks a right") {
				t.Errorf("without any right: %v", err)
			}
			before, after := readmeRights(t, engine)
			for _, grant := range before {
				mustExec(t, admin, names.Replace(grant))
			}
			if storetest.Dialect(engine) == "mariadb" {
				mustExec(t, admin, names.Replace("REVOKE CREATE VIEW ON app.* FROM migrator"))
				if err := migrateAs(t, as("migrator")); err == nil || !strings.Contains(err.Error(), "needs the rights CREATE VIEW and DROP on the database") {
					t.Errorf("without CREATE VIEW: %v", err)
				}
				mustExec(t, admin, names.Replace("GRANT CREATE VIEW ON app.* TO migrator"))
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
			owner, err := migrator.JobDB(store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer owner.Close()
			for _, grant := range after {
				mustExec(t, owner, names.Replace(grant))
			}
			mustExec(t, admin, effects(engine))
			if engine == "postgres" { // what the jobs need
				mustExec(t, admin, "GRANT INSERT ON public.effects TO "+names.Replace("ticker"))
				mustExec(t, admin, "GRANT USAGE ON public.effects_id_seq TO "+names.Replace("ticker"))
			}
			if err := useAll(t, engine, as("ticker")); err != nil {
				t.Error(err)
			}
			if _, err := migrator.Uninstall(t.Context(), true); err != nil { // MySQL keeps the account while a view is its own
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

// readmeRights are the GRANTs of store/README.md for an engine, before and after migrating.
func readmeRights(t *testing.T, engine string) (before, after []string) {
	t.Helper()
	text, err := os.ReadFile("../store/README.md")
	if err != nil {
		t.Fatal(err)
	}
	title := map[string]string{"postgres": "PostgreSQL", "mariadb": "MariaDB"}[storetest.Dialect(engine)]
	block := regexp.MustCompile("(?s)```sql\n-- " + title + "[^\n]*\n(GRANT .*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatalf("store/README.md has no rights for %s", title)
	}
	first, second, _ := strings.Cut(string(block[1]), "\n-- after each")
	_, second, _ = strings.Cut(second, "\n") // the rest of that line
	grants := regexp.MustCompile(`(?s)GRANT .*?;`)
	before, after = grants.FindAllString(first, -1), grants.FindAllString(second, -1)
	if len(before) == 0 {
		t.Fatalf("store/README.md names no right for %s", title)
	}
	return before, after
}
