package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The changes that a job makes to its session are gone with the session. The next job, and the ledger, find a session
// as the server gives it. Each of the statements would change the results of the others if a connection were used
// again.
func TestSessionOfAJobHarmsNobody(t *testing.T) {
	rude := map[string][]string{
		"postgres": {
			"SET search_path = nowhere", "SET TIME ZONE 'Asia/Kathmandu'", "SET datestyle = 'German'", "CREATE TEMPORARY TABLE scratch (n int)",
			"SELECT pg_advisory_lock(42)", "LISTEN nobody", "PREPARE p AS SELECT 1", "DECLARE c CURSOR WITH HOLD FOR SELECT generate_series(1, 1000)",
			"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET default_transaction_read_only = on", "BEGIN", "SET statement_timeout = 10000",
		},
		"mariadb": {
			"SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "SET time_zone = '+05:45'", "SET NAMES latin1", "SET @kept = 1",
			"CREATE TEMPORARY TABLE scratch (n int)", "DO GET_LOCK(CONCAT(DATABASE(), ' session'), 0)", "SET SESSION tx_isolation = 'SERIALIZABLE'", "SET max_statement_time = 10",
			"LOCK TABLES effects WRITE", "SET autocommit = 0", "INSERT INTO effects VALUES ('rude')", "USE information_schema",
		},
		"sqlite": {
			"PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF", "PRAGMA busy_timeout = 1", "CREATE TEMPORARY TABLE scratch (n int)", "ATTACH ':memory:' AS another",
			"PRAGMA case_sensitive_like = ON", "BEGIN IMMEDIATE", "INSERT INTO effects VALUES ('rude')", "PRAGMA query_only = ON", "PRAGMA locking_mode = EXCLUSIVE",
		},
	}
	facts := map[string]string{
		"postgres": "SELECT concat_ws(',', current_setting('search_path'), current_setting('TimeZone'), current_setting('default_transaction_read_only'), " +
			"current_setting('statement_timeout'), current_setting('datestyle'), coalesce(to_regclass('pg_temp.scratch')::text, 'no table'), " +
			"(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), (SELECT count(*) FROM pg_prepared_statements WHERE name = 'p'), (SELECT count(*) FROM pg_cursors WHERE is_holdable), " +
			"current_setting('default_transaction_isolation'))",
		"mariadb": "SELECT CONCAT_WS(',', @@sql_mode, @@time_zone, @@autocommit, @@character_set_client, COALESCE(@kept, 'none'), " +
			"IS_FREE_LOCK(CONCAT(DATABASE(), ' session')), @@tx_isolation, @@max_statement_time, DATABASE())",
		"sqlite": "SELECT 'x' LIKE 'X' || (SELECT group_concat(name) FROM pragma_database_list) || (SELECT foreign_keys FROM pragma_foreign_keys) || " +
			"(SELECT synchronous > 0 FROM pragma_synchronous) || (SELECT timeout FROM pragma_busy_timeout) || (SELECT query_only FROM pragma_query_only) || " +
			"(SELECT count(*) FROM sqlite_temp_master)",
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (what varchar(500))")
		look := "INSERT INTO effects " + storetest.Words(d.Server, facts[d.Engine])
		rude := strings.Split(storetest.Words(d.Server, strings.Join(rude[d.Engine], ";")), ";")
		polite := ticktest.Step("", look)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "before", Steps: []store.Step{polite}},
			{Name: "rude", Priority: 9, Steps: []store.Step{ticktest.Step("", rude...)}},
			{Name: "after", Priority: 1, Steps: []store.Step{polite, ticktest.AtomicStep(look)}},
		}})
		ticktest.Request(t, d, "before")
		ticktest.Run(t, d)
		ticktest.Request(t, d, "rude")
		ticktest.Request(t, d, "after")
		tk := ticktest.New(t, d.Store)
		tk.Concurrency = 1
		r, err := tk.Run(t.Context())
		if err != nil || r.Started != 2 || r.Runs[1].State != store.Succeeded {
			t.Fatalf("%v: %+v", err, r)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "rude"})
		if err != nil || runs[0].State != store.Failed || !strings.Contains(runs[0].Error, "left a transaction open") {
			t.Fatalf("%v: %+v", err, runs)
		}
		rows, err := d.SQL.Query("SELECT what FROM effects WHERE what <> 'rude'")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var told []string
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			told = append(told, s)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if len(told) != 3 || told[0] != told[1] || told[0] != told[2] {
			t.Errorf("sessions before and after differ:\n%q", told)
		}
	})
}

// A text with nothing but comments has nothing to execute, on every engine.
func TestSessionTakesNothingButComments(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", "-- nothing"), ticktest.AtomicStep("/* nothing */")}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
	})
}

// A statement that waits for rows from its client fails, wherever it is in a text, because no client sends them. Otherwise
// it would hold its pass for ever. A statement that only mentions such a statement does not fail.
func TestSessionRefusesACopyFromTheClient(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("COPY is PostgreSQL's")
		}
		d.Exec(t, "CREATE TABLE effects (what text)")
		mentioned := ticktest.Step("one", "INSERT INTO effects VALUES ('; COPY effects FROM STDIN')")
		var defs store.Definitions
		for i, last := range []store.Step{
			ticktest.Step("two", "-- rows\n/* to */ copy effects (what)\nfrom stdin WITH (FORMAT csv)"),
			ticktest.Step("two", "SELECT repeat('x', 100000); COPY effects FROM STDIN; SELECT 1"),
			ticktest.AtomicStep("INSERT INTO effects VALUES ('undone'); COPY effects FROM STDIN"),
		} {
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job", i), Timeout: store.Duration(time.Minute), Steps: []store.Step{mentioned, last}})
		}
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		r := ticktest.Run(t, d)
		for _, one := range r.Runs {
			if one.State != store.Failed || one.Step != 2 || !strings.Contains(one.Error, "COPY from stdin failed: no client sends rows") {
				t.Errorf("%+v", one)
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); len(r.Runs) != len(defs.Jobs) || n != len(defs.Jobs) {
			t.Errorf("%d runs, %d effects", len(r.Runs), n)
		}
	})
}

// A transaction that statements leave open is undone at the end of their session. That is a failure, and not a success
// without an effect. It is no failure if they end the transaction, or never began one.
func TestSessionFailsATransactionLeftOpen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		list := map[string][]string{
			"left":      {"BEGIN", "INSERT INTO effects VALUES (1)"},
			"only read": {"BEGIN", "SELECT count(*) FROM effects"},
			"ended":     {"BEGIN", "INSERT INTO effects VALUES (2)", "COMMIT"},
			"plain":     {"INSERT INTO effects VALUES (3)", "SELECT count(*) FROM effects"},
		}
		if d.Engine == "mariadb" {
			list["left by a setting"] = []string{"SET autocommit = 0", "INSERT INTO effects VALUES (4)"}
		}
		var defs store.Definitions
		for name, statements := range list {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, OnStartup: true, Steps: []store.Step{ticktest.Step("", statements...)}})
		}
		ticktest.Apply(t, d, defs)
		tk := ticktest.New(t, d.Store)
		tk.StartupID = "a start"
		r := ticktest.Pass(t, tk)
		for _, run := range r.Runs {
			failed := strings.Contains(run.Error, "left a transaction open")
			if want := strings.Contains(run.Job, "left") || strings.Contains(run.Job, "only read"); failed != want {
				t.Errorf("%s: %s %s", run.Job, run.State, run.Error)
			}
		}
		if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 5 || len(r.Runs) != len(list) {
			t.Errorf("the effects are %d, want 2 and 3; %d runs", n, len(r.Runs))
		}
	})
}

// A step whose statements leave a transaction open fails, and its error says so.
func TestSessionSaysThatATransactionWasLeftOpen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "open", Steps: []store.Step{ticktest.Step("", "BEGIN", "INSERT INTO effects VALUES (1)")}},
			{Name: "ended", Steps: []store.Step{ticktest.Step("", "BEGIN", "INSERT INTO effects VALUES (2)", "COMMIT")}},
		}})
		ticktest.Request(t, d, "open")
		r := ticktest.Run(t, d)
		if r.Failed != 1 || len(r.Runs) != 1 || !strings.Contains(r.Runs[0].Error, "left a transaction open") {
			t.Fatalf("%+v", r)
		}
		ticktest.Request(t, d, "ended")
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 2 {
			t.Errorf("effects: %d", n)
		}
	})
}

// The question whether a step has left a transaction open is answered also where the session returns no rows.
func TestSessionThatReturnsNoRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" {
			t.Skip("sql_select_limit is a setting of MariaDB and MySQL")
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", "SET sql_select_limit = 0")}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
	})
}
