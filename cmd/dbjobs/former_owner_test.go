package main

import (
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// A transaction of bob's that began while a job was his sees it so until its end. No routine changes the job in it after an
// administrator has given the job to ann: her login would execute what he writes.
func TestAFormerOwnerChangesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" {
			t.Skip("has row security, or knows no logins")
		}
		if err := d.SetOwners(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		ann, _ := d.Account(t, "user")
		bob, asBob := d.Account(t, "user")
		db := storetest.OpenSQL(t, asBob)
		his := *d
		his.SQL = db
		for _, c := range []call{
			routine("create_schedule", "s", "every 5h"), routine("create_job", "x", "SELECT 1", "s"), routine("run_now", "x"), routine("pause", "x"),
		} {
			if err := c.on(&his); err != nil {
				t.Fatal(c, err)
			}
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET number = 1, state = 'failed', settled_at = created_at")
		for _, c := range []call{
			routine("alter_step", "x", "step 1", `{"sql": "GRANT ALL"}`), routine("add_step", "x", "more", "SELECT 2"), routine("alter_job", "x", `{"priority": 5}`), routine("rename_job", "x", "y"),
			routine("drop_job", "x"), routine("run_now", "x", `{"day": "1"}`), routine("disable", "x"), routine("abort", "x"), routine("abort", "x", true), routine("retry", "x#1"),
			routine("cancel", "x#1"), routine("resume", "x"), routine("alter_schedule", "s", `{"rule": "every 1h"}`), routine("pause", "s", "schedule"),
		} {
			session, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := session.ExecContext(t.Context(), "START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"jobs", "schedules"} {
				d.Exec(t, "UPDATE "+d.Table(table)+" SET owner = '"+ann+"' WHERE name IN ('x', 's')")
			}
			text, args := c.text(d.Server)
			_, err = session.ExecContext(t.Context(), text, args...)
			if sqlState(err) != "JB001" && !hasChanged(err) {
				t.Errorf("%v: %v", c, err)
			}
			if _, err := session.ExecContext(t.Context(), "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			session.Close()
			for _, table := range []string{"jobs", "schedules"} {
				d.Exec(t, "UPDATE "+d.Table(table)+" SET owner = '"+bob+"'")
			}
		}
	})
}
