package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

const century = 101 * 365 * 24 * time.Hour

// refusals are the rules that policies have to follow. Each has an edit by plain SQL of a job of "every 5m", the
// statement that repairs it, and the same edit of the definition if a definition can express it. If an engine's own
// checks refuse the statement, that is enough.
var refusals = []struct {
	set, mend string
	change    func(*store.Job)
}{
	{"queue = 'a/b'", "queue = 'another'", func(j *store.Job) { j.Queue = "a/b" }},
	{"queue = ''", "queue = 'another'", nil}, // the default of a definition
	{"group_name = ' g'", "group_name = NULL", func(j *store.Job) { j.Group = " g" }},
	{"group_name = 'nowhere'", "group_name = NULL", func(j *store.Job) { j.Group = "nowhere" }},
	{"overlap = 'never'", "overlap = 'wait'", func(j *store.Job) { j.Overlap = "never" }},
	{"max_running = 0", "max_running = 1", nil},
	{"max_running = 2", "max_running = 1", func(j *store.Job) { j.MaxRunning = 2 }},
	{"missed = 'none'", "missed = 'latest'", func(j *store.Job) { j.Missed = "none" }},
	{"missed_limit = -1", "missed_limit = 100", func(j *store.Job) { j.MissedLimit = -1 }},
	{"missed_limit = 7", "missed_limit = 100", func(j *store.Job) { j.MissedLimit = 7 }},
	{"missed_within_ms = 3185136000000", "missed_within_ms = NULL", func(j *store.Job) { j.MissedWithin = store.Duration(century) }},
	{"missed_within_ms = -1", "missed_within_ms = NULL", nil},
	{"missed_grace_ms = 1000", "missed_grace_ms = 120000", func(j *store.Job) { j.MissedGrace = store.Duration(time.Second) }},
	{"missed = 'skip', missed_grace_ms = 3185136000000", "missed = 'latest', missed_grace_ms = 120000", func(j *store.Job) { j.Missed, j.MissedGrace = "skip", store.Duration(century) }},
	{"missed_grace_ms = -1", "missed_grace_ms = 120000", nil},
	{"retry_attempts = -1", "retry_attempts = 1", nil},
	{"retry_backoff_ms = 3185136000000", "retry_backoff_ms = 10000", func(j *store.Job) { v := store.Duration(century); j.Retry.Backoff = &v }},
	{"retry_max_backoff_ms = 3185136000000", "retry_max_backoff_ms = 3600000", func(j *store.Job) { v := store.Duration(century); j.Retry.MaxBackoff = &v }},
	{"retry_max_backoff_ms = 1000", "retry_max_backoff_ms = 3600000", func(j *store.Job) { v := store.Duration(time.Second); j.Retry.MaxBackoff = &v }},
	{"retry_jitter = 101", "retry_jitter = 10", func(j *store.Job) { v := 101; j.Retry.Jitter = &v }},
	{"max_deliveries = -1", "max_deliveries = 3", func(j *store.Job) { j.MaxDeliveries = -1 }},
	{"on_error = 'stop'", "on_error = 'continue'", func(j *store.Job) { j.OnError = "stop" }},
	{"pause_after_failures = -1", "pause_after_failures = NULL", func(j *store.Job) { j.PauseAfterFailures = -1 }},
	{"on_error = 'pause', pause_after_failures = 3", "on_error = 'continue', pause_after_failures = NULL", func(j *store.Job) { j.OnError, j.PauseAfterFailures = "pause", 3 }},
	{"timeout_ms = 3185136000000", "timeout_ms = NULL", func(j *store.Job) { j.Timeout = store.Duration(century) }},
	{"jitter_ms = 3185136000000", "jitter_ms = 0", func(j *store.Job) { j.Jitter = store.Duration(century) }},
	{"max_runs = -1", "max_runs = NULL", func(j *store.Job) { j.MaxRuns = -1 }},
	{"not_before = @later, not_after = @now", "not_before = NULL, not_after = NULL", func(j *store.Job) { j.NotBefore, j.NotAfter = ticktest.Morning(9, 0), ticktest.Morning(8, 45) }},
	{"start_rule = 'sometime'", "start_rule = NULL", nil}, // a manifest tries it
	{"start_rule = 'D 17:30', start_zone = 'Nowhere/Land'", "start_rule = NULL, start_zone = NULL", nil},
	{"start_rule = 'at 2020-01-01T00:00:00Z'", "start_rule = NULL", func(j *store.Job) { j.Start = "at 2020-01-01T00:00:00Z" }},
	{"start_rule = 'D 17:30', start_zone = 'UTC', not_after = @now", "start_rule = NULL, start_zone = NULL, not_after = NULL", func(j *store.Job) { j.Start, j.NotAfter = "D 17:30", ticktest.Morning(8, 45) }},
	{"start_zone = 'UTC'", "start_zone = NULL", func(j *store.Job) { j.StartZone = "UTC" }},
	{"repeat_after_ms = 1000", "repeat_after_ms = NULL", func(j *store.Job) { j.RepeatAfter = store.Duration(time.Second) }},
	{"repeat_after_ms = 3185136000000", "repeat_after_ms = NULL", func(j *store.Job) { j.RepeatAfter = store.Duration(century) }},
	{"repeat_after_ms = 1000, retry_attempts = 0", "repeat_after_ms = NULL, retry_attempts = 1", func(j *store.Job) {
		until := store.Attempts(0)
		j.RepeatAfter, j.Retry.Attempts = store.Duration(time.Second), &until
	}},
	{"keep_runs = -1", "keep_runs = 1000", func(j *store.Job) { j.Keep.Runs = -1 }},
	{"keep_age_ms = 3185136000000", "keep_age_ms = 7776000000", func(j *store.Job) { j.Keep.Age = store.Duration(century) }},
	{"remove_when_done = true, on_startup = true", "remove_when_done = false", func(j *store.Job) { j.RemoveDone, j.OnStartup = true, true }},
	{`tags = '["a/b"]'`, "tags = '[]'", func(j *store.Job) { j.Tags = []string{"a/b"} }},
	{"tags = '3'", "tags = '[]'", nil},
}

// apply refuses a breach of each rule with a message. A row that plain SQL makes in this way parks only that job, with
// the same message, and the job comes back when the row is repaired.
func TestParkedForARowThatApplyRefuses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		base := func(i int) store.Job {
			return store.Job{Name: fmt.Sprintf("job %d", i), Queue: "another", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		}
		good := base(0)
		good.Name = "good"
		defs := store.Definitions{Jobs: []store.Job{good}}
		for i := range refusals {
			defs.Jobs = append(defs.Jobs, base(i))
		}
		ticktest.Apply(t, d, defs)
		ticktest.DecideOnly(t, d)
		want, refused := map[string]string{}, 0
		for i, r := range refusals {
			j := base(i)
			if r.change != nil {
				r.change(&j)
				_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{DryRun: true, Start: decide.Start})
				if err == nil {
					t.Errorf("%s: apply takes it", r.set)
					continue
				}
				want[j.Name] = err.Error()
			}
			set := strings.NewReplacer("@now", ticktest.Literal(d, ticktest.Morning(8, 45)), "@later", ticktest.Literal(d, ticktest.Morning(9, 0))).Replace(r.set)
			if _, err := d.SQL.Exec("UPDATE " + d.Table("jobs") + " SET " + set + " WHERE name = '" + j.Name + "'"); err != nil {
				refused++
				delete(want, j.Name)
				continue
			}
			if want[j.Name] == "" {
				want[j.Name] = "…"
			}
		}
		if refused > len(refusals)/2 {
			t.Errorf("%d of %d statements were refused by the engine", refused, len(refusals))
		}
		d.Clock.Set(ticktest.Morning(8, 5))
		ticktest.DecideOnly(t, d)
		jobs, err := d.Jobs(t.Context(), store.JobFilter{})
		if err != nil || len(jobs) != len(refusals)+1 {
			t.Fatalf("%v: %d jobs", err, len(jobs))
		}
		for _, j := range jobs {
			w, parked := want[j.Name]
			switch {
			case parked && (j.Parked == "" || w != "…" && j.Parked != w):
				t.Errorf("%s: parked because of %q, want %q", j.Name, j.Parked, w)
			case !parked && (j.Parked != "" || j.RunsMade != 1):
				t.Errorf("%s, with which nothing is wrong: %q, %d runs", j.Name, j.Parked, j.RunsMade)
			case parked && j.RunsMade != 0:
				t.Errorf("%s ran all the same", j.Name)
			}
		}
		for i, r := range refusals {
			if want[base(i).Name] != "" {
				d.Exec(t, "UPDATE "+d.Table("jobs")+" SET "+r.mend+" WHERE name = '"+base(i).Name+"'")
			}
		}
		for _, minute := range []int{6, 10} { // for the times that were due meanwhile, the row's earlier validity counts
			d.Clock.Set(ticktest.Morning(8, minute))
			ticktest.DecideOnly(t, d)
		}
		if jobs, err = d.Jobs(t.Context(), store.JobFilter{}); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(jobs, func(j store.JobStatus) bool { return j.Parked != "" || j.RunsMade == 0 }); i >= 0 {
			t.Errorf("mended: %s: %q, %d runs", jobs[i].Name, jobs[i].Parked, jobs[i].RunsMade)
		}
	})
}

// A row that plain SQL has made invalid parks its job and stops no other job. When the row is repaired, the job comes
// back, and runs no earlier time.
func TestParkedForABadRowIsThatJobOnly(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		jobs := []store.Job{}
		for _, name := range []string{"good", "bad rule", "bad policy", "no steps", "bad spec", "other owner", "dropped table"} {
			text := "SELECT 1"
			if name == "dropped table" {
				text = "INSERT INTO dropped VALUES (1)"
			}
			jobs = append(jobs, store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", text)}})
		}
		d.Exec(t, "CREATE TABLE dropped (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		id := func(name string) int { return d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = '"+name+"'") }
		d.Exec(t, fmt.Sprintf("UPDATE %s SET rule = 'every full moon' WHERE job_id = %d", d.Table("schedules"), id("bad rule")))
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET max_running = 3 WHERE name = 'bad policy'")
		d.Exec(t, fmt.Sprintf("DELETE FROM %s WHERE job_id = %d", d.Table("steps"), id("no steps")))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET spec = '{\"sql\": 7}' WHERE job_id = %d", d.Table("steps"), id("bad spec")))
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET owner = 'somebody' WHERE name = 'other owner'")
		if r := ticktest.Run(t, d); len(r.Parked) != 3 { // the ticks of the other owner handle his job
			t.Fatalf("parked: %+v", r.Parked)
		}
		d.Exec(t, "DROP TABLE dropped")
		d.Clock.Add(5 * time.Minute)
		good := 1
		if d.Engine == "sqlite" {
			good = 2
		}
		r := ticktest.Run(t, d)
		if r.Succeeded != good || r.Failed != 2 { // the bad spec and the dropped table fail as runs
			t.Fatalf("%+v", r)
		}
		d.Exec(t, fmt.Sprintf("UPDATE %s SET rule = 'every 10m' WHERE job_id = %d", d.Table("schedules"), id("bad rule")))
		if r := ticktest.Run(t, d); r.Made != 0 {
			t.Fatalf("a mended rule fired back: %+v", r)
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != good+1 {
			t.Fatalf("mended: %+v", r)
		}
	})
}

// A mistake that plain SQL makes in a step parks the job with the reason: at once if the job is new or changed,
// otherwise with the first run that fails because of it. No statement of that run is sent. When the mistake is
// repaired, the job goes on by itself.
func TestParkedForAMistakeInAStep(t *testing.T) {
	cases := []struct{ set, want string }{
		{`spec = '{"sql": ["INSERT INTO effects VALUES (1)"], "args": ["${scheduled_fro}"]}'`, "sql: argument \"${scheduled_fro}\": ${scheduled_fro} is not known; there are ${scheduled_for}, "},
		{`spec = '{"sql": ["INSERT INTO effects VALUES (1)"], "args": ["${secret:}"]}'`, "${secret:} names no secret"},
		{`spec = '{"sql": ["INSERT INTO effects VALUES (1)"], "arg": [1]}'`, `unknown field "arg"`},
		{`spec = '{}'`, "sql: has no statement"},
		{`on_success = 'step:nowhere'`, `on_success: there is no step "nowhere"`},
		{`on_failure = 'retry'`, "on_failure: "},
	}
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		defs := store.Definitions{Jobs: []store.Job{{Name: "other", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}
		for i := range cases {
			for _, name := range []string{"new", "old"} {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(name, i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("load", "INSERT INTO effects VALUES (1)")}})
			}
		}
		ticktest.Apply(t, d, defs)
		spoil := func(name string) {
			for i, c := range cases {
				d.Exec(t, "UPDATE "+d.Table("steps")+" SET "+c.set+" WHERE job_id = (SELECT id FROM "+d.Table("jobs")+fmt.Sprintf(" WHERE name = '%s%d')", name, i))
			}
		}
		parked := func(name string, want bool) {
			t.Helper()
			for i, c := range cases {
				j, err := d.Job(t.Context(), fmt.Sprint(name, i))
				if err != nil {
					t.Fatal(err)
				}
				said := strings.Contains(j.Parked, c.want) && strings.Contains(j.Parked, j.Name+", step load: ")
				if want && !said || !want && j.Parked != "" {
					t.Errorf("%s says %q; want it parked with %q: %t", j.Name, j.Parked, c.want, want)
				}
			}
		}
		spoil("new")
		ticktest.Run(t, d)
		parked("new", true)
		parked("old", false)
		spoil("old")
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 1 || d.Int(t, "SELECT count(*) FROM effects") != 0 {
			t.Fatalf("want the other job's run alone: %+v", r)
		}
		parked("new", true)
		parked("old", true)
		for i, c := range cases {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: fmt.Sprint("old", i)})
			if err != nil || len(runs) != 1 || runs[0].State != store.Failed || !strings.Contains(runs[0].Error, c.want) {
				t.Fatalf("%v: %+v", err, runs)
			}
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Started != 1 {
			t.Fatalf("parked jobs go on: %+v", r)
		}
		d.Exec(t, "UPDATE "+d.Table("steps")+` SET spec = '{"sql": ["INSERT INTO effects VALUES (1)"]}', on_success = 'next', on_failure = 'fail' WHERE name = 'load'`)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 2*len(cases)+1 || d.Int(t, "SELECT count(*) FROM effects") != 2*len(cases) {
			t.Fatalf("want all to run again: %+v", r)
		}
		parked("new", false)
		parked("old", false)
	})
}

// A job that is parked for a step goes on with the next pass after its step is written again, although its next time is far: by
// apply, or by a routine.
func TestParkedForAStepThatIsWrittenAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{{Name: "load", Own: &store.Schedule{Rule: "every 24h"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}
		ticktest.Apply(t, d, defs)
		repairs := []func(){func() { ticktest.Apply(t, d, defs) }}
		switch storetest.Dialect(d.Engine) {
		case "postgres":
			repairs = append(repairs, func() { d.Exec(t, `SELECT dbjobs.alter_job('load', '{"sql": "SELECT 1"}')`) })
		case "mysql":
			repairs = append(repairs, func() { d.Exec(t, `CALL dbjobs_alter_job('load', '{"sql": "SELECT 1"}', '')`) })
		}
		parked := func() string {
			t.Helper()
			ticktest.Run(t, d)
			j, err := d.Job(t.Context(), "load")
			if err != nil {
				t.Fatal(err)
			}
			return j.Parked
		}
		for i, repair := range repairs {
			parked()
			d.Exec(t, "UPDATE "+d.Table("steps")+" SET spec = '{}'")
			ticktest.RunNow(t, d, "load", store.Request{})
			for range 2 { // a pass decides the request, and parks the job when its run fails
				if why := parked(); why != "" {
					break
				}
			}
			if why := parked(); !strings.Contains(why, "has no statement") {
				t.Fatalf("repair %d: parked: %q", i, why)
			}
			repair()
			if why := parked(); why != "" {
				t.Errorf("repair %d: still parked: %s", i, why)
			}
		}
	})
}

// Plain SQL gives a step a value that is refused when a step is made. The job is parked, and says why.
func TestParkedForAStepTriedForEver(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", RepeatAfter: store.Duration(time.Hour), Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}}}})
		d.Exec(t, "UPDATE "+d.Table("steps")+" SET retry_attempts = 0")
		r := ticktest.Run(t, d)
		if j, err := d.Job(t.Context(), "job"); err != nil || r.Started != 0 || !strings.Contains(j.Parked, "retry.attempts: until-next never ends with repeat_after") {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// refuse makes the engine refuse each change of a table if the new row fulfils a condition.
func refuse(t *testing.T, d *storetest.DB, when, table, condition string) {
	t.Helper()
	switch d.Engine {
	case "postgres":
		d.Exec(t, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by us'; END $$")
		d.Exec(t, fmt.Sprintf("CREATE TRIGGER refuse BEFORE %s ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION refuse()", when, d.Table(table), condition))
	case "mariadb": // a trigger needs a right that the tests' account does not have
		if table == "plans" {
			condition += " AND next_run > '2026-01-05 09:00:00'" // the present row may stay
		}
		d.Exec(t, fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT refused CHECK (NOT (%s))", d.Table(table), strings.ReplaceAll(condition, "NEW.", "")))
	default:
		d.Exec(t, fmt.Sprintf("CREATE TRIGGER refuse BEFORE %s ON %s FOR EACH ROW WHEN %s BEGIN SELECT RAISE(ABORT, 'refused by us'); END", when, d.Table(table), condition))
	}
}

// A row that the engine refuses for one job parks that job, or ends that run. If even this is refused, the job is
// named. The other jobs of the batch go on.
func TestParkedForARowThatTheEngineRefuses(t *testing.T) {
	for name, c := range map[string]struct{ when, table, condition, state string }{
		"runs are not made":       {"INSERT", "runs", "NEW.job_id = 7", store.JobParked},
		"the plan is not written": {"UPDATE", "plans", "NEW.job_id = 7", ""},
		"runs are not taken":      {"UPDATE", "runs", "NEW.job_id = 7 AND NEW.state = 'running'", store.JobSleeping},
		"runs do not end":         {"UPDATE", "runs", "NEW.job_id = 7 AND NEW.state IN ('running', 'failed')", store.JobSleeping},
		"attempts do not begin":   {"INSERT", "attempts", "NEW.run_id IN (SELECT id FROM @runs WHERE job_id = 7)", store.JobSleeping},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if c.table == "attempts" && d.Engine != "sqlite" {
					t.Skip("the condition has a subquery")
				}
				var jobs []store.Job
				for i := range 8 {
					jobs = append(jobs, ticktest.Hourly(fmt.Sprintf("job %02d", i+1)))
				}
				ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
				ticktest.Run(t, d)
				refuse(t, d, c.when, c.table, strings.ReplaceAll(c.condition, "@runs", d.Table("runs")))
				d.Clock.Add(time.Hour)
				r := ticktest.Run(t, d)
				if r.Succeeded != 7 {
					t.Errorf("%d of 7 runs succeeded: %+v", r.Succeeded, r)
				}
				says := storetest.For(d.Server, map[string]string{"mariadb": "`refused`", "mysql": "'refused'", "postgres": "refused by us", "sqlite": "refused by us"})
				told := slices.ContainsFunc(r.Parked, func(p store.Parked) bool {
					return strings.HasSuffix(p.Job, "job 07") && strings.Contains(p.Error, says)
				}) || slices.ContainsFunc(r.Runs, func(e tick.Ended) bool {
					return strings.HasSuffix(e.Job, "job 07") && e.State == store.Failed && strings.Contains(e.Error, says)
				})
				if !told {
					t.Errorf("job 07 is not named: %+v", r)
				}
				j, err := d.Job(t.Context(), "job 07")
				if err != nil || c.state != "" && j.State != c.state {
					t.Errorf("%v: %+v", err, j)
				}
				d.Exec(t, map[string]string{"postgres": "DROP TRIGGER refuse ON " + d.Table(c.table), "sqlite": "DROP TRIGGER refuse",
					"mariadb": "ALTER TABLE " + d.Table(c.table) + " DROP CONSTRAINT refused"}[d.Engine])
				d.Clock.Add(time.Hour)
				if r := ticktest.Run(t, d); r.Succeeded < 8 || r.Failed > 0 {
					t.Errorf("afterwards: %+v", r)
				}
			})
		})
	}
}
