package main

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// meanwhile is a call of a routine in a transaction that began before another session changed something.
type meanwhile struct {
	name    string
	by      any // what the other session does: a call, or a statement
	call    call
	refused string // with this SQLSTATE; empty: it is not
	one     string // what there is one row of then
	reads   bool   // the call only reads what has changed
}

var meanwhiles = []meanwhile{
	{"a schedule", routine("alter_schedule", "n", `{"rule": "every 7h"}`), routine("alter_schedule", "n", `{"description": "mine"}`), "",
		"{schedules} WHERE name = 'n' AND rule = 'every 7h' AND description = 'mine'", false},
	{"a schedule of another name", "UPDATE {schedules} SET name = 'other' WHERE name = 'n'", routine("alter_schedule", "n", `{"description": "mine"}`), "JB001",
		"{schedules} WHERE name = 'other' AND description = ''", false},
	{"schedules that a job uses", routine("add_job_schedule", "a", "n"), routine("drop_unused_schedules"), "", "{schedules} WHERE name = 'n'", true},
	{"schedules of a job", routine("add_job_schedule", "a", "n"), routine("add_job_schedule", "a", "m"), "",
		"{jobs} WHERE name = 'a' AND 2 = (SELECT COUNT(*) FROM {job_schedules} l WHERE l.job_id = {jobs}.id)", false},
	{"a job", routine("alter_job", "a", `{"timeout": "5m"}`), routine("alter_job", "a", `{"priority": 5}`), "",
		"{jobs} WHERE name = 'a' AND timeout_ms = 300000 AND priority = 5", false},
	{"a job that is removed", routine("drop_job", "a"), routine("alter_job", "a", `{"priority": 5}`), "JB001", "{jobs} WHERE name = 'a' AND priority = 0", false},
	{"a job of another name", routine("rename_job", "a", "y"), routine("rename_job", "a", "z"), "JB001", "{jobs} WHERE name = 'y'", false},
	{"a run of a job that is removed", routine("drop_job", "a"), routine("run_now", "a"), "JB001", "{jobs} j WHERE j.name = 'a' AND 0 = (SELECT COUNT(*) FROM {runs} r WHERE r.job_id = j.id)", false},
	{"a run of a job of another name", routine("rename_job", "a", "y"), routine("run_now", "a"), "JB001", "{jobs} j WHERE j.name = 'y' AND 0 = (SELECT COUNT(*) FROM {runs} r WHERE r.job_id = j.id)", false},
	{"a pause of a job that is removed", routine("drop_job", "a"), routine("pause", "a"), "JB001", "{pauses}", false},
	{"a pause of a job of another name", routine("rename_job", "a", "y"), routine("pause", "a"), "JB001", "{pauses}", false},
	{"a run of a job that plain SQL removes", "UPDATE {jobs} SET removed_at = created_at WHERE name = 'a'", routine("run_now", "a"), "JB001",
		"{jobs} j WHERE j.name = 'a' AND 0 = (SELECT COUNT(*) FROM {runs} r WHERE r.job_id = j.id)", false},
	{"a pause of a job that plain SQL renames", "UPDATE {jobs} SET name = 'y' WHERE name = 'a'", routine("pause", "a"), "JB001", "{pauses}", false},
	{"a pause of a schedule that is removed", routine("drop_schedule", "n"), routine("pause", "n", "schedule"), "JB001", "{pauses}", false},
	{"a pause of a schedule of another name", "UPDATE {schedules} SET name = 'other' WHERE name = 'n'", routine("pause", "n", "schedule"), "JB001", "{pauses}", false},
	{"steps", routine("alter_step", "a", "step 1", `{"name": "first"}`), routine("add_step", "a", "second", "SELECT 2"), "",
		"{steps} s WHERE s.name = 'first' AND 2 = (SELECT COUNT(*) FROM {steps} o WHERE o.job_id = s.job_id)", false},
	{"predecessors", routine("alter_job", "a", `{"after": null}`), routine("alter_job", "a", `{"after": "b"}`), "", "{job_after}", false},
	{"a circle", routine("alter_job", "b", `{"after": "c"}`), routine("alter_job", "c", `{"after": "a"}`), "JB003", "{job_after} WHERE job_id = (SELECT id FROM {jobs} WHERE name = 'b')", true},
	{"a new run of a job", routine("run_now", "a"), routine("abort", "a"), "", "{runs} WHERE cancel_at IS NOT NULL", false},
	{"the step of a run", "UPDATE {runs} SET step = 2", routine("retry", "b#1"), "", "{runs} WHERE state = 'waiting' AND step = 2", false},
	{"a pause", routine("resume", "m", "schedule"), routine("pause", "m", "schedule"), "", "{pauses} WHERE resumed_at IS NULL", false},
	{"the state of a run", "UPDATE {runs} SET state = 'waiting'", routine("cancel", "b#1"), "", "{runs} WHERE cancel_at IS NOT NULL", false},
}

// tables writes the names of tables, such as {jobs}, as they are on the engine.
func (m meanwhile) tables(d *storetest.DB, text string) string {
	for _, name := range []string{"schedules", "jobs", "steps", "job_schedules", "job_after", "runs", "pauses"} {
		text = strings.ReplaceAll(text, "{"+name+"}", d.Table(name))
	}
	return text
}

// happens makes the jobs, begins a transaction of the session, and changes something by another session.
func (m meanwhile) happens(t *testing.T, d *storetest.DB, session *sql.Conn, begin string) {
	for _, before := range []call{
		routine("create_schedule", "n", "every 5h"), routine("create_schedule", "m", "every 9h"),
		routine("create_job", "b", nil, nil, `{"steps": [{"sql": "SELECT 1"}, {"sql": "SELECT 2"}]}`),
		routine("create_job", "a", "SELECT 1", nil, `{"after": "b"}`), routine("create_job", "c", "SELECT 1"), routine("run_now", "b"), routine("pause", "m", "schedule"),
	} {
		if err := before.on(d); err != nil {
			t.Fatal(before, err)
		}
	}
	d.Exec(t, m.tables(d, "UPDATE {runs} SET number = 1, state = 'failed', settled_at = created_at"))
	d.Exec(t, "CREATE TABLE kept (n int)")
	for _, begin := range []string{begin, "SELECT COUNT(*) FROM {jobs}", "INSERT INTO kept VALUES (1)"} {
		if _, err := session.ExecContext(t.Context(), m.tables(d, begin)); err != nil {
			t.Fatal(begin, err)
		}
	}
	switch by := m.by.(type) {
	case call:
		if err := by.on(d); err != nil {
			t.Fatal(by, err)
		}
	case string:
		d.Exec(t, m.tables(d, by))
	}
}

// TestRoutinesChangeWhatIsThereNow: a transaction of the caller may see the database as it was when the transaction
// began. A routine that is called in it changes what is there now, and takes back nothing that others have committed.
func TestRoutinesChangeWhatIsThereNow(t *testing.T) {
	for _, engine := range withRoutines(t) {
		tried := meanwhiles
		if engine == "postgres" && !prove.Whole() { // there, each statement sees what is there when it begins
			tried = meanwhiles[:1]
		}
		for _, m := range tried {
			t.Run(engine+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				d := storetest.Open(t, engine, store.Options{Clock: time.Now})
				session := sessionOf(t, d, "OFF")
				m.happens(t, d, session, "BEGIN")
				text, args := m.call.text(d.Server)
				if _, err := session.ExecContext(t.Context(), text, args...); (err != nil || m.refused != "") && sqlState(err) != m.refused {
					t.Fatalf("%v: %v, want the state %q", m.call, err, m.refused)
				}
				if _, err := session.ExecContext(t.Context(), "COMMIT"); err != nil {
					t.Fatal(err)
				}
				if n := d.Int(t, m.tables(d, "SELECT COUNT(*) FROM "+m.one)); n != 1 {
					t.Errorf("after %v and %v there are %d of %s, want 1", m.by, m.call, n, m.one)
				}
			})
		}
	}
}

// TestRoutinesInASnapshotThatIsKept: with innodb_snapshot_isolation, MariaDB changes nothing that has changed since the
// transaction of the caller began, and neither does PostgreSQL at REPEATABLE READ. A call that would do so fails with 1020, or 40001,
// and all of the transaction is undone.
func TestRoutinesInASnapshotThatIsKept(t *testing.T) {
	changing := slices.DeleteFunc(slices.Clone(meanwhiles), func(m meanwhile) bool { return m.reads })
	for _, engine := range withRoutines(t) {
		for _, m := range changing {
			if engine == "postgres" && (m.name == "a pause" || m.name == "a new run of a job") {
				continue // the call does not see the row that it would change
			}
			t.Run(engine+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				d := storetest.Open(t, engine, store.Options{Clock: time.Now})
				begin := "BEGIN"
				if d.Engine == "postgres" {
					begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
				} else if !keepsSnapshots(t, d) {
					t.Skip("there is no such setting")
				}
				session := sessionOf(t, d, "ON")
				m.happens(t, d, session, begin)
				changes := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes"))
				text, args := m.call.text(d.Server)
				if _, err := session.ExecContext(t.Context(), text, args...); !hasChanged(err) {
					t.Errorf("%v: %v, want 1020 or 40001", m.call, err)
				}
				if _, err := session.ExecContext(t.Context(), "COMMIT"); err != nil {
					t.Fatal(err)
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM kept"); n != 0 {
					t.Error("what the transaction did before the call is there")
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes")); n != changes {
					t.Errorf("%d changes are on record, want %d", n, changes)
				}
			})
		}
	}
}

// sessionOf is a session of its own, with innodb_snapshot_isolation as given where the server has that.
func sessionOf(t *testing.T, d *storetest.DB, snapshots string) *sql.Conn {
	t.Helper()
	c, err := d.SQL.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if keepsSnapshots(t, d) {
		if _, err := c.ExecContext(t.Context(), "SET innodb_snapshot_isolation = "+snapshots); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// hasChanged reports whether a call failed because a row has changed since the transaction began.
func hasChanged(err error) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && me.Number == 1020 || sqlState(err) == "40001"
}

// keepsSnapshots reports whether the server has innodb_snapshot_isolation.
func keepsSnapshots(t *testing.T, d *storetest.DB) bool {
	t.Helper()
	if d.Engine != "mariadb" {
		return false
	}
	err := d.SQL.QueryRow("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(new(string), new(string))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return err == nil
}

// TestExtendTellsWhoHoldsTheRunNow: a worker whose transaction began before somebody else got its run hears of that. Where
// snapshots are kept, it hears that its transaction is undone, unless the transaction is at READ COMMITTED.
func TestExtendTellsWhoHoldsTheRunNow(t *testing.T) {
	for _, engine := range withRoutines(t) {
		for _, c := range []struct {
			snapshots, isolation string
			undone               bool
		}{{"OFF", "REPEATABLE READ", false}, {"ON", "REPEATABLE READ", true}, {"ON", "READ COMMITTED", false}} {
			t.Run(engine+"/"+c.snapshots+"/"+c.isolation, func(t *testing.T) {
				t.Parallel()
				d := storetest.Open(t, engine, store.Options{Clock: time.Now})
				if c.snapshots == "ON" && !keepsSnapshots(t, d) {
					t.Skip("there is no such setting")
				}
				for _, before := range []call{routine("create_job", "a", "SELECT 1"), routine("run_now", "a")} {
					if err := before.on(d); err != nil {
						t.Fatal(before, err)
					}
				}
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'running', fence = 1, lease_until = created_at")
				worker := sessionOf(t, d, c.snapshots)
				for _, begin := range []string{"SET TRANSACTION ISOLATION LEVEL " + c.isolation, "BEGIN"} {
					if _, err := worker.ExecContext(t.Context(), begin); err != nil {
						t.Fatal(err)
					}
				}
				var run string
				if err := worker.QueryRowContext(t.Context(), "SELECT id FROM "+d.Table("runs")).Scan(&run); err != nil {
					t.Fatal(err)
				}
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET fence = 2")
				text, args := routine("extend", run, 1).text(engine)
				var held bool
				err := worker.QueryRowContext(t.Context(), text, args...).Scan(&held, new(any))
				if c.undone && !hasChanged(err) || !c.undone && (err != nil || held) {
					t.Errorf("the old holder gets held = %t, %v", held, err)
				}
			})
		}
	}
}

// TestRenameKeepsOtherHooks: a job that gets other hooks while it is renamed what was its hook, keeps these.
func TestRenameKeepsOtherHooks(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, before := range []call{routine("create_job", "mail", "SELECT 1"), routine("create_job", "page", "SELECT 1"), routine("create_job", "a", "SELECT 1", nil, `{"on": {"failed": "mail"}}`)} {
				if err := before.on(d); err != nil {
					t.Fatal(before, err)
				}
			}
			editor, err := d.SQL.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = editor.Rollback() }() // after Commit it does nothing
			if _, err := editor.Exec("UPDATE " + d.Table("jobs") + " SET on_failed = 'page', on_lost = 'page' WHERE name = 'a'"); err != nil {
				t.Fatal(err)
			}
			renamed := make(chan error)
			go func() { renamed <- routine("rename_job", "mail", "letter").on(d) }()
			time.Sleep(500 * time.Millisecond) // until it waits for the job
			if err := editor.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-renamed; err != nil {
				t.Fatal(err)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("jobs")+" WHERE name = 'a' AND on_failed = 'page' AND on_lost = 'page'"); n != 1 {
				t.Error("the job has lost its new hooks")
			}
		})
	}
}
