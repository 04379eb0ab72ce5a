package load

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// One pass deletes a year of a job's history that is no longer kept, in parts. No transaction deletes
// more than a thousand runs that are too old and a thousand that are too many. The job's gaps are
// deleted in the same way, by their age. When none is left, no further part looks for them: it would read all gaps of the jobs.
func TestPruneAYearInParts(t *testing.T) {
	const year, most = 365 * 24, 2000 // hourly runs
	const gaps, mostGaps = 2500, 1000
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Keep: store.Keep{Runs: 10}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		id := map[string]string{
			"sqlite":   "'00000000-0000-7000-8000-' || printf('%012d', i)",
			"postgres": "('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid",
			"mariadb":  "CONCAT('00000000-0000-7000-8000-', LPAD(i, 12, '0'))",
		}[d.Engine]
		occurrence := map[bool]string{true: "CONCAT('now:', i)", false: "'now:' || i"}[d.Engine == "mariadb"]
		past, future := ticktest.Literal(d, d.Clock.Now().Add(-time.Hour)), ticktest.Literal(d, d.Clock.Now().Add(time.Hour*1000))
		longAgo := ticktest.Literal(d, d.Clock.Now().Add(-91*24*time.Hour))
		if d.Engine == "postgres" { // a literal within CASE is text
			past, future, longAgo = past+"::timestamptz", future+"::timestamptz", longAgo+"::timestamptz"
		}
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, number, occurrence, state, ready_at, created_at, finished_at, settled_at, expires_at) "+
			"SELECT %s, (SELECT id FROM %s), i, %s, 'succeeded', %s, %s, %s, %s, CASE WHEN i %% 2 = 0 THEN %s ELSE %s END FROM %s",
			d.Table("runs"), id, d.Table("jobs"), occurrence, past, past, past, past, past, future, storetest.Numbers(year)))
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at) SELECT id, 1, 1, 'step 1', 1, 1, 'h', 'succeeded', %s FROM %s",
			d.Table("attempts"), past, d.Table("runs")))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET runs_made = %d", d.Table("plans"), year))
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) SELECT (SELECT id FROM %s), i, %s, %[3]s, 'overlap', '', %[3]s FROM %s",
			d.Table("gaps"), d.Table("jobs"), longAgo, storetest.Numbers(gaps)))
		d.Analyze(t)
		d.Clock.Add(5 * time.Minute)
		r, deletions := prunes(t, d)
		left, leftGaps := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")), d.Int(t, "SELECT count(*) FROM "+d.Table("gaps"))
		if gone := year + r.Made - left; gone != r.Pruned {
			t.Errorf("%d runs were deleted, and the pass says %d", gone, r.Pruned)
		}
		if deletions["runs"] < year/most || deletions["gaps"] < gaps/mostGaps {
			t.Errorf("deleted in %v parts", deletions)
		}
		if looks := deletions["look for gaps"]; looks != gaps/mostGaps+1 {
			t.Errorf("%d looks for gaps, in %v parts", looks, deletions)
		}
		if attempts := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); left > 11 || attempts != left || leftGaps > 0 {
			t.Errorf("%d runs, %d attempts and %d gaps are left", left, attempts, leftGaps)
		}
	})
}

// prunes runs a pass, and counts its deletions of each table. Its clock stands still, so that its time for deletions does not
// run out on a slow machine.
func prunes(t *testing.T, d *storetest.DB) (tick.Report, map[string]int) {
	t.Helper()
	var calls storetest.Calls
	tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
	tk.Now = d.Clock.Now
	r := ticktest.Pass(t, tk)
	deletions := map[string]int{}
	for _, c := range calls.All() {
		if strings.HasPrefix(c.SQL, "SELECT") && strings.Contains(c.SQL, "recorded_at <") {
			deletions["look for gaps"]++
		}
		for _, table := range []string{"runs", "gaps", "attempts"} {
			if strings.HasPrefix(c.SQL, "DELETE") && strings.Contains(c.SQL, d.Table(table)) {
				deletions[table]++
			}
		}
	}
	return r, deletions
}

// A run with more attempts than a transaction deletes is also deleted in parts. The runs behind it
// wait for their turn.
func TestPruneManyAttemptsInParts(t *testing.T) {
	const attempts, most = 25_000, 10_000
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Keep: store.Keep{Runs: 1}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		for range 2 {
			ticktest.Request(t, d, "job")
			ticktest.DecideOnly(t, d)
			d.Clock.Add(time.Second)
		}
		ticktest.Run(t, d)
		list, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(list) < 1 {
			t.Fatal(err, list)
		}
		first := list[len(list)-1].ID
		count := func() int { return d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE run_id = '"+first+"'") }
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (run_id, number, step, step_name, attempt, fence, holder, state, started_at) SELECT '%s', i + 1, 1, 'step 1', i + 1, 1, 'h', 'failed', %s FROM %s",
			d.Table("attempts"), first, ticktest.Literal(d, d.Clock.Now()), storetest.Numbers(attempts-1)))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET attempts = %d WHERE id = '%s'", d.Table("runs"), attempts, first))
		ticktest.Request(t, d, "job")
		if _, deletions := prunes(t, d); deletions["attempts"] <= attempts/most || count() > 0 || d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE id = '"+first+"'") != 0 {
			t.Errorf("%d attempts are left, after %v deletions", count(), deletions)
		}
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		if runs, attempts := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")), d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); runs > 2 || attempts != runs {
			t.Errorf("%d runs and %d attempts are left", runs, attempts)
		}
	})
}

// Jobs that keep few runs do not fill the table, however many of them run in a pass.
func TestPruneKeepsTheTableSmall(t *testing.T) {
	jobs, passes, keep := 1050, 2, 1
	if prove.Whole() {
		jobs, passes, keep = 5000, 20, 3
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Seed(t, storetest.Seed{Jobs: jobs, Rules: []string{"every 5m"}, Steps: []store.Step{{Executor: "nothing", Spec: []byte("{}")}}})
		d.Exec(t, fmt.Sprintf("UPDATE %s SET keep_runs = %d", d.Table("jobs"), keep))
		var sizes []int
		for range passes {
			d.Clock.Add(5 * time.Minute)
			tk := ticktest.New(t, d.Store)
			tk.Concurrency, tk.Executors["nothing"] = 32, ticktest.Nothing{}
			if r, err := tk.Run(t.Context()); err != nil || r.Failed > 0 {
				t.Fatal(err, r.Failed)
			}
			sizes = append(sizes, d.Int(t, "SELECT count(*) FROM "+d.Table("runs")))
		}
		t.Logf("%d jobs, %d passes: %v runs", jobs, passes, sizes)
		if last := sizes[len(sizes)-1]; last > jobs*keep {
			t.Errorf("%d runs after %d passes, want %d", last, passes, jobs*keep)
		}
	})
}

// A pass that settles a run of a job does not read all gaps that the job has: a job whose runs overlap each other has
// very many after some months. The key has the end of a gap, and a gap is not recorded before its end.
func TestPruneReadsNoYoungGaps(t *testing.T) {
	storetest.Needs(t, "postgres") // the gaps of MariaDB are in the key itself, and SQLite does not count what it reads
	const gaps = 20_000            // of twenty jobs
	var c storetest.Calls
	d := storetest.Open(t, "postgres", store.Options{Wrap: c.Wrap})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
	ticktest.Run(t, d)
	d.Exec(t, fmt.Sprintf("INSERT INTO dbjobs.gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) SELECT j.id + i %% 20, i, x.at, x.at, 'overlap', '', x.at FROM dbjobs.jobs j, (SELECT %s::timestamptz AS at) AS x, %s",
		ticktest.Literal(d, d.Clock.Now().Add(-time.Hour)), storetest.Numbers(gaps)))
	d.Analyze(t)
	d.Clock.Add(5 * time.Minute)
	c.Reset()
	ticktest.Run(t, d)
	looks := 0
	for _, call := range c.All() {
		if strings.HasPrefix(call.SQL, "SELECT") && strings.Contains(call.SQL, "recorded_at <") {
			looks++
			if read := rowsRead(t, d, call); read > 100 {
				t.Errorf("%d rows are read by %s", read, call.SQL)
			}
		}
	}
	if looks == 0 {
		t.Error("no look for old gaps")
	}
}
