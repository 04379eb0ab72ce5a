package load

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// hot are the statements that passes must have sent, by their names in queries.sql: what each begins with, and the
// indexes that it walks. PRIMARY is the key of the table. All other statements that are sent are looked at, too.
var hot = []struct {
	name, pattern string
	index         string
}{
	{"probe", `(?s)^SELECT .*FROM dbjobs.installation i`, "runs_wake|plans_next_run|runs_queued"},
	{"troubled", `(?s)^SELECT j.owner, j.name, t.parked`, "plans_parked|parked_job_id"},
	{"runs", `(?s)^SELECT r.id, .* ORDER BY r.created_at DESC`, "runs_created"},
	{"oldest_queued", `^SELECT (pg_catalog\.)?MIN\(queued_since\)`, "runs_queued_since|optimized away"},
	{"need_job", `(?s)^SELECT .*, id, NULL, id FROM dbjobs.jobs`, "jobs_stale"},
	{"need_link", `(?s)^SELECT .*SELECT job_id AS id FROM dbjobs.job_schedules`, "job_schedules_stale"},
	{"need_schedule", `(?s)^WITH s AS .*FROM dbjobs.schedules`, "schedules_stale"},
	{"need_startup", `(?s)^SELECT .*j.on_startup = `, "jobs_startup"},
	{"recall", `(?i)^SELECT p.job_id, \(SELECT (pg_catalog\.)?MAX`, "runs_number|job_id"},
	{"need_pause", `^WITH p AS`, "pauses_stale"},
	{"need_plan", `(?s)^SELECT .*, job_id, next_run, job_id FROM`, "plans_next_run"},
	{"need_run", `(?s)^SELECT .*, job_id, wake_at, id, CASE`, "runs_wake"},
	{"batch_plans", `^SELECT job_id, owner, version, next_run`, "PRIMARY"},
	{"batch_inputs", `(?s)^SELECT id, owner, name, .*plan_input`, "PRIMARY"},
	{"batch_jobs", `(?s)^SELECT j.id, .*j.plan_input FROM`, "PRIMARY"},
	{"batch_rules", `(?s)^SELECT .* r.ends,.*dbjobs.plan_rules\b`, "PRIMARY"},
	{"batch_links", `(?s)^SELECT .*s.nonexistent.*dbjobs.job_schedules l LEFT JOIN`, "PRIMARY"},
	{"lock_groups", `^SELECT name FROM dbjobs.group_plans`, ""},
	{"enlist_groups", `^INSERT INTO dbjobs.group_plans`, ""},
	{"group_caps", `(?s)^SELECT g.name, g.max_running`, "runs_open"},
	{"group_held", `(?s)^SELECT name, run, job_id, priority, ready_at`, "runs_open"},
	{"wake_held", `^UPDATE dbjobs.runs SET held_by = NULL WHERE`, "PRIMARY"},
	{"group_runs", `^SELECT r.id FROM dbjobs.jobs j `, "runs_open"},
	{"hold_runs", `^UPDATE dbjobs.runs SET state = 'waiting' WHERE`, "PRIMARY|runs_queued"},
	{"batch_runs", `(?s)^SELECT r.id, r.job_id, .*(open_job_id|settled_at IS NULL)`, "runs_open"},
	{"lock_runs", `^SELECT id FROM dbjobs.runs WHERE .*ORDER BY id`, "PRIMARY"},
	{"batch_followers", `^SELECT a.after_job_id`, "job_after_job"},
	{"need_ended", `(?s)^SELECT .*, job_id, NULL, job_id FROM dbjobs.job_ends`, "job_ends"},
	{"batch_ends", `(?s)^SELECT e.id, e.job_id`, "job_ends"},
	{"circles", `(?s)^WITH RECURSIVE up .*dbjobs.job_after`, "job_after|PRIMARY"},
	{"hooks", `(?s)^SELECT id, owner, name, queue, priority, .*enabled`, "jobs_name"},
	{"batch_pauses", `(?s)^SELECT p.id, .*FROM dbjobs.pauses p`, "pauses"},
	{"insert_runs", `(?s)^INSERT INTO dbjobs.runs .*d.held_by`, ""},
	{"insert_queued", `(?s)^INSERT INTO dbjobs.runs .*'queued', (d.queue|value)`, ""},
	{"update_runs", `(?s)^(WITH d|UPDATE) .*dbjobs.runs.*settled_at = d.settled_at`, "PRIMARY"},
	{"lose_attempts", `^UPDATE dbjobs.attempts SET state = 'lost'`, "PRIMARY"},
	{"extend_gaps", `(?s)^(WITH d|UPDATE) .*dbjobs.gaps.*recorded_at = `, "PRIMARY"},
	{"insert_gaps", `(?s)^INSERT INTO dbjobs.gaps`, "PRIMARY"},
	{"request_cancel", `^UPDATE dbjobs.runs SET cancel_at`, "PRIMARY"},
	{"advance", `(?s)^(WITH d|UPDATE) .*dbjobs.plans.*last_run_id = d.last_run_id.*p.version \+ 1 ELSE 1`, "PRIMARY"},
	{"advance_due", `(?s)^(WITH d|UPDATE) .*dbjobs.plans.*runs_made = p.runs_made \+ 1`, "PRIMARY"},
	{"queued_ids", `^SELECT id FROM dbjobs.runs WHERE (state = 'queued' AND queue|queued_in)`, "runs_queued"},
	{"next_queue", `^SELECT (queue|queued_in) FROM dbjobs.runs`, "runs_queued"},
	{"lock_queued", `(?s)^SELECT r.id, r.job_id, .*state( \|\| '')? = 'queued'\s+(AND|WHERE) NOT EXISTS`, "PRIMARY"},
	{"take", `^UPDATE dbjobs.runs SET state = 'running'`, "PRIMARY"},
	{"finish_attempts", `(?s)^WITH d AS .*free AS|^UPDATE .*runs .*SET (r\.)?state = d\.final`, "PRIMARY|after reading const tables"}, // the run has ended by then
	{"end_attempts", `(?s)^WITH d AS .*free AS|^UPDATE .*attempts .*SET (a\.)?state = `, "PRIMARY"},
	{"expired_runs", `^SELECT id FROM dbjobs.runs WHERE expires_at`, "runs_expire"},
	{"surplus_runs", `(?s)^SELECT r.id, .*number <= d.through`, "runs_number"},
	{"sweep_jobs", `(?s)^SELECT .*keep_age_ms,.*removed_at <`, "runs_number"},
	{"delete_runs", `^DELETE FROM dbjobs.runs`, "PRIMARY"},
	{"hooks_in_use", `^SELECT DISTINCT owner, on_failed`, "jobs_hooks"},
	{"lock_removed_jobs", `(?s)^SELECT j.id, CASE WHEN EXISTS`, "PRIMARY"},
	{"old_records", `(?s)^SELECT t.since, NULL, 'tick'.*'pause'.*'change'`, "ticks_since"},
	{"old_records, of requests", `(?s)^SELECT t.since, NULL, 'tick'.*'pause'.*'change'`, "changes_asked"},
	{"delete_pauses", `^DELETE FROM dbjobs.pauses`, "PRIMARY"},
	{"delete_ticks", `^DELETE FROM dbjobs.ticks`, "ticks_since"},
	{"forget_plans", `^DELETE FROM dbjobs.plans`, "PRIMARY"},
	{"forget_jobs", `^DELETE FROM dbjobs.jobs`, "PRIMARY"},
	{"step_facts", `(?s)^SELECT a.step_name, .*GROUP BY \S*step_name`, "PRIMARY"},
	{"runs_unwell", `(?s)r.unwell = |'lost'\) AND r.state = \S+ AND r.created_at`, "runs_unwell"},
}

// No statement of a pass reads a large table from end to end or sorts one, and each statement walks
// its index. The statements and arguments are those that passes really sent, with every policy in use.
func TestExplainHotStatementsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			n := extent{8_000, 10_000, 10_000, 2_000, 50}
			switch {
			case prove.Whole():
				n = extent{1_000_000, 2_000_000, 500_000, 8_000, 1000}
			case e == "postgres": // it assumes that a document has 100 rows, and for 100 rows it reads all of a smaller table
				n = extent{16_000, 20_000, 20_000, 2_000, 50}
				t.Parallel()
			case e == "sqlite": // its plans do not depend on the size, and the race detector makes it twenty times slower
				n = extent{3_000, 6_000, 3_000, 500, 50}
				fallthrough
			default:
				t.Parallel()
			}
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap, Chance: func() float64 { return 0.9999 }}) // a sweep sees the last jobs
			began := time.Now()
			crowded(t, d, n)
			d.Analyze(t)
			t.Logf("filled in %s", time.Since(began).Round(time.Second))
			calls := aDay(t, d, &c, n)
			c.Reset()
			if _, err := d.Runs(t.Context(), store.RunFilter{States: []string{store.Failed}}); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, c.All()...)
			for _, h := range hot {
				pattern := regexp.MustCompile(strings.ReplaceAll(h.pattern, "dbjobs.", "dbjobs[._]"))
				i := slices.IndexFunc(calls, func(c storetest.Call) bool { return pattern.MatchString(c.SQL) })
				if i < 0 {
					t.Errorf("%s: not among the statements of the passes", h.name)
					continue
				}
				plan := explain(t, d, calls[i])
				if problem := unplanned(d.Engine, plan, h.index); problem != "" {
					t.Errorf("%s: %s:\n%s", h.name, problem, strings.Join(plan, "\n"))
				}
			}
			for _, call := range calls {
				if strings.Contains(call.SQL, "LEFT JOIN") && strings.Contains(call.SQL, "UNION") && strings.Contains(call.SQL, "o.id IS NULL") {
					plan := explain(t, d, call) // need_check, once an hour: it looks at all jobs by the keys, but not at all runs
					for _, problem := range wholeTables(d.Engine, call.SQL, plan, n) {
						if strings.HasSuffix(problem, " runs") || strings.Contains(problem, " runs ") {
							t.Errorf("%s: %s:\n%s", call.SQL, problem, strings.Join(plan, "\n"))
						}
					}
					continue
				}
				if strings.Contains(call.SQL, "p.runs_made < (SELECT ") {
					continue // need_older, once an hour: it looks at all plans by the keys
				}
				if strings.HasPrefix(call.SQL, "SHOW ") {
					continue // of the server's settings and counters: there is no plan
				}
				if call.Kind == storetest.Query {
					most := n.jobs / 2
					if strings.Contains(call.SQL, "f.job_id") { // too_long: a thousand runs, their jobs, and a temporary table
						most = min(most, 2500)
					}
					if read := rowsRead(t, d, call); read > most {
						t.Errorf("%d rows are read by %s", read, call.SQL)
					}
				}
				plan := explain(t, d, call)
				for _, problem := range wholeTables(d.Engine, call.SQL, plan, n) {
					t.Errorf("%s: %s:\n%s", call.SQL, problem, strings.Join(plan, "\n"))
				}
			}
		})
	}
}

// Of a few thousand runs, PostgreSQL would rather read all than look up a hundred, unless a statement leaves it
// no choice. Several ticks at once send many small lists, and each list would cost a read of the whole table.
func TestTakesAndEndsOfAFewThousandGoByTheKey(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres") // PostgreSQL's planner
	made := ready(t, "postgres", 3000)
	var c storetest.Calls
	tk := ticktest.New(t, ticktest.OpenBeside(t, made, "", store.Options{Wrap: c.Wrap}))
	tk.Now, tk.Limit, tk.Executors["nothing"] = made.Clock.Now, 300, ticktest.Nothing{}
	if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != tk.Limit {
		t.Fatal(err, r)
	}
	for _, pattern := range []string{`pg_try_advisory_xact_lock`, `(?s)^WITH d AS.*free AS.*UPDATE dbjobs.runs`} {
		calls := slices.DeleteFunc(c.All(), func(c storetest.Call) bool { return !regexp.MustCompile(pattern).MatchString(c.SQL) })
		if len(calls) == 0 {
			t.Fatalf("%s: not among the statements", pattern)
		}
		plan := strings.Join(explain(t, made, calls[len(calls)-1]), "\n")
		if strings.Contains(plan, "Seq Scan on runs") || strings.Contains(plan, "hashed SubPlan") {
			t.Errorf("it reads all runs:\n%s", plan)
		}
	}
}

// readsHistory matches a part of a plan of SQLite that reads all runs of a job, or all runs until some time.
var readsHistory = regexp.MustCompile(`(SEARCH|SCAN) \w+ USING INDEX (dbjobs_runs_number( \(job_id=\?\))?|dbjobs_runs_created( \(created_at<\?\))?|sqlite_autoindex_dbjobs_runs_2 \(job_id=\?\))$`)

// Without statistics, the plans of SQLite depend on the text alone. So each statement can be looked at, also of commands: it reads no
// history of runs, but where the answer is about all of it.
func TestExplainEveryStatementOfSQLite(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "sqlite")
	about := map[string]string{
		"accounted_runs": "doctor: which nominal times have a run", "examine_older": "doctor", "examine_runs": "doctor", "examine_twice": "doctor",
		"contents_runs": "uninstall: how many runs there are", "count_ahead": "of jobs that lie ahead of the clock",
		"intervals": "backfill: which parts of a range have a run", "recall": "of jobs whose plan was deleted",
		"failures_of_job": "errors of a job: a run that succeeded, too, may have an attempt that failed",
		"runs_of_job":     "those that the job keeps are sorted: an index by their time would make each new run dearer by half",
	}
	d := storetest.Open(t, "sqlite", store.Options{})
	e, err := engine.Of("sqlite:")
	if err != nil {
		t.Fatal(err)
	}
	statements := store.Statements(e)
	for _, name := range statements.Names() {
		text, arguments, err := statements.Text(name)
		if err != nil {
			t.Fatal(err)
		}
		plan := explain(t, d, storetest.Call{SQL: text, Args: make([]driver.NamedValue, len(arguments))})
		reads := slices.ContainsFunc(plan, readsHistory.MatchString)
		for _, problem := range wholeTables(d.Engine, text, plan, extent{}) {
			reads = reads || strings.HasSuffix(problem, " runs")
		}
		if _, ok := about[name]; reads != ok {
			t.Errorf("%s: reads the history of runs: %t, want %t:\n%s", name, reads, ok, strings.Join(plan, "\n"))
		}
	}
}

// aDay plans the jobs, and lets passes meet all that can happen. It returns one call of each statement that they sent.
func aDay(t *testing.T, d *storetest.DB, c *storetest.Calls, n extent) []storetest.Call {
	t.Helper()
	tk := ticktest.New(t, d.Store)
	tk.Batch, tk.Limit = n.batch, 5
	pass := func(what string, run func(context.Context) (tick.Report, error), want func(tick.Report) bool) []storetest.Call {
		t.Helper()
		c.Reset()
		began := time.Now()
		r, err := run(t.Context())
		if err != nil || !want(r) {
			t.Fatalf("%s: %v, %+v", what, err, r)
		}
		t.Logf("%s: %s, %d decided, %d made, %d started, %d calls", what, time.Since(began).Round(time.Millisecond), r.Decided, r.Made, r.Started, c.Count())
		return c.All()
	}
	tk.Batch = min(1000, n.jobs/20)
	calls := pass("plan", tk.Run, func(r tick.Report) bool { return r.Decided == n.jobs && len(r.Parked) == 0 })
	tk.Batch = n.batch
	d.Analyze(t)
	d.Clock.Add(time.Minute)
	for range 2 {
		nothing := pass("nothing due", tk.Run, func(r tick.Report) bool { return r.Decided == 0 })
		for _, call := range nothing {
			if read := rowsRead(t, d, call); read > 100 { // however many jobs and runs there are
				t.Errorf("nothing due, and %d rows are read by %s", read, call.SQL)
			}
		}
		calls = append(calls, nothing...)
	}
	happen(t, d)
	d.Clock.Add(4 * time.Minute)
	tk.StartupID = "boot"
	d.Exec(t, "UPDATE "+d.Table("job_ends")+" SET seen = "+words[d.Engine].no+" WHERE job_id = 1107 AND meets < '2'")
	calls = append(calls, pass("a tenth due, and all that can happen", tk.Run, func(r tick.Report) bool { return r.Made > n.jobs/11 && r.Succeeded == 5 })...)
	tk.StartupID = ""
	d.Clock.Add(5 * time.Minute)
	tk.Budget = time.Hour
	calls = append(calls, pass("a tenth due, behind what waits", tk.Run, func(r tick.Report) bool { return r.Decided > n.jobs/11 && r.Succeeded == 5 })...)
	tk.Limit = 20
	calls = append(calls, pass("20 runs of another queue", tk.Work, func(r tick.Report) bool { return r.Succeeded == 20 })...)
	calls = append(calls, pass("what is left, and jobs that are done", tk.Run, func(r tick.Report) bool { return r.Decided > 0 })...)
	c.Reset()
	if since, err := d.OldestQueued(t.Context()); err != nil || since.IsZero() {
		t.Fatal(err, since)
	}
	if list, err := d.Runs(t.Context(), store.RunFilter{Limit: 20}); err != nil || len(list) != 20 {
		t.Fatal(err, len(list))
	}
	if facts, err := d.StepFacts(t.Context(), "00000000-0000-7000-8000-000000000007", "two"); err != nil || facts["one"].State != store.Succeeded {
		t.Fatal(err, facts)
	}
	for _, most := range []int{1, 3} { // a file lowers the cap of a group, and raises it
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "group 1", MaxRunning: most}}})
	}
	ledger := regexp.MustCompile(`dbjobs[._](runs|attempts)`)
	for _, call := range c.All() {
		if ledger.MatchString(call.SQL) { // all pauses are read, too
			calls = append(calls, call)
		}
	}
	slices.Reverse(calls) // the last call of each: the first pass decides for many more at once
	seen := map[string]bool{}
	return slices.DeleteFunc(calls, func(c storetest.Call) bool {
		key := placeholders.ReplaceAllString(c.SQL, "?")
		again := seen[key] || c.SQL == ""
		seen[key] = true
		return again
	})
}

// explain asks for the plan of a statement that was sent, line by line.
//
// Before version 14, PostgreSQL plans some subqueries in two ways, and chooses one when the statement
// begins. There the statement is executed, and the parts that were never executed are left out.
func explain(t *testing.T, d *storetest.DB, c storetest.Call) []string {
	t.Helper()
	words := "EXPLAIN "
	switch d.Engine {
	case "sqlite":
		words = "EXPLAIN QUERY PLAN "
	case "mariadb":
		words = "EXPLAIN FORMAT=TRADITIONAL " // as a table: MySQL's own choice is a tree
	}
	plan := planOf(t, d.SQL, words, c)
	if d.Engine != "postgres" || !strings.Contains(strings.Join(plan, "\n"), "(alternatives: ") {
		return plan
	}
	tx, err := d.SQL.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it was for the plan alone
	plan = planOf(t, tx, "EXPLAIN (ANALYZE, TIMING OFF) ", c)
	for i, line := range plan {
		if strings.Contains(line, "(never executed)") {
			plan[i] = "never executed"
		}
	}
	return plan
}

// planOf sends a statement after the words that ask for its plan.
func planOf(t *testing.T, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, words string, c storetest.Call) []string {
	t.Helper()
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.Value
	}
	rows, err := q.QueryContext(t.Context(), words+c.SQL, args...)
	if err != nil {
		t.Fatalf("%s: %v", c.SQL, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan []string
	for rows.Next() {
		cells, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &text{&cells[i]}
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		if len(columns) == 12 { // MySQL also has the partitions and the share of the rows that is filtered
			cells = slices.Concat(cells[:3], cells[4:10], cells[11:])
		}
		plan = append(plan, strings.Join(cells, " | "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// text takes any value of a column.
type text struct{ p *string }

func (t *text) Scan(src any) error {
	if b, ok := src.([]byte); ok {
		src = string(b)
	}
	*t.p = fmt.Sprint(src)
	return nil
}
