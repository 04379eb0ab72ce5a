package tick_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A year of a job's history that is no longer kept goes in parts, one with each pass, and no pass deletes more. Its gaps
// go likewise, by their age.
func TestAYearOfHistoryIsDeletedInParts(t *testing.T) {
	const year, most = 365 * 24, 2000 // hourly runs; a thousand that are too old and a thousand that are too many
	const gaps, mostGaps = 2500, 1000
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
		longAgo := literal(d, d.Clock.Now().Add(-91*24*time.Hour))
		if d.Engine == "postgres" { // a literal within CASE is text
			past, future, longAgo = past+"::timestamptz", future+"::timestamptz", longAgo+"::timestamptz"
		}
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, number, occurrence, state, ready_at, created_at, finished_at, settled_at, expires_at) "+
			"SELECT %s, (SELECT id FROM %s), i, %s, 'succeeded', %s, %s, %s, %s, CASE WHEN i %% 2 = 0 THEN %s ELSE %s END FROM %s",
			d.Table("runs"), id, d.Table("jobs"), occurrence, past, past, past, past, past, future, storetest.Numbers(year)))
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at) SELECT id, 1, 1, 'step 1', 1, 1, 'h', 'succeeded', %s FROM %s",
			d.Table("attempts"), past, d.Table("runs")))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET runs_made = %d", d.Table("plans"), year))
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) SELECT (SELECT id FROM %s), i, %s, %[3]s, 'overlap', '', %s FROM %s",
			d.Table("gaps"), d.Table("jobs"), past, longAgo, storetest.Numbers(gaps)))
		d.Analyze(t)
		left, passes := year, 0
		leftGaps := gaps
		for ; left > 10 && passes < 20; passes++ {
			d.Clock.Add(5 * time.Minute)
			r := run(t, d)
			now := d.Int(t, "SELECT count(*) FROM "+d.Table("runs"))
			if gone := left + r.Made - now; gone > most || gone <= 0 || gone != r.Pruned {
				t.Fatalf("pass %d deleted %d runs and says %d", passes, gone, r.Pruned)
			}
			left = now
			kept := d.Int(t, "SELECT count(*) FROM "+d.Table("gaps"))
			if gone := leftGaps - kept; gone > mostGaps || gone <= 0 && leftGaps > 0 {
				t.Fatalf("pass %d deleted %d of %d gaps", passes, gone, leftGaps)
			}
			leftGaps = kept
		}
		if attempts := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); left > 11 || attempts != left || leftGaps > 0 {
			t.Errorf("after %d passes %d runs, %d attempts and %d gaps are left", passes, left, attempts, leftGaps)
		}
	})
}

// A run with more attempts than a pass deletes goes in parts too, and what is behind it waits its turn.
func TestManyAttemptsAreDeletedInParts(t *testing.T) {
	const attempts, most = 25_000, 10_000
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Keep: store.Keep{Runs: 1}, Steps: []store.Step{step("", "SELECT 1")}}}})
		for range 2 {
			request(t, d, "job")
			decideOnly(t, d)
			d.Clock.Add(time.Second)
		}
		run(t, d)
		list, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(list) < 1 {
			t.Fatal(err, list)
		}
		first := list[len(list)-1].ID
		count := func() int { return d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE run_id = '"+first+"'") }
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at) SELECT '%s', i + 1, 1, 'step 1', i + 1, 1, 'h', 'failed', %s FROM %s",
			d.Table("attempts"), first, literal(d, d.Clock.Now()), storetest.Numbers(attempts-1)))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET attempts = %d WHERE id = '%s'", d.Table("runs"), attempts, first))
		left, passes := count(), 0
		for ; left > 0 && passes < 9; passes++ {
			request(t, d, "job")
			run(t, d)
			now := count()
			if gone := left - now; gone > most || gone <= 0 {
				t.Fatalf("pass %d deleted %d attempts of %d", passes, gone, left)
			}
			left = now
		}
		if d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE id = '"+first+"'") != 0 {
			t.Error("the run is still there")
		}
		request(t, d, "job")
		run(t, d)
		if runs, attempts := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")), d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); passes != 3 || runs > 2 || attempts != runs {
			t.Errorf("after %d passes %d runs and %d attempts are left", passes, runs, attempts)
		}
	})
}

// A run that somebody opens again while the history is pruned keeps all of its attempts, or goes with them: whenever that
// comes, before its rows are locked or after.
func TestAPrunedRunThatIsOpenedAgainLosesNoAttempt(t *testing.T) {
	for _, before := range []string{"begin", "DELETE FROM attempts", "DELETE FROM runs"} {
		t.Run(before, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if before != "begin" && d.Engine == "sqlite" {
					t.Skip("one writer at a time")
				}
				apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Keep: store.Keep{Runs: 1}, Steps: []store.Step{step("", "SELECT * FROM nowhere")}}}})
				request(t, d, "job")
				run(t, d)
				first, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
				if err != nil || len(first) != 1 || first[0].State != store.Failed {
					t.Fatal(err, first)
				}
				request(t, d, "job")
				var calls storetest.Calls
				selected, met := false, false
				calls.Before = func(c storetest.Call) error {
					text := strings.ReplaceAll(strings.ReplaceAll(c.SQL, "dbjobs.", ""), "dbjobs_", "")
					selected = selected || strings.Contains(text, "number <= ")
					if met || !selected || !strings.HasPrefix(c.Kind+text, before) && !strings.HasPrefix(text, before) {
						return nil
					}
					met = true
					ctx, stop := context.WithTimeout(t.Context(), time.Second)
					defer stop()
					_, _ = d.RetryRun(ctx, first[0].ID, "", store.Author{}) // it may have to wait for too long
					return nil
				}
				tk := newTick(t, openBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
				tk.Limit = 1
				if _, err := tk.Run(t.Context()); err != nil || !met {
					t.Fatal(err, met)
				}
				missing := d.Int(t, fmt.Sprintf("SELECT count(*) FROM %s r WHERE attempts <> (SELECT count(*) FROM %s a WHERE a.run_id = r.id)", d.Table("runs"), d.Table("attempts")))
				if orphans := d.Int(t, fmt.Sprintf("SELECT count(*) FROM %s WHERE run_id NOT IN (SELECT id FROM %s)", d.Table("attempts"), d.Table("runs"))); missing+orphans > 0 {
					t.Errorf("%d runs have lost attempts, %d attempts are of no run", missing, orphans)
				}
			})
		})
	}
}
