package load

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// extent is how much a database holds.
type extent struct {
	jobs, runs, gaps, pauses int
	batch                    int // jobs in a decision: few enough that an index is better on every engine
}

// crowded fills a database with jobs of every policy and a year of their history, by a few set-based statements,
// at the time of the test's clock, 2026-01-05T08:00Z. Every tenth job is due every five minutes, and the others
// once in the afternoon. Half of the jobs have a rule of their own. The first pass plans the jobs.
func crowded(t *testing.T, d *storetest.DB, n extent) {
	t.Helper()
	w, exec := words[d.Engine], fill(t, d)
	now := w.at("0")
	exec(`INSERT INTO dbjobs.schedules (id, name, rule, created_at, changed_at)
		SELECT i, %s, CASE WHEN i = 1 THEN 'every 5m' ELSE %s END, %s, %s FROM NUMBERS`, 20, w.join("'schedule '", w.text("i")), w.join(w.text("i"), "' 15 * * *'"), now, now)
	exec(`INSERT INTO dbjobs.schedules (id, job_id, rule, created_at, changed_at)
		SELECT i + 1000, i, %s, %s, %s FROM NUMBERS AND i %% 2 = 1`, n.jobs, w.join(w.text("i % 60"), "' '", w.text("12 + i % 11"), "' * * *'"), now, now)
	exec(`INSERT INTO dbjobs.groups (name, max_running) SELECT %s, 3 FROM NUMBERS`, 10, w.join("'group '", w.text("i")))
	exec(`INSERT INTO dbjobs.jobs (id, owner, name, created_at, changed_at, tags, group_name, overlap, missed, jitter_ms, max_runs,
			on_error, timeout_ms, keep_runs, on_startup, queue, priority)
		SELECT i, %s, %s, %s, %s, %s, CASE WHEN i %% 500 = 0 THEN %s END,
			CASE i %% 1000 WHEN 20 THEN 'replace' WHEN 30 THEN 'skip' WHEN 40 THEN 'wait-all' ELSE 'wait' END,
			CASE i %% 1000 WHEN 40 THEN 'all' WHEN 50 THEN 'skip' ELSE 'latest' END, CASE i %% 1000 WHEN 60 THEN 60000 ELSE 0 END,
			CASE i %% 1000 WHEN 70 THEN 1000 END, CASE i %% 1000 WHEN 80 THEN 'pause' ELSE 'continue' END, CASE i %% 1000 WHEN 90 THEN 60000 END,
			CASE i %% 1000 WHEN 90 THEN 1 ELSE 1000 END, CASE i %% 1000 WHEN 3 THEN %s ELSE %s END, CASE i %% 100 WHEN 50 THEN 'reports' ELSE 'tick' END, CASE WHEN i %% 500 = 0 THEN 9 ELSE 0 END
		FROM NUMBERS`, n.jobs, quoteLogin(t, d), w.join("'job '", w.text("i")), now, now, w.json(`CASE WHEN i % 1000 = 10 THEN '["red"]' ELSE '[]' END`), w.join("'group '", w.text("1 + i % 10")), w.yes, w.no)
	exec(`INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at)
		SELECT i, CASE WHEN i %% 2 = 1 THEN i + 1000 WHEN i %% 10 = 0 THEN 1 ELSE 2 + i %% 19 END, %s FROM NUMBERS`, n.jobs, now)
	exec("INSERT INTO dbjobs.job_after (job_id, after_job_id) SELECT i, i + 3 FROM NUMBERS AND i %% 1000 = 97", n.jobs)
	exec("INSERT INTO dbjobs.job_after (job_id, after_job_id, planned) SELECT i, i + 1, i + 1 FROM NUMBERS AND i %% 10 = 5", n.jobs) // none of these is due
	exec("INSERT INTO dbjobs.job_after (job_id, after_job_id, planned) SELECT i, i - 7, i - 7 FROM NUMBERS AND i %% 1000 = 107", n.jobs)
	exec("INSERT INTO dbjobs.job_after (job_id, after_job_id, planned) SELECT i, i - 6, i - 6 FROM NUMBERS AND i %% 1000 = 107", n.jobs)
	exec(`INSERT INTO dbjobs.steps (job_id, position, name, executor, spec) SELECT i, 1, 'one', 'sql', %s FROM NUMBERS`, n.jobs, w.json(`'{"sql": ["SELECT 1"]}'`))

	d.Exec(t, "UPDATE "+d.Table("jobs")+" SET on_failed = 'job 1' WHERE id = 80")
	d.Exec(t, "UPDATE "+d.Table("jobs")+" SET remove_when_done = "+w.yes+", not_after = "+w.at("-360")+", priority = 9 WHERE id % 1000 = 650")
	exec("INSERT INTO dbjobs.job_ends (job_id, meets, after_job_id, run_id, ended_at, seen) SELECT 107 + 1000 * (i %% 3), "+w.text("i")+", 100 + 1000 * (i %% 3), %s, %s, %s FROM NUMBERS", 300, w.id("i"), now, w.yes)
	exec("INSERT INTO dbjobs.job_ends (job_id, meets, after_job_id, run_id, ended_at, seen) SELECT 5 + 10 * (i %% 100), "+w.text("i")+", 6 + 10 * (i %% 100), %s, %s, %s FROM NUMBERS", n.jobs/2, w.id("i"), now, w.yes)
	exec(`INSERT INTO dbjobs.plans (job_id, version, decided_through, runs_made) SELECT i, 1, %s, %d FROM NUMBERS`, n.jobs, now, n.runs/n.jobs+1)
	exec(`INSERT INTO dbjobs.jobs (id, name, removed_at, planned) SELECT i + %d, 'removed', %s, 'x' FROM NUMBERS`, 20, n.jobs, w.at("86400 * 500"))
	d.Exec(t, "UPDATE "+d.Table("jobs")+" SET planned = plan_input WHERE removed_at IS NOT NULL")

	// Each job has the same number of runs, over the whole year. A few runs are too old to be kept.
	ended := w.at(fmt.Sprintf("%d * %s", 365*86400/n.runs+1, fmt.Sprintf("(%d - i)", n.runs)))
	exec(`INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, attempt, attempts, fence, ready_at, created_at, started_at, finished_at, settled_at, expires_at)
		SELECT %s, (i - 1) %% %d + 1, %s + 1, %s, CASE i %% 50 WHEN 0 THEN 'failed' ELSE 'succeeded' END, 1, 1, 1, %s, %s, %s, %s, %s,
			CASE WHEN i <= 3 THEN %s ELSE %s END FROM NUMBERS`,
		n.runs, w.id("i"), n.jobs, w.div("(i - 1)", n.jobs), w.join("'then:'", w.text("i")), ended, ended, ended, ended, ended, w.at("60"), w.at("-8640000"))
	exec(`INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, state, started_at, finished_at)
		SELECT %s, 1, 1, 'one', 1, 1, 'a host', 'succeeded', %s, %s FROM NUMBERS`, n.runs, w.id("i"), now, now)
	exec(`INSERT INTO dbjobs.gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at)
		SELECT (i - 1) %% %d + 1, 1, %s, %s, 'missed', 'RRULE:FREQ=DAILY', %s FROM NUMBERS`, n.gaps, n.jobs, w.at("86400 + 600 * i"), w.at("86400 + 600 * i - 300"), w.at("86400"))
	exec(`INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action)
		SELECT %s, 'ada', 'job', i, 'job', 'change' FROM NUMBERS`, n.gaps, w.at("86400"))
	exec(`INSERT INTO dbjobs.ticks (name, since, last_at, holder, version) SELECT 'test', %s, %s, 'a host', 'test' FROM NUMBERS`, n.pauses, w.at("3600 * i"), w.at("3600 * i - 600"))
	exec(`INSERT INTO dbjobs.ticks (name, since, last_at, holder, version) SELECT 'old', %s, %s, 'a host', 'test' FROM NUMBERS`, 20, w.at("86400 * 500 + i"), w.at("86400 * 500"))
	exec(`INSERT INTO dbjobs.pauses (scope, subject_id, since, until_at) SELECT 'job', i, %s, %s FROM NUMBERS`, 20, w.at("86400 * 500 + i"), w.at("86400 * 500"))
	// Pauses that are over: resumed, or by their own end.
	exec(`INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since, until_at, resumed_at)
		SELECT CASE WHEN i %% 10 = 0 THEN 'all' ELSE 'job' END, CASE WHEN i %% 10 > 0 THEN i END, 'ada', %s, CASE WHEN i %% 2 = 0 THEN %s END, CASE WHEN i %% 2 = 1 THEN %s END FROM NUMBERS`,
		n.pauses, w.at("3600 + 600 * i"), w.at("3600 + 500 * i"), w.at("3600 + 500 * i"))
	d.Exec(t, "UPDATE "+d.Table("pauses")+" SET planned = plan_input")
}

// fill returns a function that executes a statement over the numbers i from 1 to count. Its text has
// NUMBERS for them.
func fill(t *testing.T, d *storetest.DB) func(text string, count int, a ...any) {
	return func(text string, count int, a ...any) {
		t.Helper()
		text = strings.ReplaceAll(fmt.Sprintf(text, a...), "dbjobs.", strings.TrimSuffix(d.Table("x"), "x"))
		d.Exec(t, strings.ReplaceAll(text, "NUMBERS", storetest.Numbers(count))+" ORDER BY i")
	}
}

// happen does what people and hosts do between two passes.
func happen(t *testing.T, d *storetest.DB) {
	t.Helper()
	jobs, runs := d.Table("jobs"), d.Table("runs")
	d.Exec(t, "UPDATE "+jobs+" SET priority = 5 WHERE id = 11")
	d.Exec(t, "DELETE FROM "+d.Table("plans")+" WHERE job_id = 11")
	d.Exec(t, "UPDATE "+d.Table("job_schedules")+" SET schedule_id = 3 WHERE job_id = 12")
	d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = '7 16 * * *' WHERE id IN (5, 1013)")
	for _, on := range []store.Subject{{Scope: store.ScopeJob, Name: "job 110"}, {Scope: store.ScopeSchedule, Name: "schedule 7"}, {Scope: store.ScopeTag, Name: "red"}} {
		if _, err := d.Pause(t.Context(), on, time.Time{}, store.Author{}); err != nil {
			t.Fatal(err)
		}
	}
	w := words[d.Engine]
	d.Exec(t, "INSERT INTO "+d.Table("pauses")+" (scope, subject, since) VALUES ('owner', 'somebody else', "+w.at("0")+")")
	if _, err := d.RunNow(t.Context(), "job 17", store.Request{}); err != nil {
		t.Fatal(err)
	}
	// Runs that others hold: the leases of 14 and 15 are over, 80 and 100 have ended, 20 is to be
	// replaced, and 21 cancelled.
	for i, r := range []struct {
		job          int
		state, lease string
	}{{14, "running", w.at("600")}, {15, "running", w.at("600")}, {80, "failed", "NULL"}, {100, "succeeded", "NULL"}, {20, "running", w.at("-86400")}, {21, "running", w.at("-86400")}} {
		d.Exec(t, fmt.Sprintf(`INSERT INTO %s (id, job_id, occurrence, state, attempt, attempts, fence, holder, queue, ready_at, created_at, started_at, finished_at, lease_until)
			VALUES ('00000000-0000-7000-9000-00000000000%d', %d, 'now:%d', '%s', 1, 1, 1, 'another', 'another', %s, %s, %s, %s, %s)`,
			runs, i, r.job, i, r.state, w.at("600"), w.at("600"), w.at("600"), map[bool]string{true: "NULL", false: w.at("500")}[r.state == "running"], r.lease))
	}
	d.Exec(t, "UPDATE "+runs+" SET occurrence = 'at:2026-01-05T07:00:00.000000Z', scheduled_for = "+w.at("3600")+" WHERE job_id = 20 AND state = 'running'")
	if _, err := d.CancelRun(t.Context(), "00000000-0000-7000-9000-000000000005", store.Author{}); err != nil {
		t.Fatal(err)
	}
}

func quoteLogin(t *testing.T, d *storetest.DB) string {
	t.Helper()
	login, err := d.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return "'" + login + "'"
}

// words has each engine's own expressions for crowded.
var words = map[string]struct {
	at      func(seconds string) string // that number of seconds before the test's clock
	text    func(number string) string
	div     func(x string, y int) string
	join    func(parts ...string) string
	id      func(number string) string
	json    func(text string) string
	yes, no string
}{
	"sqlite": {
		at: func(s string) string {
			return "strftime('%Y-%m-%dT%H:%M:%f000Z', 1767600000 - (" + s + "), 'unixepoch')"
		},
		text: func(n string) string { return "CAST(" + n + " AS text)" },
		div:  func(x string, y int) string { return fmt.Sprintf("%s / %d", x, y) },
		join: func(p ...string) string { return strings.Join(p, " || ") },
		id:   func(n string) string { return "printf('00000000-0000-7000-8000-%012x', " + n + ")" },
		json: func(s string) string { return s },
		yes:  "1", no: "0",
	},
	"postgres": {
		at:   func(s string) string { return "to_timestamp(1767600000 - (" + s + "))" },
		text: func(n string) string { return "CAST(" + n + " AS text)" },
		div:  func(x string, y int) string { return fmt.Sprintf("%s / %d", x, y) },
		join: func(p ...string) string { return strings.Join(p, " || ") },
		id:   func(n string) string { return "('00000000-0000-7000-8000-' || lpad(to_hex(" + n + "), 12, '0'))::uuid" },
		json: func(s string) string { return "CAST(" + s + " AS jsonb)" },
		yes:  "true", no: "false",
	},
	"mariadb": {
		at:   func(s string) string { return "TIMESTAMPADD(SECOND, -(" + s + "), '2026-01-05 08:00:00')" },
		text: func(n string) string { return "CAST(" + n + " AS CHAR)" },
		div:  func(x string, y int) string { return fmt.Sprintf("%s DIV %d", x, y) },
		join: func(p ...string) string { return "CONCAT(" + strings.Join(p, ", ") + ")" },
		id: func(n string) string {
			return "CONCAT('00000000-0000-7000-8000-', LPAD(LOWER(HEX(" + n + ")), 12, '0'))"
		},
		json: func(s string) string { return s },
		yes:  "1", no: "0",
	},
}
