package load

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// countsJobs matches a statement that reads a whole table, but no runs: the number of jobs, which is a
// figure of check.
var countsJobs = regexp.MustCompile(`(?i)^SELECT (pg_catalog\.)?COUNT\(\*\) FROM dbjobs[._]jobs WHERE`)

// planCost finds the costs that PostgreSQL expects of a statement, in the first line of its plan.
var planCost = regexp.MustCompile(`cost=\S+?\.\.(\d+)\.`)

// Indexes answer what people ask in the morning, however many jobs, runs and triggers there are. They
// also answer what commands about one job ask.
func TestExplainQuestionsUseIndexes(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			n := extent{8_000, 20_000, 4_000, 4_000, 50}
			switch {
			case e == "postgres": // it reads smaller tables whole
				n.jobs, n.gaps, n.pauses = 20_000, 50_000, 50_000
			case e == "sqlite" && !prove.Whole(): // its plans do not depend on the size
				n = extent{4_500, 6_000, 3_000, 500, 50}
			}
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			crowded(t, d, n)
			troubles(t, d)
			d.Analyze(t)
			ctx := t.Context()
			questions := map[string]func() error{
				"jobs": func() error {
					st, err := d.Standing(ctx, store.OverdueAfter, time.Hour, 5)
					if err == nil && (len(st.Parked.First) != 5 || st.Parked.Count < 10 || len(st.Failing.First) != 5) {
						t.Errorf("%d of %d parked, %d of %d failing", len(st.Parked.First), st.Parked.Count, len(st.Failing.First), st.Failing.Count)
					}
					return err
				},
				"triggers": func() error {
					list, err := d.Triggers(ctx)
					if err == nil {
						_, err = d.Silences(ctx, list, d.Clock.Now(), d.Clock.Now().Add(-7*24*time.Hour))
					}
					return err
				},
				"check": func() error {
					if st, err := d.Standing(ctx, 0, 0, 20); err != nil || st.Failing.Count < 40 {
						t.Errorf("%v: %d failing", err, st.Failing.Count)
					}
					if f, err := d.Figures(ctx, 0); err != nil || f.Jobs != n.jobs || f.Stuck == 0 || f.StuckJob == "" {
						t.Errorf("%v: %+v", err, f)
					}
					_, err := d.Calendars(ctx)
					return err
				},
				"what is paused": func() error { _, err := d.CountPaused(ctx); return err },
				"what waits":     func() error { _, err := d.OpenRuns(ctx, 20); return err },
				"what runs":      func() error { _, err := d.LongestRuns(ctx, 5); return err },
				"errors": func() error {
					_, err := d.Failures(ctx, store.FailureFilter{Since: d.Clock.Now().Add(-24 * time.Hour), Limit: 50})
					return err
				},
				"errors of a job": func() error { _, err := d.Failures(ctx, store.FailureFilter{Job: "job 8", Limit: 50}); return err },
				"pauses":          func() error { _, err := d.Pauses(ctx, false, 1000); return err },
			}
			for name, ask := range questions {
				c.Reset()
				began := time.Now()
				if err := ask(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				t.Logf("%s: %s, %d calls", name, time.Since(began).Round(time.Millisecond), c.Count())
				for _, call := range c.All() {
					if call.SQL == "" || countsJobs.MatchString(call.SQL) {
						continue
					}
					plan := explain(t, d, call)
					if m := planCost.FindStringSubmatch(plan[0]); e == "postgres" && (m == nil || len(m[1]) > len("99999")) {
						t.Errorf("%s: %s: the server compiles a statement of such costs (jit_above_cost), which takes longer than to execute it:\n%s", name, call.SQL, strings.Join(plan, "\n"))
					}
					if name == "what is paused" {
						continue // a pause of a tag, an owner or all jobs looks at all jobs
					}
					for _, problem := range wholeTables(d.Engine, call.SQL, plan, n) {
						t.Errorf("%s: %s: %s:\n%s", name, call.SQL, problem, strings.Join(plan, "\n"))
					}
				}
			}
			lists(t, d, &c, n)
			t.Run("one job", func(t *testing.T) { oneJob(t, d, &c, n) }) // the last one: it changes the data
		})
	}
}

// troubles plans the jobs, and makes some of them need somebody. Each job gets a run that ended last.
func troubles(t *testing.T, d *storetest.DB) {
	t.Helper()
	tk := ticktest.New(t, d.Store)
	tk.Batch, tk.Limit = 1000, 1
	if r, err := tk.Run(t.Context()); err != nil || r.Decided == 0 {
		t.Fatal(err, r)
	}
	d.Exec(t, "UPDATE "+d.Table("plans")+" SET parked = 'for a test' WHERE job_id % 100 = 7")
	d.Exec(t, "UPDATE "+d.Table("plans")+" SET streak = 3 WHERE job_id % 100 = 9")
	plans, runs := d.Table("plans"), d.Table("runs")
	d.Exec(t, "UPDATE "+plans+" SET last_run_id = (SELECT r.id FROM "+runs+" r WHERE r.job_id = "+plans+".job_id AND r.number = 2)")
	happen(t, d)
}
