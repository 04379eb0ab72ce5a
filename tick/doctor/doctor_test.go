package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/doctor"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// examine returns the findings, each as its check and the name of its job. Notes are left out: the servers of the
// tests are not set up to outlive a crash.
func examine(t *testing.T, d *storetest.DB) (found []string, all doctor.Report) {
	t.Helper()
	r, err := doctor.Examine(t.Context(), d.Store, doctor.Options{Clock: d.Clock.Now, Version: "test", Since: d.Clock.Now().Add(-30 * 24 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Level != doctor.Note {
			found = append(found, strings.TrimSpace(f.Check+" "+f.Job[strings.LastIndex(f.Job, "/")+1:]))
		}
	}
	slices.Sort(found)
	return found, r
}

// lived is a database in which passes have decided for two hours. It has an outage, a pause, an edit by a command and
// one by SQL, overlaps, a chain (also after a job that is done and gone), a hook, and history that is too old.
func lived(t *testing.T, d *storetest.DB) {
	t.Helper()
	ok, tk := []store.Step{ticktest.Call("")}, ticktest.NewDoing(t, d, ticktest.Nothing{}.Execute)
	rule := func(text string) *store.Schedule { return &store.Schedule{Rule: text} }
	apply := func(minutes string) {
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "often", Rule: "every " + minutes}},
			Groups:    []store.Group{{Name: "narrow", MaxRunning: 1}},
			Jobs: []store.Job{
				{Name: "minutely", Own: rule("every 1m"), Missed: store.MissedAll, MissedLimit: 5, Steps: ok},
				{Name: "shared", Schedules: []string{"often"}, Group: "narrow", Steps: ok},
				{Name: "slow", Own: rule("every 1m"), Overlap: store.OverlapSkip, Queue: "never", Steps: ok},
				{Name: "few", Own: rule("every 1m"), Keep: store.Keep{Runs: 3}, Steps: ok},
				{Name: "counted", Own: rule("every 1m"), MaxRuns: 4, Steps: ok},
				{Name: "follows", After: []store.After{{Job: "minutely"}}, On: store.Hooks{Failed: "shared"}, Steps: ok},
				{Name: "edited", Own: rule("every 10m"), Steps: ok},
				{Name: "off", Own: rule("every 1m"), Disabled: true, Steps: ok},
				{Name: "once", Own: rule("at 2026-01-05T08:05:00Z"), RemoveDone: true, Steps: ok},
				{Name: "after once", After: []store.After{{Job: "once"}}, Steps: ok},
			}})
	}
	apply("2m")
	run := func() {
		t.Helper()
		ticktest.Pass(t, tk)
	}
	pass := func(minutes int) {
		t.Helper()
		for range minutes {
			run()
			d.Clock.Add(time.Minute)
		}
	}
	pass(12)
	d.Clock.Add(20 * time.Minute) // no pass came
	pass(8)
	ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "shared"}, time.Time{})
	pass(6)
	ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "shared"}, false)
	apply("3m")
	d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'every 1m' WHERE rule = 'every 10m'")
	pass(10)
	d.Clock.Add(time.Minute)
	run()
}

// The rows that passes leave are sound: no finding is reported.
func TestNothingIsFoundWhereNobodyMeddled(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		lived(t, d)
		if found, r := examine(t, d); len(found) > 0 || r.Times < 100 {
			t.Errorf("%d times: %+v", r.Times, r.Findings)
		}
	})
}

// What keep has deleted cannot be compared. The report says of how many jobs that is so: of those, nothing is found although a record
// is gone that was older than the runs that are kept.
func TestTimesThatAreNotKeptAreNamed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		lived(t, d)
		older := " FROM " + d.Table("gaps") + " WHERE job_id = (SELECT id FROM " + d.Table("jobs") + " WHERE name = 'few') AND through_at < " + ticktest.Literal(d, d.Clock.Now().Add(-10*time.Minute))
		if n := d.Int(t, "SELECT COUNT(*)"+older); n == 0 {
			t.Fatal("there is no such gap")
		}
		d.Exec(t, "DELETE"+older)
		if found, r := examine(t, d); len(found) > 0 || r.Shorter != 1 {
			t.Errorf("%d jobs have fewer times: %+v", r.Shorter, r.Findings)
		}
	})
}

// keep.runs deletes the runs beside an old one that is still tried, and those times are accounted for.
func TestAnOldRunIsStillTried(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tries := 0
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (r executor.Result, err error) {
			if tries++; tries == 1 {
				err = errors.New("not yet")
			}
			return r, err
		})
		attempts, wait := store.Attempts(3), store.Duration(5*time.Hour)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1m"}, Overlap: store.OverlapAllow, MaxRunning: 2,
			Keep: store.Keep{Runs: 3}, Retry: store.Retry{Attempts: &attempts, Backoff: &wait}, Steps: []store.Step{ticktest.Call("")}}}})
		for range 12 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		if runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job", Limit: 20}); err != nil || len(runs) != 5 || runs[4].Number != 1 { // the newest 3, one more since one is open, and that one
			t.Fatalf("%v, %+v", err, runs)
		}
		if found, r := examine(t, d); len(found) > 0 || r.Times == 0 {
			t.Errorf("%d times: %+v", r.Times, r.Findings)
		}
	})
}

// The rows of a chain of jobs that was removed as a whole are history.
func TestAChainThatWasRemoved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Call("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "first", Own: &store.Schedule{Rule: "every 1m"}, Steps: ok},
			{Name: "next", After: []store.After{{Job: "first"}}, Steps: ok}}})
		tk := ticktest.NewDoing(t, d, ticktest.Nothing{}.Execute)
		for _, name := range []string{"next", "first", ""} {
			ticktest.Pass(t, tk)
			if name == "" {
				break
			}
			if err := d.RemoveJob(t.Context(), name, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		if found, r := examine(t, d); len(found) > 0 {
			t.Errorf("%+v", r.Findings)
		}
	})
}

// table matches the place where a statement names a table.
var table = regexp.MustCompile(`\b(FROM|INTO|UPDATE) [a-z_]+`)

func literal(d *storetest.DB, t time.Time) string { return "'" + d.Store.Engine().Instant(t) + "'" }

// Damage done by hand is named, each kind with its job.
func TestDamageIsNamed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		lived(t, d)
		id := func(job string) string { return "(SELECT id FROM jobs WHERE name = '" + job + "')" }
		later := literal(d, d.Clock.Now().Add(48*time.Hour))
		known, _ := examine(t, d)
		newest := func(job string) string {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: job, Limit: 3})
			if err != nil || len(runs) < 3 {
				t.Fatal(err, len(runs))
			}
			return literal(d, runs[2].ScheduledFor)
		}
		for _, damage := range []struct{ want, statement string }{
			{"attempts", "DELETE FROM runs WHERE job_id = " + id("follows")},
			{"unaccounted minutely", "DELETE FROM runs WHERE job_id = " + id("minutely") + " AND scheduled_for = " + newest("minutely")},
			{"unaccounted slow", "DELETE FROM gaps WHERE job_id = " + id("slow")},
			{"twice few", "UPDATE runs SET scheduled_for = " + newest("few") + " WHERE job_id = " + id("few")},
			{"numbers counted", "UPDATE plans SET runs_made = 1 WHERE job_id = " + id("counted")},
			{"gap-twice minutely", "INSERT INTO gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) " +
				"SELECT job_id, schedule_id, from_at, through_at, 'disabled', rule, recorded_at FROM gaps WHERE job_id = " + id("minutely")},
			{"runs edited", "UPDATE runs SET expires_at = NULL WHERE job_id = " + id("edited") + " AND settled_at IS NOT NULL"},
			{"runs slow", "UPDATE runs SET state = 'running', lease_until = NULL WHERE job_id = " + id("slow") + " AND settled_at IS NULL"},
			{"orphans number 999", "INSERT INTO steps (job_id, position, name, executor, spec) SELECT 999, 1, 'x', executor, spec FROM steps WHERE job_id = " + id("off")},
			{"calendars", "UPDATE schedules SET calendar = 'gone' WHERE name = 'often'"},
			{"calendars few", "UPDATE schedules SET calendar = 'gone' WHERE job_id = " + id("few")},
			{"rule edited", "UPDATE schedules SET rule = '30 2 * * nope' WHERE job_id = " + id("edited")},
			{"links shared", "DELETE FROM schedules WHERE name = 'often'"},
			{"groups shared", "DELETE FROM groups"},
			{"after follows", "UPDATE jobs SET removed_at = changed_at WHERE name = 'minutely'"},
			{"hooks follows", "UPDATE jobs SET on_failed = 'nobody' WHERE name = 'follows'"},
			{"steps off", "DELETE FROM steps WHERE job_id = " + id("off")},
			{"ahead few", "UPDATE plans SET decided_through = " + later + " WHERE job_id = " + id("few")},
			{"ticks", "UPDATE ticks SET last_at = " + later},
			{"clock-back counted", "UPDATE runs SET started_at = " + later + " WHERE job_id = " + id("counted") + " AND finished_at IS NOT NULL"},
			{"clock-back shared", "UPDATE runs SET created_at = " + later + " WHERE job_id = " + id("shared")},
			{"clock-back edited", "UPDATE runs SET state = 'waiting', settled_at = NULL, finished_at = NULL, held_by = NULL, ready_at = " + later +
				", started_at = " + later + ", attempts = attempts + 1 WHERE job_id = " + id("edited")}, // as a worker begins one, which writes no attempts
			{"older few", "UPDATE runs SET created_at = " + ticktest.Literal(d, d.Clock.Now().Add(-24*time.Hour)) + " WHERE job_id = " + id("few")},
			{"pauses", "INSERT INTO pauses (scope, subject_id) VALUES ('job', 4711)"},
		} {
			d.Exec(t, table.ReplaceAllStringFunc(damage.statement, func(found string) string {
				verb, name, _ := strings.Cut(found, " ")
				return verb + " " + d.Table(name)
			}))
			found, r := examine(t, d)
			if !slices.Contains(found, damage.want) || slices.Contains(known, damage.want) {
				t.Errorf("%s: %s is not named: %q", damage.statement, damage.want, found)
			}
			for _, f := range r.Findings {
				if f.Advice == "" || strings.Contains(fmt.Sprint(f), "%!") {
					t.Errorf("%+v", f)
				}
			}
			known = found
		}
	})
}

// A program with another release of the zone database does not hold the times that were decided against its own, before it
// has planned the jobs again. The plan is as a program has left it for which Berlin keeps UTC in winter.
func TestTimesOfAnotherZoneDatabase(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "daily", Own: &store.Schedule{Rule: "0 9 * * *"}, Steps: []store.Step{ticktest.Nop("")}}}})
		for range 72 {
			ticktest.Run(t, d)
			d.Clock.Add(time.Hour)
		}
		ticktest.Run(t, d)
		d.Exec(t, "UPDATE "+d.Table("plan_rules")+" SET rule = REPLACE(rule, 'DTSTART:19700101T000000Z', 'DTSTART;TZID=Europe/Berlin:19700101T000000')")
		if found, _ := examine(t, d); !slices.Contains(found, "unaccounted daily") {
			t.Errorf("the times are those of the rule: %v", found)
		}
		d.Exec(t, "UPDATE "+d.Table("plan_rules")+" SET ends = '2000a'")
		if found, r := examine(t, d); len(found) > 0 {
			t.Errorf("%+v", r.Findings)
		}
	})
}
