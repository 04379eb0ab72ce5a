package store_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

var (
	noCode = regexp.MustCompile(`'[^']*'|"[^"]*"|--[^\n]*`)
	// called finds a word before a parenthesis, with the word before it.
	called = regexp.MustCompile(`(?i)(?:([\w.]+)\s+)?\b([a-z_][\w.]*)\s*\(`)
	// named finds a query that the statement gives a name, with the names of its columns.
	named = regexp.MustCompile(`(?i)\b(\w+)\s*\([\w, ]+\)\s+AS\s*\(`)
	// grammar has the words of the language that stand before a parenthesis. Some are functions and
	// types that the grammar itself knows.
	grammar = strings.Fields(`all and any array as bit between by case cast check coalesce conflict distinct else except exists extract filter from greatest group having in
		insert interval into is join key lateral least limit materialized not nullif on or order over partition recursive returning row select set then unique using
		values when where with`)
)

// Every function is written with its schema, in each statement for PostgreSQL and in the statements
// that make its tables.
func TestNoFunctionIsFoundBySearchPath(t *testing.T) {
	statements, schema, err := store.PostgresTexts()
	if err != nil {
		t.Fatal(err)
	}
	statements["schema"] = schema
	found := 0
	for name, text := range statements {
		text = noCode.ReplaceAllString(text, "''")
		var queries []string
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			queries = append(queries, m[1])
		}
		for _, m := range called.FindAllStringSubmatch(text, -1) {
			before, word := strings.ToLower(m[1]), strings.ToLower(m[2])
			function, qualified := strings.CutPrefix(word, "pg_catalog.")
			switch {
			case qualified && slices.Contains(storetest.Functions, function):
				found++
			case qualified:
				t.Errorf("%s: storetest.Functions has no %s", name, function)
			case slices.Contains(grammar, word), strings.HasPrefix(word, "dbjobs."): // a table's columns
			case before == "as", slices.Contains(queries, word): // a name that the statement gives
			default:
				t.Errorf("%s: %s( is found by the search path: write pg_catalog.%[2]s", name, word)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d calls of functions found, which are too few to be all", found)
	}
}

// Operators are not found by the search path either. The test puts a schema before the engine's own.
// It has all operators that the engine does not have, and functions for every type. No statement and
// no table depends on any of them.
func TestNothingHostileIsFoundBySearchPath(t *testing.T) {
	t.Parallel()
	if !slices.Contains(storetest.Engines(t), "postgres") {
		storetest.Skip(t, "a test for PostgreSQL, which DBJOBS_TEST_DATABASES leaves out")
	}
	url := storetest.URL(t, "postgres")
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	storetest.Hostile(t, admin)
	s, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var version int
	conn, err := sql.Open("pgx", url) // a new connection: the search path holds for it
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetMaxOpenConns(1)
	if err := conn.QueryRow("SELECT current_setting('server_version_num')::integer").Scan(&version); err != nil {
		t.Fatal(err)
	}
	tried := 0
	if version >= 140000 { // a function's body is parsed when the function is made, and what it depends on is recorded
		tried = asFunctions(t, conn)
	}
	rows, err := conn.Query(`SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid), pg_catalog.pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
		FROM pg_catalog.pg_depend d
		WHERE (d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid IN (SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = 'hostile'::pg_catalog.regnamespace)
		  OR d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND d.refobjid IN (SELECT oid FROM pg_catalog.pg_operator WHERE oprnamespace = 'hostile'::pg_catalog.regnamespace))
		AND d.classid <> 'pg_catalog.pg_operator'::pg_catalog.regclass`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var what, on string
		if err := rows.Scan(&what, &on); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s depends on %s", what, on)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d statements tried", tried)
}

// asFunctions makes a function of each statement, with the parameters that the program sends.
func asFunctions(t *testing.T, conn *sql.DB) (made int) {
	statements, _, err := store.PostgresTexts()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec("CREATE SCHEMA checked"); err != nil {
		t.Fatal(err)
	}
	for name, text := range statements {
		if _, err := conn.Exec("PREPARE s AS " + text); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var parameters string
		err := conn.QueryRow("SELECT coalesce(string_agg(t::text, ', ' ORDER BY n), '') FROM pg_prepared_statements, unnest(parameter_types) WITH ORDINALITY AS p(t, n)").Scan(&parameters)
		if err != nil {
			t.Fatal(err)
		}
		parameters = strings.ReplaceAll(parameters, "integer", "bigint") // as every whole number is sent
		if _, err := conn.Exec(fmt.Sprintf("DEALLOCATE s; CREATE FUNCTION checked.%s(%s) RETURNS void LANGUAGE sql BEGIN ATOMIC %s; END", name, parameters, text)); err != nil {
			t.Errorf("%s(%s): %v", name, parameters, err)
			continue
		}
		made++
	}
	return made
}

// A search path is a danger if it makes a job's text mean our tables, or if it puts anybody's
// operators in the place of the engine's. A trigger's passes report such a path once a day.
func TestASearchPathThatIsADanger(t *testing.T) {
	t.Parallel()
	if !slices.Contains(storetest.Engines(t), "postgres") {
		storetest.Skip(t, "a test for PostgreSQL, which DBJOBS_TEST_DATABASES leaves out")
	}
	for path, want := range map[string]string{
		"public": "", "''": "",
		`public, dbjobs`:       `contains the schema dbjobs`,
		`public, pg_catalog`:   `names the schema public before pg_catalog`,
		"pg_catalog, public":   "",
		"pg_temp, public":      "",
		`no_such, pg_catalog`:  "", // a schema that does not exist is ignored
		`"$user", pg_catalog`:  "", // as long as no schema has the login's name
		`public, "pg_catalog"`: "before pg_catalog",
	} {
		t.Run(path, func(t *testing.T) {
			url := storetest.URL(t, "postgres")
			d, err := store.Open(t.Context(), url, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if path != `"$user", pg_catalog` { // the schema of the test may have that name
				if _, err := d.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			clock := storetest.NewClock(time.Date(2026, 1, 5, 23, 58, 0, 0, time.UTC))
			s, err := store.Open(t.Context(), storetest.Settings(t, url, "search_path = "+path), store.Options{Clock: clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got, err := s.Warning(t.Context())
			if err != nil || (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%q, want %q: %v", got, want, err)
			}
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want == "" {
				return
			}
			for i, expected := range []string{got, "", got, ""} { // a pass a minute, over midnight
				p, err := s.Probe(t.Context(), "test", "tick")
				if err == nil {
					err = s.RecordTick(t.Context(), p, store.TickFacts{Name: "test", Holder: "test", Version: "test"})
				}
				if err != nil {
					t.Fatal(err)
				}
				if p.Warning != expected {
					t.Errorf("pass %d: %q, want %q", i, p.Warning, expected)
				}
				clock.Add(time.Minute)
			}
		})
	}
}

// The text that makes the tables can be sent to a database of any encoding, with its comments.
func TestTheSchemaIsPlainASCII(t *testing.T) {
	for _, url := range []string{"postgres://host/db", "mysql://host/db", "sqlite:x"} {
		text, err := store.MigrationText(url, false)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r > 126 }); i >= 0 {
			t.Errorf("%s: %q", url, text[i:i+40])
		}
	}
}
