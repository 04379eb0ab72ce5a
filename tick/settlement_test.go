package tick_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run that succeeds is settled with its end, without a decision, unless something has changed since the decision that
// made the run. The record is the same in both cases.
func TestSettledWithItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		meddle    string // while the run executes
		decisions int
		keep      time.Duration
		followers int
	}{
		"alone":                     {"", 1, 90 * 24 * time.Hour, 0},
		"a job runs after it":       {"INSERT INTO %[1]s (job_id, after_job_id) SELECT f.id, o.id FROM %[2]s f CROSS JOIN %[2]s o WHERE f.name = 'follower' AND o.name = 'job'", 4, 90 * 24 * time.Hour, 1},
		"its definition is edited":  {"UPDATE %[2]s SET keep_age_ms = 3600000 WHERE name = 'job'", 2, time.Hour, 0},
		"its plan has gone on":      {"UPDATE %[3]s SET version = version + 1", 2, 90 * 24 * time.Hour, 0},
		"its plan waits for repair": {"UPDATE %[3]s SET parked = 'x'", 2, 90 * 24 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Call("")}},
					{Name: "follower", Steps: []store.Step{ticktest.Nop("")}}}})
				ticktest.Run(t, d)
				d.Exec(t, "UPDATE "+d.Table("plans")+" SET streak = 2")
				d.Clock.Add(5 * time.Minute)
				r, err := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
					if c.meddle != "" {
						d.Exec(t, fmt.Sprintf(c.meddle+"%[4]s", d.Table("job_after"), d.Table("jobs"), d.Table("plans"), ""))
					}
					return executor.Result{}, nil
				}).Run(t.Context())
				if err != nil || r.Decided != c.decisions || r.Succeeded != 1+c.followers {
					t.Fatalf("%v: %d decided: %+v", err, r.Decided, r)
				}
				run := ticktest.LastRun(t, d, "job")
				if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE job_id = (SELECT id FROM "+d.Table("jobs")+" WHERE name = 'job') AND expires_at = "+ticktest.Literal(d, run.FinishedAt.Add(c.keep))); n != 1 || run.SettledAt.IsZero() {
					t.Errorf("it is kept until another time: %+v", run)
				}
				jobs, err := d.Jobs(t.Context(), store.JobFilter{})
				if err != nil || len(jobs) != 2 {
					t.Fatal(err, jobs)
				}
				for _, j := range jobs {
					if j.Name != "job" {
						continue
					}
					if j.Cycles != 1 || j.Streak != 0 || j.LastState != store.Succeeded || !j.LastFinished.Equal(run.FinishedAt) || !j.LastSuccess.Equal(run.FinishedAt) || j.RunsMade != 1 {
						t.Errorf("its plan says %+v", j)
					}
				}
			})
		})
	}
}

// Somebody decides for the job while its run ends. The end does not wait for anybody, and a later pass settles the run.
// The end does not wait for an editor of the job, either.
func TestSettledWhereSomethingIsLocked(t *testing.T) {
	for table, open := range map[string]int{"plans": 1, "jobs": 0} {
		t.Run(table, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Run(t, d)
				d.Clock.Add(5 * time.Minute)
				tx, err := d.SQL.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }()
				r, err := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
					_, err := tx.ExecContext(t.Context(), "SELECT * FROM "+d.Table(table)+" FOR UPDATE")
					return executor.Result{}, err
				}).Run(t.Context())
				unsettled := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded' AND settled_at IS NULL")
				if err != nil || r.Succeeded != 1 || unsettled != open {
					t.Fatalf("%v: %d are not settled: %+v", err, unsettled, r)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				ticktest.Run(t, d)
				if n := d.Int(t, "SELECT count(*) FROM "+d.Table("plans")+" WHERE cycles = 1"); n != 1 || ticktest.LastRun(t, d, "job").SettledAt.IsZero() {
					t.Errorf("it is not settled: %d", n)
				}
			})
		})
	}
}
