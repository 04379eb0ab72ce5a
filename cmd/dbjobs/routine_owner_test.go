package main

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestRoutinesReachTheCallersJobs: in an installation with owners, an ordinary login may call every routine. It reaches
// its own jobs with them, and no job of another login. The inner routines, which serve the others, reach no job of
// another login, either.
func TestRoutinesReachTheCallersJobs(t *testing.T) {
	t.Parallel()
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			dbjobs(t, d.URL, "", exitDone, "migrate", "--owners")
			ann, asAnn := d.Account(t, "user")
			_, asBob := d.Account(t, "user")
			anns, bobs := *d, *d
			anns.SQL, bobs.SQL = storetest.OpenSQL(t, asAnn), storetest.OpenSQL(t, asBob)
			for _, c := range []call{
				routine("create_schedule", "often", "every 5m"), routine("create_job", "tidy", "SELECT 1", nil, `{"schedules": "often", "queue": "reports"}`), routine("run_now", "tidy"),
				routine("pause", "tidy"), routine("alter_job", "tidy", `{"priority": 2}`),
			} {
				if err := c.on(&anns); err != nil {
					t.Fatalf("ann: %v: %v", c, err)
				}
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'queued', queue = 'reports'")
			before := contentOf(t, d)
			job := ann + "/tidy"
			for _, c := range []call{
				routine("alter_job", job, `{"priority": 3}`), routine("rename_job", job, "mine"), routine("drop_job", job), routine("add_step", job, "more", "SELECT 2"),
				routine("alter_step", job, "step 1", `{"sql": "SELECT 3"}`), routine("drop_step", job, "step 1"), routine("drop_job_schedule", job, "often"), routine("add_job_schedule", job, "often"),
				routine("pause", job), routine("resume", job), routine("enable", job), routine("disable", job), routine("abort", job), routine("run_now", job), routine("cancel", job), routine("retry", job),
				routine("alter_schedule", "often", `{"rule": "every 1m"}`), routine("drop_schedule", "often", true), routine("pause", "often", "schedule"),
				routine("pause", nil, "all"), routine("create_job", "mine", "SELECT 1", nil, `{"owner": "`+ann+`"}`), routine("create_job", "mine", "SELECT 1", nil, `{"after": "`+job+`"}`),
				routine("create_job", "mine", "SELECT 1", nil, `{"on": {"failed": "`+job+`"}}`), routine("create_job", "mine", "SELECT 1", nil, `{"schedules": "often"}`),
			} {
				if err := c.on(&bobs); err == nil {
					t.Errorf("bob: %v is done", c)
				}
			}
			if after := contentOf(t, d); after != before {
				t.Errorf("bob leaves\n%s", onlyIn(after, before))
			}
			if err := routine("pause", nil, "all").on(d); err != nil {
				t.Fatal(err)
			}
			if err := routine("resume", nil, "all").on(&bobs); sqlState(err) != "JB004" || !strings.Contains(err.Error(), "concerns jobs of other logins") {
				t.Errorf("bob ends the pause of all: %v", err)
			}
			if err := routine("resume", nil, "all").on(d); err != nil {
				t.Fatal(err)
			}
			id := ""
			if err := d.SQL.QueryRow("SELECT id FROM " + d.Table("runs")).Scan(&id); err != nil {
				t.Fatal(err)
			}
			text, args := routine("take", "reports").text(engine)
			if err := bobs.SQL.QueryRow(text, args...).Scan(new(any)); !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("bob takes ann's run: %v", err)
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'running', fence = 1")
			before = contentOf(t, d)
			for _, c := range []call{routine("finish", id, 1), routine("extend", id, 1)} {
				if err := c.on(&bobs); err != nil {
					t.Errorf("bob: %v: %v", c, err)
				}
			}
			// The inner routines have the rights of the caller.
			inner := []string{"SELECT dbjobs.put_job('x', 1, '{\"priority\": 9}')", "SELECT dbjobs.set_enabled(1, false, 'x', 'x')", "SELECT dbjobs.remove_schedule(1, 'x')"}
			if storetest.Dialect(engine) != "postgres" {
				inner = []string{"CALL dbjobs_put_job('x', 1, '{\"priority\": 9}')", "CALL dbjobs_set_enabled(1, 'x', false, 'x', 'x')", "CALL dbjobs_log_change('job', 1, 'x', 'x', 'x', NULL, NULL)"}
			}
			for _, statement := range inner {
				_, _ = bobs.SQL.Exec(statement) // a call that finds no row of the caller may do nothing, with or without an error
			}
			if after := contentOf(t, d); after != before {
				t.Errorf("bob leaves\n%s\ninstead of\n%s", onlyIn(after, before), onlyIn(before, after))
			}
		})
	}
}
