package tick_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The packages agree about the ends of time.
func TestEndsOfTime(t *testing.T) {
	if !store.First.Equal(rules.First) || !store.Last.Equal(rules.Last) {
		t.Errorf("%v to %v, and %v to %v", store.First, store.Last, rules.First, rules.Last)
	}
}

// A job whose times lie at the end of time is over then, and stops no other.
func TestTheEndOfTime(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	last := at("9999-12-31T23:59:59Z")
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Step("", "SELECT 1")}
		job := func(name, rule string, with store.Job) store.Job {
			with.Name, with.Own, with.Steps = name, &store.Schedule{Rule: rule}, steps
			return with
		}
		far := []store.Job{
			job("not before", "every 5m", store.Job{NotBefore: last}),
			job("start", "every 5m", store.Job{Start: "at 9999-12-31T23:59:59"}),
			job("dtstart", "DTSTART;TZID=America/New_York:99991231T180000\nRRULE:FREQ=HOURLY", store.Job{}),
			job("jitter", "at 9999-12-31T23:59:59Z", store.Job{Jitter: store.Duration(time.Hour)}),
			job("not after", "every 5m", store.Job{NotAfter: last}),
		}
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: append(far, job("good", "every 5s", store.Job{}))}, store.ApplyOptions{Start: decide.Start}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (name, repeat_after_ms, not_before) VALUES ('again', 3600000, %s)", d.Table("jobs"), ticktest.Literal(d, last)))
		succeeded := 0
		for range 3 {
			d.Clock.Add(10 * time.Second)
			succeeded += ticktest.Run(t, d).Succeeded
		}
		if succeeded < 2 {
			t.Errorf("%d runs of the good job and the others", succeeded)
		}
		jobs, err := d.Jobs(t.Context(), store.JobFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if _, err := json.Marshal(j); err != nil || j.Unreadable != "" || j.NextRun.After(last) || !j.NextRun.IsZero() && j.NextRun.Year() < 2000 {
				t.Errorf("%s: %v: %+v", j.Name, err, j)
			}
			if j.Name != "good" && j.Name != "not after" && j.LastState != "" {
				t.Errorf("%s has run: %+v", j.Name, j)
			}
		}
		for name, j := range map[string]store.Job{
			"not_before": {NotBefore: last.Add(time.Second)}, "not_after": {NotAfter: at("9999-12-31T23:59:59-05:00")}, "year 999": {NotBefore: at("0999-01-01T00:00:00Z")},
		} {
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{job(name, "every 5m", j)}}, store.ApplyOptions{}); err == nil || !strings.Contains(err.Error(), "9999-12-31T23:59:59Z") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "good"}, last.Add(time.Hour), store.Author{}); err == nil || !strings.Contains(err.Error(), "9999-12-31T23:59:59Z") {
			t.Errorf("pause --until: %v", err)
		}
		if _, err := d.RunNow(t.Context(), "good", store.Request{Interval: store.Interval{Start: d.Clock.Now(), End: last.Add(time.Hour)}}); err == nil || !strings.Contains(err.Error(), "9999-12-31T23:59:59Z") {
			t.Errorf("run-now --to: %v", err)
		}
	})
}

// A run that somebody put back by plain SQL runs again, with the attempts that it had on record.
func TestARunPutBackBySQL(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job"), ticktest.Hourly("other")}})
		ticktest.Run(t, d)
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Succeeded != 2 {
			t.Fatalf("%+v", r)
		}
		for range 2 {
			d.Exec(t, fmt.Sprintf("UPDATE %s SET state = 'waiting', settled_at = NULL, finished_at = NULL, attempt = 0, attempts = 0, ready_at = %s WHERE job_id = (SELECT id FROM %s WHERE name = 'job')",
				d.Table("runs"), ticktest.Literal(d, d.Clock.Now()), d.Table("jobs")))
			d.Clock.Add(time.Hour)
			if r := ticktest.Run(t, d); r.Failed+r.Lost > 0 {
				t.Fatalf("%+v", r)
			}
		}
		if got := ticktest.States(t, d, "job"); slices.ContainsFunc(got, func(s string) bool { return s != store.Succeeded }) || len(got) < 2 {
			t.Errorf("job: %v", got)
		}
		if got := ticktest.States(t, d, "other"); len(got) != 3 {
			t.Errorf("other: %v", got)
		}
		if n := d.Int(t, fmt.Sprintf("SELECT MAX(number) FROM %s", d.Table("attempts"))); n != 3 {
			t.Errorf("the newest attempt has the number %d", n)
		}
	})
}

// refuse makes the engine refuse each change of a table that a condition on the new row finds.
func refuse(t *testing.T, d *storetest.DB, when, table, condition string) {
	t.Helper()
	switch d.Engine {
	case "postgres":
		d.Exec(t, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by us'; END $$")
		d.Exec(t, fmt.Sprintf("CREATE TRIGGER refuse BEFORE %s ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION refuse()", when, d.Table(table), condition))
	case "mariadb": // a trigger asks for more than an account of the tests has
		if table == "plans" {
			condition += " AND next_run > '2026-01-05 09:00:00'" // the row as it is may stay
		}
		d.Exec(t, fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT refused CHECK (NOT (%s))", d.Table(table), strings.ReplaceAll(condition, "NEW.", "")))
	default:
		d.Exec(t, fmt.Sprintf("CREATE TRIGGER refuse BEFORE %s ON %s FOR EACH ROW WHEN %s BEGIN SELECT RAISE(ABORT, 'refused by us'); END", when, d.Table(table), condition))
	}
}

// What the engine refuses for one job parks that job, or ends that run; where even this is refused, the job is named. The
// others of the batch go on.
func TestARefusedRowStopsNoOther(t *testing.T) {
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
				for i := range 20 {
					jobs = append(jobs, ticktest.Hourly(fmt.Sprintf("job %02d", i+1)))
				}
				ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
				ticktest.Run(t, d)
				refuse(t, d, c.when, c.table, strings.ReplaceAll(c.condition, "@runs", d.Table("runs")))
				d.Clock.Add(time.Hour)
				r := ticktest.Run(t, d)
				if r.Succeeded != 19 {
					t.Errorf("%d of 19 runs succeeded: %+v", r.Succeeded, r)
				}
				says := map[bool]string{true: "`refused`", false: "refused by us"}[d.Engine == "mariadb"]
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
				if r := ticktest.Run(t, d); r.Succeeded < 20 || r.Failed > 0 {
					t.Errorf("afterwards: %+v", r)
				}
			})
		})
	}
}
