package tick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A year of a job's history that is no longer kept goes in parts, one with each pass, and no pass deletes more.
func TestAYearOfHistoryIsDeletedInParts(t *testing.T) {
	const year, most = 365 * 24, 2000 // hourly runs; a thousand that are too old and a thousand that are too many
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: everyFiveMinutes(), Keep: store.Keep{Runs: 10}, Steps: []store.Step{step("", "SELECT 1")}}}})
		run(t, d)
		id := map[string]string{
			"sqlite":   "'00000000-0000-7000-8000-' || printf('%012d', i)",
			"postgres": "('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid",
			"mariadb":  "CONCAT('00000000-0000-7000-8000-', LPAD(i, 12, '0'))",
		}[d.Engine]
		occurrence := map[bool]string{true: "CONCAT('now:', i)", false: "'now:' || i"}[d.Engine == "mariadb"]
		past, future := literal(d, d.Clock.Now().Add(-time.Hour)), literal(d, d.Clock.Now().Add(time.Hour*1000))
		if d.Engine == "postgres" { // a literal within CASE is text
			past, future = past+"::timestamptz", future+"::timestamptz"
		}
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, number, occurrence, state, ready_at, created_at, finished_at, settled_at, expires_at) "+
			"SELECT %s, (SELECT id FROM %s), i, %s, 'succeeded', %s, %s, %s, %s, CASE WHEN i %% 2 = 0 THEN %s ELSE %s END FROM %s",
			d.Table("runs"), id, d.Table("jobs"), occurrence, past, past, past, past, past, future, storetest.Numbers(year)))
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at) SELECT id, 1, 1, 'step 1', 1, 1, 'h', 'succeeded', %s FROM %s",
			d.Table("attempts"), past, d.Table("runs")))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET runs_made = %d", d.Table("plans"), year))
		d.Analyze(t)
		left, passes := year, 0
		for ; left > 10 && passes < 20; passes++ {
			d.Clock.Add(5 * time.Minute)
			r := run(t, d)
			now := d.Int(t, "SELECT count(*) FROM "+d.Table("runs"))
			if gone := left + r.Made - now; gone > most || gone <= 0 || gone != r.Pruned {
				t.Fatalf("pass %d deleted %d runs and says %d", passes, gone, r.Pruned)
			}
			left = now
		}
		if attempts := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); left > 11 || attempts != left {
			t.Errorf("after %d passes %d runs and %d attempts are left", passes, left, attempts)
		}
	})
}
