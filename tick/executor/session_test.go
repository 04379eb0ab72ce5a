package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// rude is a step that changes its session. kept: the next step gets the same session.
type rude struct {
	kept bool
	sql  []string
}

var rudes = map[string][]rude{
	"postgres": {
		{true, []string{"INSERT INTO effects VALUES ('plain')"}},
		{true, []string{"SET TIME ZONE 'Asia/Kathmandu'"}},
		{true, []string{"SET datestyle = 'German'"}},
		{true, []string{"SET statement_timeout = 10000"}},
		{true, []string{"SET lock_timeout = 9000; SET work_mem = '3MB'"}},
		{true, []string{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"}},
		{true, []string{"SET client_encoding = 'LATIN1'"}},
		{true, []string{"SET application_name = 'mine'"}},
		{true, []string{"SET standard_conforming_strings = off"}},
		{true, []string{"PREPARE p AS SELECT 1"}},
		{true, []string{"DECLARE c CURSOR WITH HOLD FOR SELECT generate_series(1, 1000)"}},
		{true, []string{"SELECT pg_advisory_lock(42)", "SELECT pg_advisory_lock_shared(43)"}},
		{true, []string{"LISTEN anybody"}},
		{true, []string{"SELECT setseed(0.5)"}},
		{true, []string{"SELECT nextval('counter')"}},
		{true, []string{"SELECT hidden()"}},
		{true, []string{"BEGIN", "SET LOCAL TIME ZONE 'Asia/Kathmandu'", "COMMIT"}},
		{true, []string{"SET default_transaction_read_only = on"}},
		{true, []string{"SET ROLE another_role"}},
		{true, []string{"SET search_path = nowhere"}},
		{false, []string{"CREATE TEMPORARY TABLE scratch (n int)"}},
		{false, []string{"CREATE TEMPORARY TABLE scratch (n int)", "DROP TABLE scratch"}},
		{false, []string{"CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'"}},
		{false, []string{"SET my.own = 'x'"}},
		{false, []string{"SELECT 1; SET SESSION my . own TO 'x'"}},
		{false, []string{"SET /* = */ my.own = 'x'"}},
		{false, []string{"SELECT set_config('my.own', 'x', false)"}},
		{false, []string{"DO $$ BEGIN PERFORM set_config('my.own', 'x', false); END $$"}},
		{false, []string{"BEGIN", "INSERT INTO effects VALUES ('rude')"}},
		{false, []string{"SET TIME ZONE 'Asia/Kathmandu'", "SELECT 1 / 0"}},
	},
	"mariadb": {
		{true, []string{"INSERT INTO effects VALUES ('plain')"}},
		{true, []string{"SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"}},
		{true, []string{"SET time_zone = '+05:45'"}},
		{true, []string{"SET NAMES latin1"}},
		{true, []string{"SET @kept = 1"}},
		{true, []string{"CREATE TEMPORARY TABLE past (n int)"}},
		{true, []string{"DO GET_LOCK(CONCAT(DATABASE(), ' session'), 0)"}},
		{true, []string{"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"}},
		{true, []string{"HANDLER effects OPEN"}},
		{true, []string{"SET sql_select_limit = 1, completion_type = 1, foreign_key_checks = 0"}},
		{true, []string{"SET collation_database = latin2_bin"}},
		{true, []string{"DO LAST_INSERT_ID(7)"}},
		{true, []string{"SELECT SQL_CALC_FOUND_ROWS 1 UNION SELECT 2 LIMIT 1"}},
		{true, []string{"SET timestamp = 1"}},
		{true, []string{"SET insert_id = 70"}},
		{true, []string{"SET rand_seed1 = 1, rand_seed2 = 1"}},
		{true, []string{"PREPARE p FROM 'SELECT 1'"}},
		{true, []string{"CALL hidden()"}},
		{true, []string{"SET @dbjobs_unreset = NULL"}},
		{true, []string{"LOCK TABLES effects WRITE"}},
		{true, []string{"USE information_schema"}},
		{true, []string{"SET SESSION TRANSACTION READ ONLY"}},
		{true, []string{"SET autocommit = 0"}},
		{false, []string{"SET profiling = 1"}},
		{false, []string{"BEGIN", "INSERT INTO effects VALUES ('rude')"}},
		{false, []string{"SET time_zone = '+05:45'", "SELECT 1 FROM nowhere"}},
	},
	"sqlite": {
		{true, []string{"INSERT INTO effects VALUES ('plain')"}},
		{false, []string{"PRAGMA foreign_keys = OFF"}},
		{false, []string{"PRAGMA synchronous = OFF"}},
		{false, []string{"PRAGMA busy_timeout = 1"}},
		{false, []string{"SELECT 1; PRAGMA busy_timeout = 1"}},
		{false, []string{"CREATE TEMPORARY TABLE effects (what text)"}},
		{false, []string{"ATTACH ':memory:' AS another"}},
		{false, []string{"PRAGMA case_sensitive_like = ON"}},
		{false, []string{"PRAGMA query_only = ON"}},
		{false, []string{"PRAGMA locking_mode = EXCLUSIVE"}},
		{false, []string{"BEGIN", "INSERT INTO effects VALUES ('rude')"}},
	},
}

// seen is a query for the state of a session that a step finds, and the session's number. A session of SQLite has no
// number. There, a view shows the last rowid: zero in a session that was not used before.
var seen = map[string]string{
	"postgres": `SELECT pg_backend_pid(), concat_ws(',', current_user, session_user, current_setting('search_path'), current_setting('TimeZone'),
		current_setting('datestyle'), current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('work_mem'),
		current_setting('default_transaction_isolation'), current_setting('default_transaction_read_only'), current_setting('client_encoding'),
		current_setting('application_name'), current_setting('standard_conforming_strings'), coalesce(current_setting('my.own', true), 'null'),
		pg_my_temp_schema(), coalesce(to_regclass('scratch')::text, 'no table'), (SELECT count(*) FROM pg_prepared_statements),
		(SELECT count(*) FROM pg_cursors WHERE is_holdable), (SELECT count(*) FROM pg_listening_channels()),
		(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), public.last_number(), 'seeded', random() = %s)`,
	"mariadb": `SELECT CONNECTION_ID(), CONCAT_WS(',', @@sql_mode, @@time_zone, @@autocommit, @@character_set_client, @@character_set_results,
		@@collation_connection, @@collation_database, COALESCE(@kept, 'none'), @dbjobs_unreset, IS_USED_LOCK(CONCAT(DATABASE(), ' session')) IS NULL,
		IS_USED_LOCK(CONCAT(DATABASE(), ' hidden')) IS NULL, @@sql_select_limit, @@completion_type, @@foreign_key_checks, DATABASE(), LAST_INSERT_ID(), @@last_insert_id,
		FOUND_ROWS(), ROW_COUNT(), UNIX_TIMESTAMP() > 1000, @@insert_id, (SELECT n FROM past), 'seeded', RAND() < 0.000001)`,
	"sqlite": `SELECT (SELECT n FROM last_number), 'x' LIKE 'X' || (SELECT group_concat(name) FROM pragma_database_list) ||
		(SELECT foreign_keys FROM pragma_foreign_keys) || (SELECT synchronous > 0 FROM pragma_synchronous) || (SELECT timeout FROM pragma_busy_timeout) ||
		(SELECT query_only FROM pragma_query_only) || (SELECT locking_mode FROM pragma_locking_mode) || (SELECT count(*) FROM sqlite_temp_master)`,
}

var prepareSessions = map[string][]string{
	"postgres": {"CREATE SEQUENCE counter", "CREATE TABLE seen (session int, what text)",
		`CREATE FUNCTION last_number() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN currval('public.counter');
			EXCEPTION WHEN object_not_in_prerequisite_state THEN RETURN 'no number'; END $$`,
		`CREATE FUNCTION hidden() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			PERFORM set_config('TimeZone', 'Asia/Kathmandu', false), pg_advisory_lock(44), nextval('counter'); EXECUTE 'LISTEN anybody'; RETURN 1; END $$`},
	"mariadb": {"CREATE TABLE seen (session int, what varchar(2000))",
		"CREATE VIEW past AS SELECT COUNT(*) AS n FROM information_schema.profiling",
		"CREATE PROCEDURE hidden() BEGIN SET time_zone = '+05:45', @kept = 2; DO GET_LOCK(CONCAT(DATABASE(), ' hidden'), 0); END"},
	"sqlite": {"CREATE TABLE seen (session int, what text)", "CREATE VIEW last_number AS SELECT last_insert_rowid() AS n"},
}

// stepper executes steps one after the other. If the session is used again, each step gets the session of the step
// before.
type stepper struct {
	t *testing.T
	d *storetest.DB
	x *executor.SQL
	r executor.Request

	spec executor.SQLSpec // but for the statements
}

func newStepper(t *testing.T, d *storetest.DB, s *store.Store) stepper {
	t.Helper()
	x, err := executor.NewSQL(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	login, err := s.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stepper{t: t, d: d, x: x, r: executor.Request{Task: &store.Task{Job: store.Job{Owner: login}}}}
}

func (s stepper) step(statements ...string) error {
	s.t.Helper()
	return s.stepWithin(s.t.Context(), statements...)
}

func (s stepper) stepWithin(ctx context.Context, statements ...string) error {
	s.t.Helper()
	s.spec.SQL = executor.Texts(statements...)
	spec, err := json.Marshal(s.spec)
	if err != nil {
		s.t.Fatal(err)
	}
	s.r.Spec = spec
	_, err = s.x.Execute(ctx, s.r)
	return err
}

// look executes a step that records the state of its session, and returns it.
func (s stepper) look(facts string) (session int, what string) {
	s.t.Helper()
	if err := s.step("INSERT INTO seen " + facts); err != nil {
		s.t.Fatalf("a step that follows: %v", err)
	}
	if err := s.d.SQL.QueryRow("SELECT session, what FROM seen").Scan(&session, &what); err != nil {
		s.t.Fatal(err)
	}
	s.d.Exec(s.t, "DELETE FROM seen")
	return session, what
}

// Whatever a step does to its session, the next step finds one like a new session, also if it is the same session. The
// test checks that it is the same where that is promised. Otherwise the test would prove nothing.
func TestSessionIsAsNewForTheNextStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		testSessions(t, d, func(s stepper) error { return s.step("INSERT INTO effects VALUES ('polite')") })
	})
}

// On PostgreSQL, a session keeps its plans from the first record of an atomic step on. Everything else in it is like in a new session.
func TestSessionThatKeepsPlansIsAsNew(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	record := recordsOf(t, d)
	testSessions(t, d, func(s stepper) error {
		d.Exec(t, "UPDATE dbjobs.attempts SET state = 'running', finished_at = NULL")
		s.spec.Atomic, s.r.EndIn = true, record
		return s.step("INSERT INTO effects VALUES ('recorded')")
	})
}

// testSessions lets steps do all of rudes to their sessions. Before each of them, a polite step uses the session.
func testSessions(t *testing.T, d *storetest.DB, polite func(stepper) error) {
	t.Helper()
	for _, text := range append([]string{"CREATE TABLE effects (what varchar(500))"}, prepareSessions[d.Engine]...) {
		d.Exec(t, text)
	}
	facts := storetest.Words(d.Server, seen[d.Engine])
	role := ""
	if d.Engine == "postgres" {
		role = anotherRole(t, d)
		var seeded string
		if err := d.SQL.QueryRow("SELECT random() FROM (SELECT setseed(0.5)) s").Scan(&seeded); err != nil {
			t.Fatal(err)
		}
		facts = fmt.Sprintf(facts, seeded)
	}
	s := newStepper(t, d, d.Store)
	var together []string
	for _, c := range rudes[d.Engine] {
		before, want := s.look(facts)
		if err := polite(s); err != nil {
			t.Fatal(err)
		}
		c.sql = slices.Clone(c.sql)
		for i, text := range c.sql {
			c.sql[i] = storetest.Words(d.Server, strings.ReplaceAll(text, "another_role", role))
		}
		err := s.step(c.sql...)
		after, got := s.look(facts)
		if want != got {
			t.Errorf("%q (%v): the next step finds\n%s, not\n%s", c.sql, err, got, want)
		}
		if d.Engine == "sqlite" {
			before, after = 1, min(1, after)
		}
		if kept := before == after; kept != c.kept {
			t.Errorf("%q (%v): the next step gets the same session: %v", c.sql, err, kept)
		}
		if err == nil && c.kept {
			together = append(together, c.sql...)
		}
	}
	before, want := s.look(facts)
	err := s.step(together...)
	after, got := s.look(facts)
	if got != want {
		t.Errorf("after all of it (%v) the next step finds\n%s, not\n%s", err, got, want)
	}
	if d.Engine != "sqlite" && (err != nil || before != after) {
		t.Errorf("after all of it (%v) the next step gets the same session: %v", err, before == after)
	}
}

// A role that is set for the login is the role of the session again, instead of the login itself.
func TestSessionHasTheRoleOfItsLoginAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("SQLite has no roles")
		}
		d.Exec(t, "CREATE TABLE seen (session int, what text)")
		login, st := d.As(t)
		role, facts, leave := login+"_role", "SELECT CONNECTION_ID(), CURRENT_ROLE()", "SET ROLE NONE"
		if d.Engine == "postgres" {
			role, facts, leave = anotherRole(t, d), "SELECT pg_backend_pid(), current_user", "RESET ROLE; SET ROLE NONE"
			t.Cleanup(func() { d.Exec(t, "DROP TABLE seen") })
			d.Exec(t, "GRANT INSERT ON seen TO "+role)
			d.Exec(t, "GRANT "+role+" TO "+login)
			d.Exec(t, "ALTER ROLE "+login+" SET role = "+role)
		} else {
			d.Exec(t, "CREATE ROLE "+role)
			t.Cleanup(func() { d.Exec(t, "DROP ROLE "+role) })
			d.Exec(t, "GRANT INSERT ON seen TO "+login)
			if _, err := d.SQL.Exec("GRANT " + role + " TO " + login); err != nil {
				t.Skip("this account may give nobody a role: ", err)
			}
			if err := newStepper(t, d, st).step("SET DEFAULT ROLE " + role); err != nil {
				t.Fatal(err)
			}
		}
		s := newStepper(t, d, st)
		for range 2 {
			before, first := s.look(facts)
			if after, then := s.look(facts); first != role || then != role || before != after {
				t.Errorf("%s in session %d, then %s in session %d; want %s in one", first, before, then, after, role)
			}
			if err := s.step(leave); err != nil {
				t.Error(err)
			}
		}
	})
}

// A session that the server has ended while it waited fails no step. Neither does a session that the server ends
// because it is idle.
func TestSessionThatHasEndedFailsNoStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		number, end, count := "SELECT pg_backend_pid(), ''", "SELECT pg_terminate_backend(%d)", "SELECT count(*) FROM pg_stat_activity WHERE pid = %d"
		switch d.Engine {
		case "sqlite":
			t.Skip("SQLite has no server")
		case "mariadb":
			number, end, count = "SELECT CONNECTION_ID(), ''", "KILL SOFT CONNECTION %d", "SELECT count(*) FROM information_schema.processlist WHERE id = %d"
		}
		d.Exec(t, "CREATE TABLE seen (session int, what text)")
		s := newStepper(t, d, d.Store)
		before, _ := s.look(number)
		for d.Int(t, fmt.Sprintf(count, before)) > 0 {
			_, _ = d.SQL.Exec(fmt.Sprintf(end, before)) // the statement may return the error that the session has ended
		}
		if after, _ := s.look(number); after == before {
			t.Errorf("session %d goes on", after)
		}
	})
}

// anotherRole makes a role that the test's login may take.
func anotherRole(t *testing.T, d *storetest.DB) string {
	t.Helper()
	login, _ := d.As(t)
	return login
}

// From the second or third step on, the session of a step is ready before the step. It is the session of the step
// before, after a reset. If an engine cannot reset sessions, it is another one that was opened while the step before
// ended.
func TestSessionIsThereBeforeItsStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		sessions, err := d.JobSessions(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sessions.Close()
		list, kept := []string{"SELECT 1"}, 0
		for range 20 { // some may come too late on a busy machine
			s, err := sessions.Take(t.Context(), list)
			if err != nil {
				t.Fatal(err)
			}
			if s.Kept() {
				kept++
			}
			_, err = s.Conn.ExecContext(t.Context(), list[0])
			s.Release(err == nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		if kept == 0 {
			t.Error("each was opened for its step")
		}
	})
}
