package tick_test

import (
	"context"
	"errors"
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

// edits are changes of the job x that somebody has made and not committed yet, one for each kind of row.
var edits = []struct{ what, statement string }{
	{"its definition", "UPDATE jobs SET description = 'x' WHERE id = X"},
	{"its steps", "UPDATE steps SET timeout_ms = 5 WHERE job_id = X"},
	{"its schedule", "UPDATE schedules SET description = 'x' WHERE job_id = X"},
	{"its link", "DELETE FROM job_schedules WHERE job_id = X"},
	{"its group", "UPDATE groups SET max_running = 9 WHERE name = 'g'"},
	{"a pause of it", "UPDATE pauses SET reason = 'x' WHERE subject_id = X"},
	{"a new pause of it", "INSERT INTO pauses (scope, subject_id) VALUES ('job', X)"},
	{"its plan", "UPDATE plans SET streak = streak + 1 WHERE job_id = X"},
	{"its planned rules", "DELETE FROM plan_rules WHERE job_id = X"},
	{"the plan of its group", "DELETE FROM group_plans WHERE name = 'g'"},
	{"its waiting runs", "UPDATE runs SET priority = 5 WHERE job_id = X AND state = 'waiting'"},
	{"its queued run", "UPDATE runs SET error = 'x' WHERE job_id = X AND state = 'queued'"},
	{"its running run", "UPDATE runs SET error = 'x' WHERE job_id = X AND state = 'running'"},
	{"its ended runs", "UPDATE runs SET attempt = attempt + 1 WHERE job_id = X AND state = 'succeeded'"},
	{"its unsettled run", "UPDATE runs SET error = 'x' WHERE job_id = X AND state = 'succeeded' AND settled_at IS NULL"},
	{"its attempts", "UPDATE attempts SET error = 'x' WHERE run_id IN (SELECT id FROM runs WHERE job_id = X)"},
	{"its gaps", "DELETE FROM gaps WHERE job_id = X"},
	{"its history", "DELETE FROM changes WHERE subject_id = X"},
	{"the record of the ticks", "UPDATE ticks SET passes = 1"},
}

// healthy is the number of other jobs beside x.
const healthy = 30

// An editor's open transaction stops only the job that it changes, whatever the table. If the engine has locked more
// than that job's rows, the pass says which jobs wait for which session. When the transaction ends, all jobs go on.
func TestEditThatStaysOpenHoldsUpNoOtherJob(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue // an open write stops all others, for the busy timeout
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			x := besideAnEditor(t, d)
			told := 0
			for _, edit := range edits {
				if !prove.Whole() && !strings.Contains("its definition, its plan, its ended runs, the record of the ticks", edit.what) {
					continue
				}
				told += underEdit(t, d, x, edit.what, edit.statement)
			}
			t.Logf("%d edits: beside %d of them the pass has left healthy jobs, and said so", len(edits), told)
			if limit := map[string]int{"postgres": 0, "mariadb": 6}[storetest.Dialect(e)]; told > limit {
				t.Errorf("beside %d edits a healthy job was left, want at most %d", told, limit)
			}
		})
	}
}

// nothingDone is a tick whose steps have no effect: the test is about dbjobs' own rows only.
func nothingDone(t *testing.T, d *storetest.DB) *tick.Tick {
	t.Helper()
	return ticktest.NewDoing(t, d, ticktest.Nothing{}.Execute)
}

func mustPass(t *testing.T, d *storetest.DB) {
	t.Helper()
	if _, err := nothingDone(t, d).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// besideAnEditor makes x, with a group and a history, and the healthy jobs.
func besideAnEditor(t *testing.T, d *storetest.DB) (x int64) {
	t.Helper()
	defs := store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 50}}}
	add := func(name string) {
		defs.Jobs = append(defs.Jobs, store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Overlap: "allow", MaxRunning: 100, Missed: "all", MissedLimit: 2,
			Steps: []store.Step{ticktest.Call("")}})
	}
	for i := range healthy / 2 {
		add(fmt.Sprintf("before%02d", i))
	}
	add("x")
	defs.Jobs[len(defs.Jobs)-1].Group = "g"
	for i := range healthy / 2 {
		add(fmt.Sprintf("behind%02d", i))
	}
	ticktest.Apply(t, d, defs)
	mustPass(t, d)
	for range 15 { // a history, so that it pays to use an index
		d.Clock.Add(15 * time.Minute)
		mustPass(t, d)
	}
	if d.Engine == "mariadb" {
		for _, name := range []string{"runs", "attempts", "gaps", "changes", "plans"} {
			if _, err := d.SQL.Exec("ANALYZE TABLE " + d.Table(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return int64(d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = 'x'"))
}

// underEdit lets a pass meet an edit, and reports whether the pass has left out a healthy job. The pass has to say so
// then.
func underEdit(t *testing.T, d *storetest.DB, x int64, what, statement string) (left int) {
	t.Helper()
	for _, table := range []string{"jobs", "steps", "schedules", "job_schedules", "groups", "calendars", "pauses", "plans", "plan_rules", "group_plans", "runs", "attempts", "gaps", "changes", "ticks"} {
		for _, before := range []string{"UPDATE ", "FROM ", "INTO "} {
			statement = strings.ReplaceAll(statement, before+table+" ", before+d.Table(table)+" ")
		}
	}
	statement = strings.ReplaceAll(statement, "X", fmt.Sprint(x))
	// One run of x in each state: ended and not settled, running, queued, waiting.
	ticktest.Request(t, d, "x")
	ticktest.Request(t, d, "x")
	ticktest.Request(t, d, "x")
	ticktest.DecideOnly(t, d)
	first := ""
	for range 2 {
		tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "other", Lease: time.Hour})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		first = tasks[0].Run.ID
	}
	d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'succeeded', lease_until = NULL, error = NULL WHERE job_id = "+fmt.Sprint(x)+" AND id = '"+first+"'")
	ticktest.Request(t, d, "x")
	d.Clock.Add(11 * time.Minute)

	tx, err := d.SQL.Begin() // at the default level of the engine
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(statement); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	tk := nothingDone(t, d)
	tk.Budget = 30 * time.Second
	r, err := tk.Run(ctx)
	took := time.Since(began).Round(10 * time.Millisecond)
	ran := 0
	for _, e := range r.Runs {
		if !strings.HasSuffix(e.Job, "/x") && e.State == store.Succeeded {
			ran++
		}
	}
	t.Logf("%-24s %6s: %d of %d healthy runs; %d jobs left: %v %q; %v", what, took, ran, 2*healthy, r.LockedJobs, r.Locked, r.LockHolders, err)
	if ran < 2*healthy {
		left = 1
		if said := r.LockHolders != "" || errors.Is(err, store.ErrLocked) && strings.Contains(err.Error(), "locks"); !said {
			t.Errorf("%s: a healthy job was left, and the pass does not say why: %v: %+v", what, err, r)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if r, err := nothingDone(t, d).Run(ctx); err != nil || r.LockedJobs > 0 {
		t.Fatalf("%s: the lock is gone: %v: %+v", what, err, r)
	}
	d.Exec(t, "UPDATE "+d.Table("runs")+" SET lease_until = NULL, state = 'cancelled' WHERE state = 'running'")
	mustPass(t, d)
	if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE settled_at IS NULL"); n > 0 {
		t.Fatalf("%s: %d runs are open after it", what, n)
	}
	return left
}
