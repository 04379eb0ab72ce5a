package tick_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What an atomic step does to its session does not reach the record that is written there: the step succeeds, and its output
// is what it has returned.
func TestAtomicStepMayChangeItsSession(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		var lists [][]string
		const insert, told = "INSERT INTO effects VALUES (1)", "SELECT 'grün' AS word"
		switch d.Engine {
		case "postgres":
			role, _ := d.As(t)
			d.Exec(t, "REVOKE ALL ON SCHEMA dbjobs FROM "+role)
			d.Exec(t, "GRANT ALL ON effects TO "+role)
			d.Exec(t, "GRANT "+role+" TO current_user")
			d.Exec(t, "CREATE PROCEDURE becomes() LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('role', '"+role+"', true), set_config('client_encoding', 'LATIN1', true); END $$")
			lists = [][]string{{"SET ROLE " + role, insert, told}, {"SET LOCAL ROLE " + role, insert, told},
				{"SELECT set_config('role', '" + role + "', true)", insert, told}, {"SELECT set_config('client_encoding', 'LATIN1', false)", insert, told},
				{"CALL becomes()", insert, told}, {"DO 'BEGIN CALL becomes(); END'", insert, told},
				{"SET client_encoding = 'LATIN1'", insert, told}, {"SET NAMES 'LATIN1'; " + insert, told},
				{"UPDATE pg_settings SET setting = '" + role + "' WHERE name = 'role'", insert, told}}
			d.Exec(t, "CREATE TABLE settings AS SELECT 'role' AS name, '"+role+"' AS value UNION ALL SELECT 'client_encoding', 'LATIN1'")
			d.Exec(t, "GRANT SELECT ON settings TO "+role)
			lists = append(lists, []string{"SELECT set_config(name, value, true) FROM settings", insert, told},
				[]string{"WITH s AS (SELECT * FROM settings) SELECT set_config(name, value, true) FROM s", insert, told})
		case "mariadb":
			var database string
			if err := d.SQL.QueryRow("SELECT DATABASE()").Scan(&database); err != nil {
				t.Fatal(err)
			}
			elsewhere := strings.Replace(insert, "effects", "`"+database+"`.effects", 1)
			lists = [][]string{{"USE information_schema", elsewhere, told}, {"/* not here */ use information_schema", elsewhere, told},
				{"SET NAMES latin1", insert, told}, {"SET sql_select_limit = 1, sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", insert, told}}
		default:
			t.Skip("a session of SQLite has nothing of that kind")
		}
		var defs store.Definitions
		for i, list := range lists {
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job", i), Steps: []store.Step{ticktest.AtomicStep(list...)}})
		}
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		if r := ticktest.Run(t, d); r.Succeeded != len(lists) {
			t.Errorf("%+v", r.Runs)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != len(lists) {
			t.Errorf("%d effects of %d steps", n, len(lists))
		}
		rows, err := d.SQL.Query("SELECT coalesce(output, '') FROM " + d.Table("attempts"))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var output string
			if err := rows.Scan(&output); err != nil || !strings.HasSuffix(output, `{"word": "grün"}`) {
				t.Errorf("%v: the record has the output %q", err, output)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	})
}

// A login that has its rights by its default role has that role again for the record, also if a procedure sets another one.
func TestAtomicStepMaySetItsRole(t *testing.T) {
	if !slices.Contains(storetest.Engines(t), "mariadb") {
		t.Skip("TestAtomicStepMayChangeItsSession has the roles of PostgreSQL; SQLite has none")
	}
	d := storetest.Open(t, "mariadb", store.Options{})
	login, as := d.Account(t, "ticker")
	grants, err := store.Grants("ticker", d.Direct(), login, false)
	if err != nil {
		t.Fatal(err)
	}
	d.Exec(t, "CREATE TABLE effects (n int)")
	d.Exec(t, "CREATE PROCEDURE becomes() SQL SECURITY INVOKER SET ROLE "+login+"_other")
	for _, role := range []string{login + "_role", login + "_other"} {
		d.Exec(t, "CREATE ROLE "+role)
		t.Cleanup(func() { d.Exec(t, "DROP ROLE "+role) })
		d.Exec(t, "GRANT "+role+" TO "+login)
		d.Exec(t, "GRANT INSERT ON effects TO "+role)
	}
	for _, st := range storetest.Statements(grants) {
		d.Exec(t, roleOf.ReplaceAllString(st, "TO "+login+"_role"))
	}
	d.Exec(t, "GRANT EXECUTE ON PROCEDURE becomes TO "+login+"_role")
	if _, err := storetest.OpenSQL(t, as).Exec("SET DEFAULT ROLE " + login + "_role"); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+login)
	d.Exec(t, "GRANT "+login+"_role TO "+login)
	d.Exec(t, "GRANT "+login+"_other TO "+login)
	s, err := store.Open(t.Context(), as, store.Options{Clock: d.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var defs store.Definitions
	for i, change := range []string{"SET ROLE " + login + "_other", "SET ROLE NONE; SET ROLE '" + login + "_other'", "CALL becomes()"} {
		defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job", i), Owner: login, Steps: []store.Step{ticktest.AtomicStep(append(strings.Split(change, "; "), "INSERT INTO effects VALUES (1)")...)}})
	}
	ticktest.Apply(t, d, defs)
	for _, j := range defs.Jobs {
		ticktest.Request(t, d, login+"/"+j.Name)
	}
	if r, err := ticktest.New(t, s).Run(t.Context()); err != nil || r.Succeeded != len(defs.Jobs) {
		t.Errorf("%v: %+v", err, r.Runs)
	}
}

var roleOf = regexp.MustCompile(`TO \S+@\S+`)

// A step that sets the clock of its session, as a replayed log does, does not date its record by it, also if a procedure sets it.
func TestAtomicStepThatSetsItsClock(t *testing.T) {
	if !slices.Contains(storetest.Engines(t), "mariadb") {
		t.Skip("the sessions of other engines have no clock of their own")
	}
	d := storetest.Open(t, "mariadb", store.Options{})
	s, err := store.Open(t.Context(), d.URL, store.Options{}) // dates are those of the server
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d.Exec(t, "CREATE PROCEDURE replay() SET timestamp = 1000000000")
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "sets", Steps: []store.Step{ticktest.AtomicStep("SET timestamp = 1000000000", "DO 1")}},
		{Name: "calls", Steps: []store.Step{ticktest.AtomicStep("CALL replay()", "DO 1")}}}})
	for _, job := range []string{"sets", "calls"} {
		if _, err := s.RunNow(t.Context(), job, store.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := ticktest.New(t, s).Run(t.Context()); err != nil || r.Succeeded != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, table := range []string{"runs", "attempts"} {
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table(table)+" WHERE finished_at < started_at"); n != 0 {
			t.Errorf("%s: %d ended before it began", table, n)
		}
	}
}

// An error that reports a lost connection may be about a server behind the database, as those of dblink and of foreign tables
// are. The connection of the step is still there: this is a failed attempt.
func TestAtomicStepThatDoesNotReachAnotherServer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("other engines have numbers of their own for servers behind them")
		}
		d.Exec(t, "CREATE FUNCTION away() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not establish connection' USING ERRCODE = '08001'; END $$")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.AtomicStep("SELECT away()")}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Failed != 1 || !strings.HasPrefix(r.Runs[0].Error, "ERROR: could not establish connection") {
			t.Errorf("%+v", r)
		}
	})
}
