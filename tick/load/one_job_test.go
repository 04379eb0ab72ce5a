package load

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// oneJob checks that a command about one job or one schedule finds its rows by a key, however many
// others there are. None of its statements reads a table from end to end, but that which looks for
// the jobs that name a job as a hook: no index has the names of hooks.
func oneJob(t *testing.T, d *storetest.DB, c *storetest.Calls, n extent) {
	if d.Engine == "postgres" { // the ids were given by hand
		d.Exec(t, "SELECT setval(pg_get_serial_sequence('dbjobs.jobs', 'id'), 1000000), setval(pg_get_serial_sequence('dbjobs.schedules', 'id'), 1000000)")
	}
	failed, err := d.Runs(t.Context(), store.RunFilter{States: []string{store.Failed}, Limit: 1})
	if err != nil || len(failed) != 1 {
		t.Fatal(err, len(failed))
	}
	ctx, who := t.Context(), store.Author{By: "ada"}
	paused := store.Subject{Scope: store.ScopeJob, Name: "job 11"}
	another := store.Definitions{Jobs: []store.Job{{Name: "another", Schedules: []string{"schedule 2"}, After: []store.After{{Job: "job 9"}},
		Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}
	list := func(states ...string) func() error {
		return func() error {
			_, err := d.Runs(ctx, store.RunFilter{Job: "job 8", States: states, Limit: 20})
			return err
		}
	}
	commands := map[string]func() error{
		"run list, of a job":          list(),
		"run list, of a job, failed":  list(store.Failed),
		"run list, of a job, waiting": list(store.Waiting),
		"job show":                    func() error { _, err := d.Job(ctx, "job 8"); return err },
		"job show, after":             func() error { _, err := d.Job(ctx, "job 97"); return err },
		"job gaps":                    func() error { _, err := d.Gaps(ctx, "job 8", 10); return err },
		"job pause":                   func() error { _, err := d.Pause(ctx, paused, time.Time{}, who); return err },
		"job run-now":                 func() error { _, err := d.RunNow(ctx, "job 8", store.Request{Author: who}); return err },
		"job create":                  func() error { _, err := d.Apply(ctx, another, store.ApplyOptions{CreateOnly: true}); return err },
		"job remove":                  func() error { return d.RemoveJob(ctx, "job 13", who) },
		"run retry":                   func() error { _, err := d.RetryRun(ctx, failed[0].ID, "", who); return err },
		"schedule show":               func() error { _, err := d.ScheduleStatuses(ctx, "schedule 2"); return err },
		"schedules by name":           func() error { _, err := d.KnownSchedules(ctx, []string{"schedule 2"}); return err },
	}
	for name, command := range commands {
		c.Reset()
		if err := command(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, call := range c.All() {
			if call.SQL == "" || strings.Contains(call.SQL, "pauses p") && strings.Contains(call.SQL, "LEFT JOIN") {
				continue // all pauses are read
			}
			if name == "job remove" && strings.Contains(call.SQL, "IN (on_failed") {
				continue // it looks for hooks
			}
			plan := explain(t, d, call)
			if problem := unplanned(d.Engine, plan, "runs_number|runs_open"); d.Engine == "sqlite" && strings.HasPrefix(name, "run list") && strings.Contains(call.SQL, "ORDER BY r.created_at") && problem != "" {
				t.Errorf("%s: %s %s: the other engines plan with the values:\n%s", name, call.SQL, problem, strings.Join(plan, "\n"))
			}
			for _, problem := range wholeTables(d.Engine, call.SQL, plan, n) {
				t.Errorf("%s: %s: %s:\n%s", name, call.SQL, problem, strings.Join(plan, "\n"))
			}
		}
	}
}

// However often runs of a job were requested, neither what is asked of the job, nor a request, nor the look for old entries of the
// change log reads the entries of the requests. The database has no statistics of them, and then it has.
func TestRequestsOfTheJobAreNotRead(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			const requests, most = 10_000, 1000 // a look for old entries reads a hundred of them
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap, Chance: func() float64 { return 0 }})
			w, exec := words[d.Engine], fill(t, d)
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "orders", Steps: []store.Step{ticktest.Step("", "SELECT 1 FROM nowhere")}}}})
			d.Exec(t, "UPDATE "+d.Table("changes")+" SET changed_at = "+w.at("86400 * 500"))
			exec(`INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action)
				SELECT %s, 'ada', 'job', j.id, j.name, 'run-now' FROM dbjobs.jobs j, NUMBERS`, requests, w.at("86400"))
			asks := func() {
				c.Reset()
				failed := ticktest.RunNow(t, d, "orders", store.Request{})
				ticktest.Run(t, d)
				if _, err := d.RetryRun(t.Context(), failed.ID, "", store.Author{}); err != nil {
					t.Fatal(err)
				}
				looked := 0
				for _, call := range append(c.All(), storetest.Call{Kind: storetest.Query, SQL: "SELECT * FROM " + d.Table("v_jobs")}) {
					if call.Kind != storetest.Query || !strings.Contains(call.SQL, d.Table("changes")+" l") && !strings.Contains(call.SQL, d.Table("v_jobs")) {
						continue
					}
					looked++
					if read := rowsRead(t, d, call); read > most {
						t.Errorf("%d rows are read, more than %d, by %s", read, most, call.SQL)
					}
					if plan := strings.Join(explain(t, d, call), "\n"); e == "sqlite" && strings.Contains(plan, "changes_subject") {
						t.Errorf("%s:\n%s", call.SQL, plan)
					}
				}
				if looked < 5 {
					t.Errorf("only %d statements look for changes", looked)
				}
			}
			asks()
			d.Analyze(t)
			asks()
		})
	}
}
