package load

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// With every policy in use, the number of round trips of a pass is the same for 10 jobs as for
// thousands, and so is what happens to each ten of them. A group, a pause, an edit or a failure of a
// job is a row of a statement, never a statement.
//
// Three things grow beyond a limit: a pass handles 1,000 changed pauses or shared schedules at a time, it prunes
// the history of 1,000 jobs, and it sends a document of rows beyond 4 MB in parts. This test reaches no limit.
func TestRoundTripsDoNotGrowWithThePolicies(t *testing.T) {
	t.Parallel()
	few, many := 10, 300
	if prove.Whole() {
		many = 5000
	}
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			lists := map[int][]trip{}
			for _, n := range []int{few, many} {
				lists[n] = everyPolicy(t, e, n)
			}
			for i, want := range lists[few] {
				got := lists[many][i]
				t.Logf("%s: %s", want.what, strings.SplitN(want.calls, ":", 2)[0])
				if got.calls != want.calls {
					t.Errorf("%s: %d jobs:\n%s\n%d jobs:\n%s", want.what, few, want.calls, many, got.calls)
				}
				if got.became != want.became {
					t.Errorf("%s: each ten of %d jobs ended as\n%s\neach ten of %d as\n%s", want.what, few, want.became, many, got.became)
				}
			}
			if last := lists[few][len(lists[few])-1].became; last != ofTenJobs {
				t.Errorf("ten jobs ended as\n%s\nwant\n%s", last, ofTenJobs)
			}
		})
	}
}

// trip is a pass: its calls, and the ledger and the plans of each ten jobs after it.
type trip struct{ what, calls, became string }

// ofTenJobs is what happens to ten jobs: the runs, gaps and pauses at the end, by the last digit of
// the job. No two of the ten jobs have the same policies.
const ofTenJobs = "0 at queued, 0 at waiting pause, 1 at waiting group, 2 at queued, 2 at succeeded settled, 2 at waiting predecessor x10, " +
	"2 now succeeded settled, 3 at running, 4 at running, 4 at waiting pause x2, 5 at cancelled settled x2, " +
	"5 at running to cancel, 5 at waiting predecessor, 6 now failed settled, 7 at succeeded settled, 7 at waiting predecessor, " +
	"7 sta queued, 7 sta waiting predecessor, 8 aft cancelled settled, 8 at queued, " +
	"9 at succeeded settled, 9 now succeeded settled x2, 0 edited, 0 missed, 1 missed x5, 1 overlap x3, 1 paused, 2 missed x5, " +
	"2 paused, 3 missed x2, 3 overlap x2, 4 missed x3, 5 edited, 5 missed x4, 5 paused, 6 missed x2, 6 paused, 8 edited, " +
	"8 missed x2, 8 over-limit x3, 8 paused, 0 paused by ada, 6 paused by dbjobs itself, 9 removed"

// everyPolicy lets n jobs, n a multiple of ten, meet all that a decision can meet, in six passes.
func everyPolicy(t *testing.T, engine string, n int) (trips []trip) {
	t.Helper()
	var c storetest.Calls
	d := storetest.Open(t, engine, store.Options{Wrap: c.Wrap})
	w, exec := words[d.Engine], fill(t, d)
	tk := ticktest.New(t, d.Store)
	tk.Batch = 10 * n // no page is full, also of runs: after a full page there is another one
	pass := func(what string) {
		t.Helper()
		c.Reset()
		r, err := tk.Run(t.Context())
		if err != nil || len(r.Parked) > 0 {
			t.Fatalf("%s: %v: %v", what, err, r.Parked)
		}
		trips = append(trips, trip{what, ticktest.Kinds(&c), became(t, d, n)})
	}
	set := func(text string, a ...any) {
		t.Helper()
		d.Exec(t, strings.ReplaceAll(fmt.Sprintf(text, a...), "dbjobs.", strings.TrimSuffix(d.Table("x"), "x")))
	}
	tenJobs(t, d, n)
	d.Analyze(t)
	pass("plan")

	openRuns(t, d, n)
	d.Clock.Add(122 * time.Minute)
	tk.StartupID = "boot"
	pass("due")
	d.Clock.Add(time.Minute)
	pass("paused by themselves")

	d.Clock.Set(time.Date(2026, 1, 5, 11, 2, 0, 0, time.UTC))
	set("UPDATE dbjobs.schedules SET rule = '7 * * * *' WHERE job_id %% 10 = 0")
	set("UPDATE dbjobs.jobs SET priority = 7 WHERE id %% 10 = 2")
	set("UPDATE dbjobs.job_schedules SET schedule_id = 1 WHERE job_id %% 10 = 5")
	end := func(at, jobs, state string) {
		t.Helper()
		set("UPDATE dbjobs.runs SET state = '%s', finished_at = %s WHERE job_id %% 10 IN (%s) AND state = 'queued'", state, w.at(at), jobs)
	}
	end("-9000", "2, 7, 9", "succeeded")
	exec("INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'job', 10 * i, 'ada', %s FROM NUMBERS", n/10, w.at("-9000"))
	set("INSERT INTO dbjobs.pauses (scope, subject, since) VALUES ('tag', 'red', %s), ('owner', 'somebody else', %s)", w.at("-9000"), w.at("-9000"))
	pass("edited, paused, ended")

	d.Clock.Set(time.Date(2026, 1, 5, 12, 2, 0, 0, time.UTC))
	set("UPDATE dbjobs.schedules SET rule = '*/10 * * * *' WHERE id BETWEEN 300000 AND 399999")
	end("-12600", "1, 2, 9", "succeeded")
	exec("INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'schedule', 99999 + i, 'ada', %s FROM NUMBERS", n/10, w.at("-12600"))
	tk.StartupID = "another boot"
	pass("schedules edited and paused")

	d.Clock.Set(time.Date(2026, 1, 5, 13, 2, 0, 0, time.UTC))
	set("INSERT INTO dbjobs.pauses (scope, since, resumed_at) VALUES ('all', %s, %s)", w.at("-15000"), w.at("-16000"))
	set("UPDATE dbjobs.pauses SET resumed_at = %s, missed = %s WHERE scope = 'job' AND subject_id %% 10 = 6", w.at("-17000"), w.yes)
	pass("resumed")
	return trips
}

// tenJobs makes jobs by tens. The last digit of a job's number says which policies it has.
func tenJobs(t *testing.T, d *storetest.DB, n int) {
	t.Helper()
	w, exec := words[d.Engine], fill(t, d)
	now, g := w.at("0"), w.text(w.div("(i - 1)", 10))
	exec("INSERT INTO dbjobs.schedules (id, name, rule, created_at, changed_at) SELECT i, 'all', 'every 5m', %s, %s FROM NUMBERS", 1, now, now)
	exec("INSERT INTO dbjobs.schedules (id, name, rule, created_at, changed_at) SELECT 99999 + i, %s, 'every 20m', %s, %s FROM NUMBERS", n/10, w.join("'of three '", w.text("i")), now, now)
	exec("INSERT INTO dbjobs.schedules (id, name, rule, created_at, changed_at) SELECT 299999 + i, %s, 'every 15m', %s, %s FROM NUMBERS", max(1, n/20), w.join("'of two '", w.text("i")), now, now)
	exec(`INSERT INTO dbjobs.schedules (id, job_id, rule, created_at, changed_at)
		SELECT 400000 + i, i, CASE i %% 10 WHEN 0 THEN 'every 30m' ELSE 'at 2026-01-05T09:00:00' END, %s, %s FROM NUMBERS AND i %% 10 IN (0, 9)`, n, now, now)
	exec("INSERT INTO dbjobs.groups (name, max_running) SELECT %s, 1 FROM NUMBERS AND i %% 10 = 1", n, w.join("'group '", g))
	exec(`INSERT INTO dbjobs.jobs (id, owner, name, created_at, changed_at, queue, group_name, tags, overlap, max_running, missed, missed_limit, missed_within_ms, missed_grace_ms,
			jitter_ms, max_runs, pause_after_failures, repeat_after_ms, start_rule, on_startup, remove_when_done)
		SELECT i, %s, %s, %s, %s, 'another', CASE WHEN i %% 10 IN (1, 2) THEN %s END, CASE i %% 10 WHEN 3 THEN %s ELSE %s END,
			CASE i %% 10 WHEN 2 THEN 'wait-all' WHEN 3 THEN 'skip' WHEN 4 THEN 'allow' WHEN 5 THEN 'replace' ELSE 'wait' END, CASE i %% 10 WHEN 4 THEN 2 ELSE 1 END,
			CASE i %% 10 WHEN 2 THEN 'all' WHEN 4 THEN 'all' WHEN 8 THEN 'all' WHEN 6 THEN 'skip' ELSE 'latest' END, CASE i %% 10 WHEN 2 THEN 3 WHEN 4 THEN 2 WHEN 8 THEN 3 ELSE 100 END,
			CASE i %% 10 WHEN 4 THEN 1200000 END, CASE i %% 10 WHEN 6 THEN 60000 ELSE 120000 END, CASE i %% 10 WHEN 1 THEN 60000 ELSE 0 END,
			CASE i %% 10 WHEN 8 THEN 1 END, CASE i %% 10 WHEN 6 THEN 1 END, CASE i %% 10 WHEN 7 THEN 3600000 END, CASE i %% 10 WHEN 7 THEN 'at 2026-01-05T08:30:00' END,
			CASE i %% 10 WHEN 7 THEN %s ELSE %s END, CASE i %% 10 WHEN 9 THEN %s ELSE %s END
		FROM NUMBERS`, n, quoteLogin(t, d), w.join("'job '", w.text("i")), now, now, w.join("'group '", g), w.json(`'["red"]'`), w.json(`'[]'`), w.yes, w.no, w.yes, w.no)
	exec(`INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at)
		SELECT i, CASE WHEN i %% 10 IN (0, 9) THEN 400000 + i WHEN i %% 10 IN (4, 5, 8) THEN 100000 + %s ELSE 1 END, %s FROM NUMBERS AND i %% 10 <> 7`, n, w.div("(i - 1)", 10), now)
	exec("INSERT INTO dbjobs.job_after (job_id, after_job_id) SELECT i, i + 1 FROM NUMBERS AND i %% 10 = 8", n)
	exec("INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at) SELECT i, 300000 + %s, %s FROM NUMBERS AND i %% 10 = 8", n, w.div("(i - 1)", 20), now)
}

// openRuns gives jobs runs as others leave them: one that a holder has, one whose lease is over, one
// that ended, and one that was requested.
func openRuns(t *testing.T, d *storetest.DB, n int) {
	t.Helper()
	w, exec := words[d.Engine], fill(t, d)
	now := w.at("0")
	exec(`INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, attempt, attempts, fence, holder, queue, ready_at, created_at, scheduled_for, started_at, finished_at, lease_until)
		SELECT %s, i, 1, CASE WHEN i %% 10 IN (6, 9) THEN 'now:1' ELSE 'at:2026-01-05T07:40:00.000000Z' END, CASE i %% 10 WHEN 6 THEN 'failed' WHEN 9 THEN 'succeeded' ELSE 'running' END,
			1, 1, 1, 'a host', 'another', %s, %s, CASE WHEN i %% 10 IN (6, 9) THEN NULL ELSE %s END, %s, CASE WHEN i %% 10 IN (6, 9) THEN %s END,
			CASE i %% 10 WHEN 0 THEN %s WHEN 6 THEN NULL WHEN 9 THEN NULL ELSE %s END
		FROM NUMBERS AND i %% 10 IN (0, 3, 4, 5, 6, 9)`, n, w.id("i"), now, now, w.at("1200"), now, now, w.at("-90"), w.at("-86400"))
	d.Exec(t, "UPDATE "+d.Table("plans")+" SET runs_made = 1 WHERE job_id % 10 IN (0, 3, 4, 5, 6, 9)")
	exec(`INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, state, started_at)
		SELECT %s, 1, 1, 'one', 1, 1, 'a host', 'running', %s FROM NUMBERS AND i %% 10 = 0`, n, w.id("i"), now)
	exec(`INSERT INTO dbjobs.runs (id, job_id, occurrence, queue, ready_at, created_at)
		SELECT %s, i, 'now:2', 'another', %s, %s FROM NUMBERS AND i %% 10 IN (2, 9)`, n, w.id("100000 + i"), now, now)
}

// became says what there is of each ten jobs, by the last digit of the job. If a count is not the
// number of tens, the count for each ten follows.
func became(t *testing.T, d *storetest.DB, n int) string {
	t.Helper()
	var parts []string
	for _, q := range []string{
		`SELECT job_id % 10, SUBSTR(occurrence, 1, 3), state, held_by, CASE WHEN settled_at IS NOT NULL THEN 'settled' WHEN cancel_at IS NOT NULL THEN 'to cancel' END, COUNT(*)
			FROM dbjobs.runs GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5`,
		`SELECT job_id % 10, reason, COUNT(*) FROM dbjobs.gaps GROUP BY 1, 2 ORDER BY 1, 2`,
		`SELECT subject_id % 10, 'paused by', paused_by, COUNT(*) FROM dbjobs.pauses WHERE scope = 'job' GROUP BY 1, 3 ORDER BY 1, 3`,
		`SELECT id % 10, 'removed', COUNT(*) FROM dbjobs.jobs WHERE removed_at IS NOT NULL GROUP BY 1 ORDER BY 1`,
	} {
		parts = append(parts, ofTens(t, d, q, n)...)
	}
	return strings.Join(parts, ", ")
}

// ofTens reads rows of words and a count.
func ofTens(t *testing.T, d *storetest.DB, query string, n int) (parts []string) {
	t.Helper()
	rows, err := d.SQL.QueryContext(t.Context(), strings.ReplaceAll(query, "dbjobs.", strings.TrimSuffix(d.Table("x"), "x")))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	words, count := make([]sql.NullString, len(columns)-1), 0
	into := []any{}
	for i := range words {
		into = append(into, &words[i])
	}
	for rows.Next() {
		if err := rows.Scan(append(into, &count)...); err != nil {
			t.Fatal(err)
		}
		part := ""
		for _, word := range words {
			if word.String != "" {
				part += strings.TrimSuffix(word.String, ":") + " "
			}
		}
		if 10*count != n {
			part += fmt.Sprintf("x%g ", float64(10*count)/float64(n))
		}
		parts = append(parts, part[:len(part)-1])
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return parts
}
