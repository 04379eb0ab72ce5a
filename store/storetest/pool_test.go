package storetest

import (
	"os"
	"slices"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// A database of PostgreSQL is handed on only where it is as new.
func TestSpareIsAsNew(t *testing.T) {
	if !slices.Contains(Engines(t), "postgres") {
		t.Skip("not on PostgreSQL")
	}
	for _, left := range []struct {
		statement string
		handedOn  bool
	}{
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
		{"DROP INDEX dbjobs.jobs_after", false},
		{"DROP TABLE dbjobs.gaps", false},
		{"ALTER TABLE dbjobs.jobs ALTER description SET DEFAULT 'x'", false},
		{"ALTER TABLE dbjobs.runs DROP CONSTRAINT runs_job_id_occurrence_key", false},
		{"GRANT SELECT ON dbjobs.jobs TO PUBLIC", false},
		{"REVOKE ALL ON SCHEMA public FROM PUBLIC", false},
		{"INSERT INTO dbjobs.schedules (name, rule) VALUES ('s', 'every 1h'); ANALYZE dbjobs.schedules", false},
		{"CREATE RULE mine AS ON DELETE TO dbjobs.jobs DO INSTEAD NOTHING", false},
		{"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$", false},
	} {
		t.Run(left.statement, func(t *testing.T) {
			var mine, next string
			t.Run("leave", func(t *testing.T) {
				d := Open(t, "postgres", store.Options{})
				mine = d.URL
				d.Exec(t, left.statement)
			})
			t.Run("next", func(t *testing.T) {
				d := Open(t, "postgres", store.Options{})
				next = d.URL
				if n := d.Int(t, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") + d.Int(t, "SELECT count(*) FROM dbjobs.schedules"); n != 0 {
					t.Errorf("%d tables or rows are left", n)
				}
				if n := d.Int(t, "INSERT INTO dbjobs.schedules (name, rule) VALUES ('s', 'every 1h') RETURNING id"); n != 1 {
					t.Errorf("the first id is %d", n)
				}
			})
			if handedOn := mine == next; handedOn != left.handedOn {
				t.Errorf("handed on: %t", handedOn)
			}
		})
	}
}
