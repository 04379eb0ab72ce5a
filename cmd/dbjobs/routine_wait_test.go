package main

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestRoutinesWaitForNoOtherJob: a session that has the rows of a job locked holds up no routine for another job.
func TestRoutinesWaitForNoOtherJob(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, before := range []call{
				routine("create_job", "b", "SELECT 1"), routine("create_job", "a", "SELECT 1", "every 5h", `{"after": "b"}`),
				routine("create_job", "other", "SELECT 1", "every 5h"), routine("run_now", "a"), routine("run_now", "other"),
				routine("create_schedule", "n", "every 5h"), routine("create_job", "last", "SELECT 1", nil, `{"tags": ["t"], "schedules": "n"}`),
			} {
				if err := before.on(d); err != nil {
					t.Fatal(before, err)
				}
			}
			d.Exec(t, "INSERT INTO "+d.Table("plans")+" (job_id, owner) SELECT id, owner FROM "+d.Table("jobs"))
			theirs, err := d.SQL.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // otherwise it also locks what is beside its rows
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = theirs.Rollback() }()
			other := d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = 'other'")
			for table, change := range map[string]string{"jobs": "priority = 7 WHERE id", "plans": "streak = 7 WHERE job_id", "steps": "timeout_ms = 7 WHERE job_id",
				"schedules": "description = 'x' WHERE job_id", "runs": "priority = 7 WHERE job_id"} {
				if _, err := theirs.Exec(fmt.Sprintf("UPDATE %s SET %s = %d", d.Table(table), change, other)); err != nil {
					t.Fatal(err)
				}
			}
			mine, err := d.SQL.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer mine.Close()
			patience := map[string]string{"postgres": "SET lock_timeout = '3s'", "mariadb": "SET innodb_lock_wait_timeout = 3"}[storetest.Dialect(engine)]
			if _, err := mine.ExecContext(t.Context(), patience); err != nil {
				t.Fatal(err)
			}
			for _, c := range []call{
				routine("alter_job", "a", `{"priority": 5}`), routine("add_step", "a", "second", "SELECT 2"), routine("alter_step", "a", "second", `{"sql": "SELECT 3"}`),
				routine("drop_step", "a", "second"), routine("pause", "a"), routine("resume", "a"), routine("disable", "a"), routine("enable", "a"), routine("cancel", "a"),
				routine("run_now", "a"), routine("abort", "a"), routine("pause", "t", "tag"), routine("alter_schedule", "n", `{"rule": "every 7h"}`), routine("pause", "n", "schedule"),
				routine("drop_job_schedule", "last", "n"), routine("add_job_schedule", "last", "n"), routine("drop_schedule", "n", true), routine("drop_unused_schedules"),
				routine("create_job", "new", "SELECT 1", "every 5h", `{"on": {"failed": "b"}}`), routine("rename_job", "a", "z"), routine("drop_job", "z"),
			} {
				text, args := c.text(d.Server)
				if _, err := mine.ExecContext(t.Context(), text, args...); err != nil {
					t.Errorf("%v: %v", c, err)
				}
			}
		})
	}
}

// TestWorkersWaitForNoEditor: a worker whose login is not the one that migrated takes, extends and ends its runs, while
// a session that edits has their job locked, the turn of those who edit, and a new pause.
func TestWorkersWaitForNoEditor(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			dbjobs(t, d.URL, "", exitDone, "migrate", "--owners")
			ann, asAnn := d.Account(t, "user")
			worker := storetest.OpenSQL(t, asAnn)
			job := ann + "/report"
			for _, before := range []call{routine("create_job", "report", "SELECT 1", nil, fmt.Sprintf(`{"queue": "reports", "owner": %q}`, ann)), routine("run_now", job)} {
				if err := before.on(d); err != nil {
					t.Fatal(before, err)
				}
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'queued'")
			editor, err := d.SQL.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = editor.Rollback() }()
			for _, c := range []call{routine("alter_job", job, `{"priority": 5}`), routine("pause", job)} {
				text, args := c.text(engine)
				if _, err := editor.Exec(text, args...); err != nil {
					t.Fatal(c, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var id string
			if err := d.SQL.QueryRow("SELECT id FROM " + d.Table("runs")).Scan(&id); err != nil {
				t.Fatal(err)
			}
			for _, c := range []call{routine("take", "reports"), routine("extend", id, 1), routine("finish", id, 1)} {
				text, args := c.text(engine)
				if _, err := worker.ExecContext(ctx, text, args...); err != nil {
					t.Fatalf("%v: %v", c, err)
				}
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded'"); n != 1 {
				t.Errorf("%d runs have ended, want 1", n)
			}
		})
	}
}
