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

// TestAKilledCallLeavesNoTransaction: on MySQL no handler of a routine runs if the call is killed, so its transaction is
// open. The next call of the session ends that transaction: it takes effect by itself, and the locks are gone.
func TestAKilledCallLeavesNoTransaction(t *testing.T) {
	const run = "0195a3c0-0000-7000-8000-000000000001"
	lockJob := "SELECT id FROM dbjobs_jobs WHERE name = 'a' FOR UPDATE"
	lockTaken := "SELECT id FROM dbjobs_runs FORCE INDEX (runs_queued) WHERE queued_in IS NULL FOR UPDATE" // where take moves its run to
	cases := []struct {
		lock         string
		killed, next call
		one          string // what there is one row of then, for each session
	}{
		{lockJob, routine("alter_job", "a", `{"priority": 5}`), routine("pause", "b"), "dbjobs_pauses"},
		{lockJob, routine("alter_job", "a", `{"priority": 5}`), routine("take", "reports"), "dbjobs_runs WHERE queue = 'reports' AND state = 'running'"},
		{lockJob, routine("alter_job", "a", `{"priority": 5}`), routine("extend", run, 1), "dbjobs_runs WHERE lease_until > UTC_TIMESTAMP(6)"},
		{lockJob, routine("alter_job", "a", `{"priority": 5}`), routine("finish", run, 1), "dbjobs_runs WHERE state = 'succeeded'"},
		{lockTaken, routine("take", "reports"), routine("take", "reports"), "dbjobs_runs WHERE queue = 'reports' AND state = 'running'"},
	}
	for _, engine := range withRoutines(t) {
		if storetest.Dialect(engine) != "mariadb" { // a function is in the statement of its caller
			continue
		}
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/%s then %s", engine, c.killed.name, c.next.name), func(t *testing.T) {
				t.Parallel()
				d := storetest.Open(t, engine, store.Options{Clock: time.Now})
				for _, before := range []call{routine("create_job", "a", "SELECT 1"), routine("create_job", "b", "SELECT 1", nil, `{"queue": "reports"}`), routine("run_now", "b")} {
					if err := before.on(d); err != nil {
						t.Fatal(before, err)
					}
				}
				d.Exec(t, "UPDATE dbjobs_runs SET state = 'queued'")
				d.Exec(t, "INSERT INTO dbjobs_runs (id, job_id, occurrence, state, fence, lease_until) SELECT '"+run+"', id, 'now:1', 'running', 1, created_at FROM dbjobs_jobs WHERE name = 'a'")
				other, err := d.SQL.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = other.Rollback() }() // after the rollback below it does nothing
				if _, err := other.Exec(c.lock); err != nil {
					t.Fatal(err)
				}
				mine, err := d.SQL.Conn(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				defer mine.Close()
				var id int64
				if err := mine.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
					t.Fatal(err)
				}
				do := func(c call) error {
					text, args := c.text(engine)
					_, err := mine.ExecContext(context.Background(), text, args...)
					return err
				}
				ended := make(chan error)
				go func() { ended <- do(c.killed) }()
				waits := fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d AND (info LIKE '%%FOR UPDATE' OR info LIKE 'UPDATE dbjobs_runs r SET%%')", id)
				for n := 0; n < 50; n++ { // it stays at the statement that waits
					time.Sleep(5 * time.Millisecond)
					if d.Int(t, waits) == 0 {
						n = 0
					}
				}
				d.Exec(t, fmt.Sprintf("KILL QUERY %d", id))
				if err := <-ended; err == nil {
					t.Fatal("the call was not killed")
				}
				if err := other.Rollback(); err != nil {
					t.Fatal(err)
				}
				if err := do(c.next); err != nil {
					t.Fatal(err)
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM "+c.one); n != 1 {
					t.Errorf("after %v there are %d of %s for other sessions, want 1", c.next, n, c.one)
				}
				if _, err := d.SQL.Exec("SELECT id FROM dbjobs_installation FOR UPDATE NOWAIT"); err != nil {
					t.Errorf("the turn of those who edit is not free: %v", err)
				}
			})
		}
	}
}
