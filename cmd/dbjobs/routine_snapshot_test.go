package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestRoutinesChangeWhatIsThereNow: a transaction of the caller may see the database as it was when the transaction
// began. A routine that is called in it changes what is there now, and takes back nothing that others have committed.
func TestRoutinesChangeWhatIsThereNow(t *testing.T) {
	cases := []struct {
		name      string
		meanwhile any // by another session: a call, or a statement
		call      call
		refused   string // with this SQLSTATE; empty: it is not
		one       string // what there is one row of then
	}{
		{"a schedule", routine("alter_schedule", "n", `{"rule": "every 7h"}`), routine("alter_schedule", "n", `{"description": "mine"}`), "",
			"{schedules} WHERE name = 'n' AND rule = 'every 7h' AND description = 'mine'"},
		{"a schedule of another name", "UPDATE {schedules} SET name = 'other' WHERE name = 'n'", routine("alter_schedule", "n", `{"description": "mine"}`), "JB001",
			"{schedules} WHERE name = 'other' AND description = ''"},
		{"schedules that a job uses", routine("add_job_schedule", "a", "n"), routine("drop_unused_schedules"), "", "{schedules} WHERE name = 'n'"},
		{"schedules of a job", routine("add_job_schedule", "a", "n"), routine("add_job_schedule", "a", "m"), "",
			"{jobs} WHERE name = 'a' AND 2 = (SELECT COUNT(*) FROM {job_schedules} l WHERE l.job_id = {jobs}.id)"},
		{"a job", routine("alter_job", "a", `{"timeout": "5m"}`), routine("alter_job", "a", `{"priority": 5}`), "",
			"{jobs} WHERE name = 'a' AND timeout_ms = 300000 AND priority = 5"},
		{"a job that is removed", routine("drop_job", "a"), routine("alter_job", "a", `{"priority": 5}`), "JB001", "{jobs} WHERE name = 'a' AND priority = 0"},
		{"a job of another name", routine("rename_job", "a", "y"), routine("rename_job", "a", "z"), "JB001", "{jobs} WHERE name = 'y'"},
		{"steps", routine("alter_step", "a", "step 1", `{"name": "first"}`), routine("add_step", "a", "second", "SELECT 2"), "",
			"{steps} s WHERE s.name = 'first' AND 2 = (SELECT COUNT(*) FROM {steps} o WHERE o.job_id = s.job_id)"},
		{"predecessors", routine("alter_job", "a", `{"after": null}`), routine("alter_job", "a", `{"after": "b"}`), "", "{job_after}"},
		{"a circle", routine("alter_job", "b", `{"after": "c"}`), routine("alter_job", "c", `{"after": "a"}`), "JB003", "{job_after} WHERE job_id = (SELECT id FROM {jobs} WHERE name = 'b')"},
		{"a new run of a job", routine("run_now", "a"), routine("abort", "a"), "", "{runs} WHERE cancel_at IS NOT NULL"},
		{"the step of a run", "UPDATE {runs} SET step = 2", routine("retry", "b#1"), "", "{runs} WHERE state = 'waiting' AND step = 2"},
		{"a pause", routine("resume", "m", "schedule"), routine("pause", "m", "schedule"), "", "{pauses} WHERE resumed_at IS NULL"},
		{"the state of a run", "UPDATE {runs} SET state = 'waiting'", routine("cancel", "b#1"), "", "{runs} WHERE cancel_at IS NOT NULL"},
	}
	for _, engine := range withRoutines(t) {
		tried := cases
		if engine == "postgres" && !prove.Whole() { // there, each statement sees what is there when it begins
			tried = cases[:1]
		}
		for _, c := range tried {
			t.Run(engine+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				d := storetest.Open(t, engine, store.Options{Clock: time.Now})
				tables := func(text string) string {
					for _, name := range []string{"schedules", "jobs", "steps", "job_schedules", "job_after", "runs", "pauses"} {
						text = strings.ReplaceAll(text, "{"+name+"}", d.Table(name))
					}
					return text
				}
				for _, before := range []call{
					routine("create_schedule", "n", "every 5h"), routine("create_schedule", "m", "every 9h"),
					routine("create_job", "b", nil, nil, `{"steps": [{"sql": "SELECT 1"}, {"sql": "SELECT 2"}]}`),
					routine("create_job", "a", "SELECT 1", nil, `{"after": "b"}`), routine("create_job", "c", "SELECT 1"), routine("run_now", "b"), routine("pause", "m", "schedule"),
				} {
					if err := before.on(d); err != nil {
						t.Fatal(before, err)
					}
				}
				d.Exec(t, tables("UPDATE {runs} SET number = 1, state = 'failed', settled_at = created_at"))
				mine, err := d.SQL.Conn(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				defer mine.Close()
				run := func(text string, args ...any) error {
					_, err := mine.ExecContext(t.Context(), text, args...)
					return err
				}
				for _, begin := range []string{"BEGIN", "SELECT COUNT(*) FROM {jobs}"} {
					if err := run(tables(begin)); err != nil {
						t.Fatal(begin, err)
					}
				}
				switch by := c.meanwhile.(type) {
				case call:
					if err := by.on(d); err != nil {
						t.Fatal(by, err)
					}
				case string:
					d.Exec(t, tables(by))
				}
				text, args := c.call.text(d.Server)
				if err := run(text, args...); (err != nil || c.refused != "") && sqlState(err) != c.refused {
					t.Fatalf("%v: %v, want the state %q", c.call, err, c.refused)
				}
				if err := run("COMMIT"); err != nil {
					t.Fatal(err)
				}
				if n := d.Int(t, tables("SELECT COUNT(*) FROM "+c.one)); n != 1 {
					t.Errorf("after %v and %v there are %d of %s, want 1", c.meanwhile, c.call, n, c.one)
				}
			})
		}
	}
}

// TestExtendTellsWhoHoldsTheRunNow: a worker whose transaction began before somebody else got its run hears of that.
func TestExtendTellsWhoHoldsTheRunNow(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, before := range []call{routine("create_job", "a", "SELECT 1"), routine("run_now", "a")} {
				if err := before.on(d); err != nil {
					t.Fatal(before, err)
				}
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'running', fence = 1, lease_until = created_at")
			worker, err := d.SQL.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = worker.Rollback() }()
			var run string
			if err := worker.QueryRow("SELECT id FROM " + d.Table("runs")).Scan(&run); err != nil {
				t.Fatal(err)
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET fence = 2")
			text, args := routine("extend", run, 1).text(engine)
			var held bool
			if err := worker.QueryRow(text, args...).Scan(&held, new(any)); err != nil || held {
				t.Errorf("the old holder gets held = %t, %v", held, err)
			}
		})
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
