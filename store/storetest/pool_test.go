package storetest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// leftBehind is what a test leaves in its database, and whether the next test may have that database.
type leftBehind struct {
	statements string
	handedOn   bool
}

// The next test gets a database of a server only if the database is like new.
func TestSpareIsAsNew(t *testing.T) {
	for _, engine := range Engines(t) {
		for _, left := range leftBehinds[Dialect(engine)] {
			t.Run(engine+"/"+left.statements, func(t *testing.T) {
				var mine, next string
				t.Run("leave", func(t *testing.T) {
					d := Open(t, engine, store.Options{})
					mine = d.URL
					list := []string{left.statements}
					if Dialect(engine) == "mariadb" { // its driver sends one statement at a time
						list = strings.Split(left.statements, "; ")
					}
					for _, statement := range list {
						d.Exec(t, statement)
					}
				})
				t.Run("next", func(t *testing.T) {
					d := Open(t, engine, store.Options{})
					next = d.URL
					foreign := map[string]string{
						"postgres": "pg_class WHERE relnamespace = 'public'::regnamespace",
						"mariadb": "information_schema.tables WHERE table_schema = DATABASE()" +
							" AND table_name NOT LIKE 'dbjobs\\_%'",
					}[Dialect(engine)]
					n := d.Int(t, "SELECT count(*) FROM "+foreign)
					if n += d.Int(t, "SELECT count(*) FROM "+d.Table("schedules")); n != 0 {
						t.Errorf("%d tables or rows are left", n)
					}
					d.Exec(t, "INSERT INTO "+d.Table("schedules")+" (name, rule) VALUES ('s', 'every 1h')")
					if n := d.Int(t, "SELECT id FROM "+d.Table("schedules")); n != 1 {
						t.Errorf("the first id is %d", n)
					}
				})
				if handedOn := mine == next; handedOn != left.handedOn {
					t.Errorf("handed on: %t", handedOn)
				}
			})
		}
	}
}

var leftBehinds = map[string][]leftBehind{
	"postgres": {
		{"SELECT 1", true},
		{"INSERT INTO dbjobs.schedules (name, rule) VALUES ('s', 'every 1h')", true},
		{"INSERT INTO dbjobs.schedules (name, rule) VALUES ('s', 'every 1h'); DELETE FROM dbjobs.schedules", true},
		{"CREATE TABLE mine AS SELECT 1 AS n; CREATE VIEW theirs AS SELECT * FROM mine", true},
		{"CREATE SEQUENCE s; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", true},
		{"UPDATE dbjobs.installation SET instance = 'a copy'", true},
		{"UPDATE dbjobs.installation SET version = 2", false},
		{"DELETE FROM dbjobs.installation", false},
		{"CREATE SCHEMA mine", false},
		{"CREATE TYPE mine AS ENUM ('a')", false},
		{"CREATE INDEX mine ON dbjobs.jobs (description)", false},
		{"DROP INDEX dbjobs.jobs_group", false},
		{"DROP TABLE dbjobs.gaps CASCADE", false},
		{"ALTER TABLE dbjobs.jobs ALTER description SET DEFAULT 'x'", false},
		{"ALTER TABLE dbjobs.runs DROP CONSTRAINT runs_job_id_occurrence_key", false},
		{"GRANT SELECT ON dbjobs.jobs TO PUBLIC", false},
		{"REVOKE ALL ON SCHEMA public FROM PUBLIC", false},
		{"INSERT INTO dbjobs.schedules (name, rule) VALUES ('s', 'every 1h'); ANALYZE dbjobs.schedules", false},
		{"CREATE RULE mine AS ON DELETE TO dbjobs.jobs DO INSTEAD NOTHING", false},
		{"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$", false},
	},
	"mariadb": {
		{"SELECT 1", true},
		{"INSERT INTO dbjobs_schedules (name, rule) VALUES ('s', 'every 1h')", true},
		{"INSERT INTO dbjobs_schedules (name, rule) VALUES ('s', 'every 1h'); DELETE FROM dbjobs_schedules", true},
		{"CREATE TABLE mine AS SELECT 1 AS n; CREATE VIEW theirs AS SELECT * FROM mine", true},
		{"UPDATE dbjobs_installation SET instance = 'a copy'", true},
		{"UPDATE dbjobs_installation SET version = 2", false},
		{"DELETE FROM dbjobs_installation", false},
		{"CREATE PROCEDURE f() SELECT 1", false},
		{"CREATE INDEX mine ON dbjobs_jobs (enabled)", false},
		{"DROP INDEX jobs_group ON dbjobs_jobs", false},
		{"DROP TABLE dbjobs_gaps", false},
		{"ALTER TABLE dbjobs_jobs ALTER priority SET DEFAULT 7", false},
		{"ALTER TABLE dbjobs_runs ADD CONSTRAINT mine CHECK (number < 7)", false},
		{"ALTER DATABASE CHARACTER SET ucs2", false},
		{"CREATE OR REPLACE VIEW dbjobs_v_gaps AS SELECT 1 AS n", false},
	},
}

// A database whose logins are apart is handed on with their rights, and without what the test before has made.
func TestApartIsAsNew(t *testing.T) {
	for _, engine := range Engines(t) {
		t.Run(engine, func(t *testing.T) {
			if engine == "sqlite" || engine == "pgbouncer" {
				t.Skip("it has no logins of its own")
			}
			for _, migrated := range []bool{true, false} {
				var before string
				for range 2 {
					t.Run(fmt.Sprintf("migrated %t", migrated), func(t *testing.T) {
						a := Apart(t, engine, migrated)
						if handedOn := a.Ticker == before; before != "" && handedOn != (migrated || engine == "postgres") {
							t.Errorf("handed on: %t", handedOn)
						}
						before = a.Ticker
						useApart(t, a, migrated)
					})
				}
			}
		})
	}
}

// useApart finds out that the database is as new, and leaves something in it.
func useApart(t *testing.T, a *Accounts, migrated bool) {
	t.Helper()
	if !migrated {
		migrator, err := store.Open(t.Context(), a.Migrator, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer migrator.Close()
		if applied, err := migrator.Migrate(t.Context()); err != nil || len(applied) == 0 {
			t.Fatalf("there were tables: %v, %v", applied, err)
		}
		if err := a.Grant(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), a.Ticker, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ticker := SQL(t, s)
	var rows int
	schedules := s.Engine().Table("schedules")
	if err := ticker.QueryRow("SELECT COUNT(*) FROM " + schedules).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if _, err := ticker.Exec("INSERT INTO " + schedules + " (name, rule) VALUES ('s', 'every 1h')"); err != nil {
		t.Error(err)
	}
	if _, err := ticker.Exec("DROP TABLE " + schedules); err == nil {
		t.Error("the ticker may drop a table")
	}
	if _, err := a.SQL.Exec("CREATE TABLE effects (n int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := ticker.Exec("INSERT INTO effects VALUES (1)"); err == nil {
		t.Error("the ticker has a right before GrantTable")
	}
	if err := a.GrantTable(t.Context(), "effects"); err != nil {
		t.Fatal(err)
	}
	if _, err := ticker.Exec("INSERT INTO effects VALUES (1)"); err != nil {
		t.Error(err)
	}
}
