package tick_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// hot are the statements of a pass that must not grow with the tables: what each begins with, and the indexes that it
// may walk. PRIMARY is the key of the table.
var hot = []struct {
	name, pattern string
	index         string
}{
	{"probe", `(?s)^SELECT .*FROM dbjobs.installation i`, "runs_wake|plans_next_run|runs_queued"},
	{"need_plan", `(?s)^SELECT .*, job_id, next_run, job_id FROM`, "plans_next_run"},
	{"need_run", `(?s)^SELECT .*, job_id, wake_at, id FROM`, "runs_wake"},
	{"batch_plans", `^SELECT job_id, version, next_run`, "PRIMARY"},
	{"batch_inputs", `(?s)^SELECT id, owner, name, .*plan_input`, "PRIMARY"},
	{"batch_rules", `(?s)^SELECT .* r.ends,.*dbjobs.plan_rules\b`, "PRIMARY"},
	{"batch_runs", `(?s)^SELECT r.id, r.job_id, .*(open_job_id|settled_at IS NULL)`, "runs_open"},
	{"advance", `(?s)^UPDATE .*dbjobs.plans.*version = p.version \+ 1`, "PRIMARY"},
	{"update_runs", `(?s)^UPDATE .*dbjobs.runs.*settled_at = d.settled_at`, "PRIMARY"},
	{"queued_ids", `^SELECT id FROM dbjobs.runs WHERE (state = 'queued' AND queue|queued_in)`, "runs_queued"},
	{"lock_queued", `(?s)^SELECT r.id, r.job_id, .*state( \|\| '')? = 'queued' (ORDER|LIMIT)`, "PRIMARY"},
	{"take", `^UPDATE dbjobs.runs SET state = 'running'`, "PRIMARY"},
	{"expired_runs", `^SELECT id FROM dbjobs.runs WHERE expires_at`, "runs_expire"},
	{"surplus_runs", `(?s)^SELECT r.id FROM .*number <= d.below`, "runs_number"},
	{"lock_settled", `(?s)^SELECT id FROM dbjobs.runs WHERE .*settled_at IS NOT NULL ORDER BY id`, "PRIMARY"},
	{"delete_attempts", `^DELETE FROM dbjobs.attempts`, "PRIMARY"},
	{"delete_runs", `^DELETE FROM dbjobs.runs`, "PRIMARY"},
	{"delete_old_gaps", `(?s)^DELETE .*dbjobs.gaps`, "PRIMARY"},
}

// Over tables of a size, every hot statement is planned over its index: with the statement and the arguments that a
// pass really sent.
func TestHotStatementsUseTheirIndexes(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			jobs, runs := 20_000, 50_000
			switch {
			case os.Getenv("DBJOBS_PROVE") != "":
				jobs, runs = 100_000, 1_000_000
			case e == "sqlite": // whose plans do not turn with the size, and which the race detector slows down twentyfold
				jobs, runs = 4_000, 20_000
			}
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			d.Seed(t, storetest.Seed{Jobs: jobs, Rules: []string{"every 5m", "every 1h"}, Steps: []store.Step{step("one", "SELECT 1")}})
			seedHistory(t, d, jobs, runs)
			if r := run(t, d); r.Decided != jobs {
				t.Fatalf("plan: %+v", r)
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET expires_at = finished_at WHERE number <= 3") // some of it may be pruned
			d.Analyze(t)
			d.Clock.Add(5 * time.Minute)
			c.Reset()
			tk := newTick(t, d.Store)
			tk.Limit, tk.Batch = 5, 50 // so few that an index is the better way on every engine
			if r, err := tk.Run(t.Context()); err != nil || r.Made != jobs/2 || r.Succeeded != 5 {
				t.Fatalf("decide: %v, %+v", err, r)
			}
			calls := c.All()
			for _, h := range hot {
				pattern := regexp.MustCompile(strings.ReplaceAll(h.pattern, "dbjobs.", "dbjobs[._]"))
				i := slices.IndexFunc(calls, func(c storetest.Call) bool { return pattern.MatchString(c.SQL) })
				if i < 0 {
					t.Errorf("%s: not among the statements of the pass", h.name)
					continue
				}
				plan := explain(t, d, calls[i])
				if problem := unplanned(e, plan, h.index); problem != "" {
					t.Errorf("%s: %s:\n%s", h.name, problem, strings.Join(plan, "\n"))
				}
			}
		})
	}
}

// seedHistory writes settled runs, evenly over the jobs.
func seedHistory(t *testing.T, d *storetest.DB, jobs, runs int) {
	t.Helper()
	id := map[string]string{
		"sqlite": "printf('00000000-0000-7000-8000-%012x', i)", "mariadb": "CONCAT('00000000-0000-7000-8000-', LPAD(HEX(i), 12, '0'))",
		"postgres": "('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid",
	}[d.Engine]
	text := map[string]string{"sqlite": "CAST(i AS text)", "postgres": "CAST(i AS text)", "mariadb": "CAST(i AS CHAR)"}[d.Engine]
	past := map[bool]string{true: "'2026-01-04 08:00:00'", false: "'2026-01-04T08:00:00.000000Z'"}[d.Engine == "mariadb"]
	d.Exec(t, fmt.Sprintf(`INSERT INTO %s (id, job_id, number, occurrence, state, ready_at, created_at, finished_at, settled_at)
		SELECT %s, i %% %d + 1, i, %s, 'succeeded', %s, %s, %s, %s FROM %s`, d.Table("runs"), id, jobs, text, past, past, past, past, storetest.Numbers(runs)))
	few := fmt.Sprintf("%s WHERE number <= %d", d.Table("runs"), runs/5)
	d.Exec(t, fmt.Sprintf(`INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at)
		SELECT id, 1, 1, 'step 1', 1, 1, 'h', 'succeeded', finished_at FROM %s`, d.Table("attempts"), few))
	d.Exec(t, fmt.Sprintf(`INSERT INTO %s (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at)
		SELECT job_id, number, created_at, finished_at, 'overlap', '', finished_at FROM %s`, d.Table("gaps"), few))
}

// explain asks for the plan of a statement that was sent, line by line.
func explain(t *testing.T, d *storetest.DB, c storetest.Call) []string {
	t.Helper()
	words := "EXPLAIN "
	if d.Engine == "sqlite" {
		words = "EXPLAIN QUERY PLAN "
	}
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.Value
	}
	rows, err := d.SQL.QueryContext(t.Context(), words+c.SQL, args...)
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
		plan = append(plan, strings.Join(cells, " | "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// text takes whatever a column has.
type text struct{ p *string }

func (t *text) Scan(src any) error {
	if b, ok := src.([]byte); ok {
		src = string(b)
	}
	*t.p = fmt.Sprint(src)
	return nil
}

// unplanned tells what is wrong with a plan: a table of ours is read from end to end, or not by an index of the list.
func unplanned(engine string, plan []string, index string) string {
	all := strings.Join(plan, "\n")
	switch engine {
	case "postgres":
		if m := regexp.MustCompile(`Seq Scan on (plans|runs|jobs|plan_rules|job_schedules|attempts|gaps)\b`).FindString(all); m != "" {
			return m
		}
		index = strings.ReplaceAll(index, "PRIMARY", `\w+_pkey`)
	case "sqlite":
		if m := regexp.MustCompile(`SCAN (dbjobs_(plans|runs|jobs|plan_rules|job_schedules|attempts|gaps)|[rpljgo])( USING INDEX sqlite\w+)?(\n|$)`).FindString(all); m != "" {
			return m
		}
		index = strings.ReplaceAll(index, "PRIMARY", `USING INTEGER PRIMARY KEY|USING (COVERING )?INDEX sqlite_autoindex`)
	case "mariadb": // id | select_type | table | type | possible_keys | key | ...
		for _, line := range plan {
			cells := strings.Split(line, " | ")
			if regexp.MustCompile(`^(dbjobs_(plans|runs|jobs|plan_rules|job_schedules|attempts|gaps)|[rpljgo])$`).MatchString(cells[2]) && (cells[3] == "ALL" || cells[3] == "index" && cells[5] == "PRIMARY") {
				return "reads all of " + cells[2]
			}
		}
	}
	for _, want := range strings.Split(index, "|") {
		if !strings.Contains(index, "_wake|") && regexp.MustCompile(index).MatchString(all) {
			return ""
		}
		if !regexp.MustCompile(want).MatchString(all) && engine != "mariadb" {
			return "does not use " + want
		}
	}
	return ""
}
