package tick_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A standby takes over that has not got the last transaction of the old server, although that one had confirmed its COMMIT: the
// effect of an atomic step is gone, and the record of its attempt with it. The run has not succeeded then. It executes again.
func TestAtomicStepWhoseCommitIsGoneExecutesAgain(t *testing.T) {
	for _, jobs := range []int{1, 4} { // the end of one run, and of several together
		t.Run(fmt.Sprint(jobs), func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				d.Exec(t, "CREATE TABLE effects (n int)")
				var defs store.Definitions
				for n := range jobs {
					defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job", n), MaxDeliveries: 1, Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)")}})
				}
				ticktest.Apply(t, d, defs)
				for _, j := range defs.Jobs {
					ticktest.Request(t, d, j.Name)
				}
				tk := ticktest.New(t, d.Store)
				steps := tk.Executors["sql"]
				tk.Executors["sql"] = ticktest.Doing(func(ctx context.Context, r executor.Request) (executor.Result, error) {
					res, err := steps.Execute(ctx, r)
					if err == nil && res.Ended {
						d.Exec(t, "DELETE FROM effects")
						d.Exec(t, "UPDATE "+d.Table("attempts")+" SET state = 'running', finished_at = NULL WHERE run_id = '"+r.Task.Run.ID+"'")
					}
					return res, err
				})
				if r, err := tk.Run(t.Context()); err != nil || r.Waiting != jobs || r.Succeeded > 0 || !strings.Contains(r.Runs[0].Error, "took over") {
					t.Fatalf("%v: %+v", err, r)
				}
				d.Clock.Add(time.Minute)
				if r := ticktest.Run(t, d); r.Succeeded != jobs {
					t.Errorf("%+v", r)
				}
				if n := d.Int(t, "SELECT count(*) FROM effects"); n != jobs {
					t.Errorf("%d effects of %d runs", n, jobs)
				}
			})
		})
	}
}

// A server ends the session of an atomic step at its COMMIT, as at a fast shutdown. The COMMIT has not taken place, as the record of
// the attempt shows, so that this uses up no attempt, and the run succeeds later.
func TestAtomicStepWhoseSessionEndsAtItsCommitExecutesAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("no trigger waits for COMMIT")
		}
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Exec(t, "CREATE TABLE ends (n int)")
		d.Exec(t, "INSERT INTO ends VALUES (1)")
		d.Exec(t, "CREATE FUNCTION shut_down() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()) FROM ends; RETURN NULL; END'")
		d.Exec(t, "CREATE CONSTRAINT TRIGGER shut_down AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shut_down()")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)")}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Waiting != 1 || !strings.Contains(r.Runs[0].Error, "before COMMIT took place: FATAL") {
			t.Fatalf("%+v", r)
		}
		d.Exec(t, "DELETE FROM ends")
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Errorf("%+v", r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 1 {
			t.Errorf("%d effects", n)
		}
	})
}

// A migration makes the routine that records the end of an atomic step anew, so that it has another number. A session that was used
// before still calls the old number with its COMMIT. The step is undone then, which uses up no attempt, and it is delivered again.
func TestAtomicStepWhoseRoutineIsMadeAnewExecutesAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("no session calls a routine by its number")
		}
		d.Exec(t, "CREATE TABLE effects (n int)")
		var job store.Job
		for n := range 3 { // the session is used again for the second step, and has looked for the number by then
			step := ticktest.AtomicStep("INSERT INTO effects VALUES (1)")
			step.Name = fmt.Sprint("step", n)
			job.Steps = append(job.Steps, step)
		}
		job.Name = "job"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
		ticktest.Request(t, d, "job")
		tk := ticktest.New(t, d.Store)
		steps, anew := tk.Executors["sql"], 0
		tk.Executors["sql"] = ticktest.Doing(func(ctx context.Context, r executor.Request) (executor.Result, error) {
			end := r.EndIn
			r.EndIn = func(ctx context.Context, tx *sql.Tx, res executor.Result) error {
				if err := end(ctx, tx, res); err != nil || r.Task.Run.Step != len(job.Steps) || anew > 0 {
					return err
				}
				anew++
				d.Exec(t, "DO $$ DECLARE made text := pg_get_functiondef('dbjobs.record_attempt'::regproc); BEGIN DROP FUNCTION dbjobs.record_attempt; EXECUTE made; END $$")
				return nil
			}
			return steps.Execute(ctx, r)
		})
		r := ticktest.Pass(t, tk)
		if anew != 1 || r.Waiting == 1 && !strings.Contains(r.Runs[0].Error, "is being replaced") {
			t.Fatalf("made anew %d times: %+v", anew, r)
		}
		if d.Clock.Add(time.Minute); r.Waiting == 1 { // a session that was not used before, and one behind a pooler, calls by the name
			r = ticktest.Pass(t, tk)
		}
		if r.Succeeded != 1 || r.Failed > 0 {
			t.Errorf("%+v", r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != len(job.Steps) {
			t.Errorf("%d effects of %d steps", n, len(job.Steps))
		}
	})
}
