package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// sqlState returns the SQLSTATE of a server's error.
func sqlState(err error) string {
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	switch {
	case errors.As(err, &pe):
		return pe.Code
	case errors.As(err, &me) && slices.Contains([]uint16{1265, 1366}, me.Number): // a value of a wrong type, which has different states
		return "22018"
	case errors.As(err, &me):
		return string(me.SQLState[:])
	}
	return fmt.Sprintf("none: %v", err)
}

// plausible are arguments with which each routine does something.
var plausible = []call{
	routine("create_schedule", "new", "every 5m", "UTC", `{}`, "why"),
	routine("alter_schedule", "often", `{"rule": "every 7m"}`, "why"),
	routine("drop_schedule", "spare", false, "why"),
	routine("drop_unused_schedules", "why"),
	routine("create_job", "new", "SELECT 1", "every 5m", `{}`, "why"),
	routine("alter_job", "tidy", `{"priority": 3}`, "why"),
	routine("rename_job", "tidy", "neat", "why"),
	routine("drop_job", "tidy", "why"),
	routine("add_step", "tidy", "more", "SELECT 2", `{}`, "step 1", "why"),
	routine("alter_step", "tidy", "step 1", `{"timeout": "5m"}`, "why"),
	routine("drop_step", "tidy", "step 2", "why"),
	routine("add_job_schedule", "tidy", "spare", "why"),
	routine("drop_job_schedule", "tidy", "often", "why"),
	routine("pause", "tidy", "job", nil, "why"),
	routine("resume", "held", "job", false, "why"),
	routine("enable", "off", "why"),
	routine("disable", "tidy", "why"),
	routine("abort", "tidy", false, "why"),
	routine("run_now", "tidy", `{"a": "b"}`, nil, "key", "why"),
	routine("cancel", "tidy#0195a3c0-0000-7000-8000-000000000001", "why"),
	routine("retry", "failed", "step 1", "why"),
	routine("take", "tick", "me", nil),
	routine("extend", "0195a3c0-0000-7000-8000-000000000001", 1, nil),
	routine("finish", "0195a3c0-0000-7000-8000-000000000001", 1, "failed", "it broke"),
}

// breakingOut are texts that try to get out of their place in a statement, a pattern, a path, or JSON. Each routine
// gets each of them as each argument.
var breakingOut = []string{
	"'", `"`, `\`, "`", "x'; DROP TABLE dbjobs.canary; --", "x\"; DROP TABLE dbjobs_canary; --", "$$; DROP TABLE dbjobs.canary; $$", "') ; DROP TABLE dbjobs_canary ; -- ",
	`{"sql": "'; DROP TABLE dbjobs.canary; --", "name": "' OR 1=1 --"}`, `{"'; DROP TABLE x; --": 1}`, `{"a.b[*]\"": {"$": []}}`, "%s%n",
}

// wrongOptions are for the arguments that are JSON.
var wrongOptions = []string{
	`{"retry": {"x": 1}}`, `{"retry": "soon"}`, `{"timeout": -5}`, `{"priority": 99999999999}`, `{"steps": {}}`, `{"steps": [{"sql": ""}]}`, `{"after": ["tidy", 5]}`, `{"tags": [[1]]}`,
	`{"on": "x"}`, `{"rule": 5}`, `{"sql": [null]}`, `{"not_before": "yesterday"}`, `{"disabled": "yes"}`, `{"overlap": "never"}`, `{"nonexistent": "never"}`, `{"group": "none such"}`, "[]", "null", "{",
}

// wrongValues have a wrong type, or name nothing.
var wrongValues = []string{
	"", "5", "a/b/c", "#", "tidy#", "tidy#1", "\x01", "a\nb", "../..", strings.Repeat("ä", 5000), "0195a3c0-0000-7000-8000-00000000000g", "2026-02-30", "0001-01-01 00:00:00", "infinity", "-1",
}

// hostile returns the texts for an argument on server number e of n. With DBJOBS_PROVE, these are all texts. Otherwise
// they are the texts whose turn it is there: each argument meets some texts on each server, and each text of
// breakingOut on one server.
func hostile(of call, i, e, n int) (turn []string) {
	list := slices.Clone(breakingOut)
	if text, ok := of.args[i].(string); ok && strings.HasPrefix(text, "{") {
		list = append(list, wrongOptions...)
	}
	for k, text := range wrongValues {
		if (k+i)%4 == 0 || prove.Whole() {
			list = append(list, text)
		}
	}
	if prove.Whole() {
		return list
	}
	for k, text := range list {
		if (k+i)%n == e {
			turn = append(turn, text)
		}
	}
	return turn
}

// TestRoutinesStandHostileTexts: each of these texts is tried as each argument of each routine. Either the routine does
// its work, or it refuses the text with a SQLSTATE of the routines, or with one for a value of a wrong type. A refused
// call leaves nothing behind, also in the transaction of a caller. No statement inside a text is run.
func TestRoutinesStandHostileTexts(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^JB00[1-5]$|^22...$`)
	servers := withRoutines(t)
	for e, engine := range servers {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			d.Exec(t, "CREATE TABLE "+d.Table("canary")+" (n integer)")
			for _, c := range []call{
				routine("create_schedule", "often", "every 5m"), routine("create_schedule", "spare", "every 5m"), routine("create_job", "tidy", "SELECT 1", nil, `{"schedules": "often"}`),
				routine("add_step", "tidy", nil, "SELECT 2"), routine("create_job", "held", "SELECT 1"), routine("pause", "held"), routine("create_job", "off", "SELECT 1", nil, `{"disabled": true}`),
				routine("create_job", "failed", "SELECT 1"), routine("run_now", "tidy"),
			} {
				if err := c.on(d); err != nil {
					t.Fatalf("%v: %v", c, err)
				}
			}
			d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state, settled_at) SELECT '0195a3c0-0000-7000-8000-000000000002', id, 'now:1', 'failed', created_at FROM "+d.Table("jobs")+" WHERE name = 'failed'")
			d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state, fence, lease_until) SELECT '0195a3c0-0000-7000-8000-000000000001', id, 'now:2', 'running', 1, created_at FROM "+d.Table("jobs")+" WHERE name = 'tidy'")
			before := contentOf(t, d)
			refused, done := 0, 0
			for _, c := range plausible {
				if err := attempt(t, d, c); err != nil {
					t.Errorf("%v: %v", c, err)
				}
				for i := range arity[c.name] {
					for _, text := range hostile(c, i, e, len(servers)) {
						wrong := call{c.name, slices.Clone(c.args)}
						wrong.args[i] = text
						err := attempt(t, d, wrong)
						if done++; err != nil {
							refused++
						}
						if err == nil && slices.Contains(wrongOptions, text) && strings.HasPrefix(c.name, "alter_") { // nothing else that is given takes their place
							t.Errorf("%s with %.80q as argument %d is not refused", c.name, text, i+1)
						}
						if err != nil && !allowed.MatchString(sqlState(err)) {
							t.Errorf("%s with %.80q as argument %d: %s: %v", c.name, text, i+1, sqlState(err), err)
						}
					}
				}
			}
			if is := contentOf(t, d); is != before {
				t.Errorf("they left\n%s\ninstead of\n%s", onlyIn(is, before), onlyIn(before, is))
			}
			if d.Int(t, "SELECT COUNT(*) FROM "+d.Table("canary")) != 0 || refused < done/4 || refused == done {
				t.Errorf("%d of %d were refused", refused, done)
			}
			// Calls outside of a transaction that fail at their end: the job's row and its step are already written.
			for _, options := range []string{`{"after": "none such"}`, `{"schedules": ["often", "none such"]}`, `{"zone": "UTC"}`} {
				if err := routine("create_job", "half", "SELECT 1", nil, options).on(d); err == nil {
					t.Errorf("create_job with %s is done", options)
				}
			}
			if is := contentOf(t, d); is != before {
				t.Errorf("what was refused left\n%s", onlyIn(is, before))
			}
		})
	}
}

// attempt calls a routine in a transaction that is rolled back. If the routine refuses, the transaction has no effect
// of it at that point.
func attempt(t *testing.T, d *storetest.DB, c call) error {
	t.Helper()
	tx, err := d.SQL.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	text, args := c.text(d.Server)
	counts := "SELECT (SELECT COUNT(*) FROM " + strings.Join([]string{d.Table("jobs"), d.Table("steps"), d.Table("schedules"), d.Table("changes"), d.Table("runs"), d.Table("pauses")}, ") + (SELECT COUNT(*) FROM ") + ")"
	var was, is int
	if storetest.Dialect(d.Server) != "postgres" { // where a transaction goes on after an error
		if err := tx.QueryRow(counts).Scan(&was); err != nil {
			t.Fatal(err)
		}
	}
	_, refusal := tx.Exec(text, args...)
	if refusal != nil && storetest.Dialect(d.Server) != "postgres" {
		if err := tx.QueryRow(counts).Scan(&is); err != nil {
			t.Fatal(err)
		}
		if is != was {
			t.Errorf("%v is refused, and leaves %d rows in the caller's transaction instead of %d", c, is, was)
		}
	}
	return refusal
}

// TestRoutinesKeepLongTexts: a text that is longer than 64 KiB is kept whole, or refused, also where the session of the
// caller is not strict, which cuts an argument that is too long for its type. Only the error of a run is cut.
func TestRoutinesKeepLongTexts(t *testing.T) {
	t.Parallel()
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			conn, err := d.SQL.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if storetest.Dialect(engine) != "postgres" {
				if _, err := conn.ExecContext(t.Context(), "SET sql_mode = ''"); err != nil {
					t.Fatal(err)
				}
			}
			do := func(c call) error {
				text, args := c.text(engine)
				_, err := conn.ExecContext(t.Context(), text, args...)
				return err
			}
			long := "DELETE FROM carts WHERE old" + strings.Repeat(" ", 70_000) + "AND paid"
			for _, c := range []call{routine("create_job", "tidy", long), routine("add_step", "tidy", "more", long)} {
				if err := do(c); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("steps")+" WHERE CONCAT(spec, '') LIKE '%AND paid%'"); n != 2 {
				t.Errorf("%d of 2 steps have the whole statement", n)
			}
			err = do(routine("create_schedule", "often", "every 5m"+strings.Repeat(" ", 70_000)+"until 2027-01-01"))
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("schedules")+" WHERE rule NOT LIKE '%2027-01-01'"); n != 0 {
				t.Errorf("a schedule has a part of its rule: %v", err)
			}
			d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state, fence, lease_until) SELECT '0195a3c0-0000-7000-8000-000000000001', id, 'now:2', 'running', 1, created_at FROM "+d.Table("jobs"))
			if err := routine("finish", "0195a3c0-0000-7000-8000-000000000001", 1, "failed", strings.Repeat("long ", 20_000)).on(d); err != nil {
				t.Errorf("finish: %v", err)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'failed' AND error LIKE 'long long%...' AND CHAR_LENGTH(error) < 4100"); n != 1 {
				t.Errorf("the run has not ended as failed with the beginning of its error")
			}
		})
	}
}

// TestRoutinesReadLengthsInEachSession: a session of PostgreSQL may read backslashes in the texts of the routines, too.
// What is no length of time, and no instant, is refused there as elsewhere.
func TestRoutinesReadLengthsInEachSession(t *testing.T) {
	t.Parallel()
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "tidy", "SELECT 1").on(d); err != nil {
				t.Fatal(err)
			}
			conn, err := d.SQL.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if storetest.Dialect(engine) == "postgres" {
				if _, err := conn.ExecContext(t.Context(), "SET standard_conforming_strings = off"); err != nil {
					t.Fatal(err)
				}
			}
			for _, options := range []string{`{"timeout": "1-5s"}`, `{"timeout": "1 30s"}`, `{"keep": {"age": "3M"}}`, `{"timeout": "1h 30 M"}`, `{"not_after": "2026-12-05T00:00:00x5Z"}`} {
				text, args := routine("alter_job", "tidy", options).text(engine)
				if _, err := conn.ExecContext(t.Context(), text, args...); err == nil {
					t.Errorf("%s is not refused", options)
				}
			}
			text, args := routine("alter_job", "tidy", `{"timeout": "1.5s", "not_after": "2026-12-05T00:00:00.5Z"}`).text(engine)
			if _, err := conn.ExecContext(t.Context(), text, args...); err != nil || d.Int(t, "SELECT timeout_ms FROM "+d.Table("jobs")) != 1500 {
				t.Errorf("what is a length is not read: %v", err)
			}
		})
	}
}
