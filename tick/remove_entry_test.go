package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A file without a name has no jobs and schedules of its own: when what it renamed is gone, whatever has the old name by then keeps
// its name. A command names no file either, so what it has made looks the same as what the file has made.
func TestRenameByAFileWithoutANameIsDoneOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := func(job, schedule string) store.Definitions {
			return store.Definitions{Schedules: []store.Schedule{{Name: schedule, Rule: "every 5m"}}, Jobs: []store.Job{{Name: job, Steps: []store.Step{ticktest.Nop("")}}}}
		}
		before, after := defs("tidy", "early"), defs("sweep", "late")
		after.Renames = []store.Rename{{Kind: "schedule", From: "early", To: "late"}, {Kind: "job", From: "tidy", To: "sweep"}}
		brought(t, d, before, store.ApplyOptions{})
		if got := brought(t, d, after, store.ApplyOptions{}); got != "rename late, rename sweep" {
			t.Fatalf("the first time: %s", got)
		}
		if err := d.RemoveJob(t.Context(), "sweep", store.Author{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RemoveSchedule(t.Context(), "late", false, store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		brought(t, d, before, store.ApplyOptions{CreateOnly: true})
		d.Clock.Add(time.Hour)
		if made, err := d.Made(t.Context(), after, ""); err != nil || !made["late"].IsZero() {
			t.Errorf("%v: schedules were made at %v", err, made)
		}
		for _, dry := range []bool{true, false} {
			if got := brought(t, d, after, store.ApplyOptions{DryRun: dry}); got != "create late, create sweep" {
				t.Errorf("beside what others have made: %s", got)
			}
		}
	})
}

// A job that is done counts as the entry of a file also where a command has altered the job before it was done. In a definition
// that the job never had, other steps or other times make it another one.
func TestRemoveWhenDoneKnowsWhatWasAltered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{once()}}
		o := store.ApplyOptions{Manifest: "jobs"}
		brought(t, d, defs, o)
		c := &course{DB: d}
		c.follow(t, "08:00 tick; 08:05 tick take end=failed tick")
		repair := func(j store.Job) (store.Job, error) {
			j.Steps, j.Timeout = []store.Step{ticktest.Step("", "SELECT 2")}, store.Duration(2*time.Hour)
			return j, nil
		}
		if _, err := d.AlterJob(t.Context(), "job", store.AlterOptions{}, repair); err != nil {
			t.Fatal(err)
		}
		c.follow(t, "08:10 retry tick take end=succeeded tick")
		for _, what := range []string{"as the file has it", "as it was altered"} {
			if got := brought(t, d, defs, o); got != "done job" {
				t.Fatalf("%s: %s", what, got)
			}
			defs.Jobs[0], _ = repair(defs.Jobs[0])
		}
		defs.Jobs[0].Steps = []store.Step{ticktest.Step("", "SELECT 3")}
		if got := brought(t, d, defs, o); got != "create job" {
			t.Errorf("with other steps: %s", got)
		}
	})
}

// Keys that a file may give to all of its jobs make no other job of one that is done: nobody who adds a timeout to the defaults
// wants each one-off to run again. Nor does a description, or disabled, which takes a job out of use. A job's times and steps do.
func TestRemoveWhenDoneIsNotUndoneByDefaults(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j, o := once(), store.ApplyOptions{Manifest: "jobs", Start: decide.Start}
		j.Own.Rule, j.MaxRuns, j.Start, j.StartZone = "every 5m", 1, "at 2026-01-05T08:03:00", "UTC"
		alarm := store.Job{Name: "alarm", Steps: j.Steps}
		with := func(edit func(*store.Job)) string {
			job := j
			own := *j.Own
			job.Own = &own
			edit(&job)
			return brought(t, d, store.Definitions{Jobs: []store.Job{job, alarm}}, o)
		}
		with(func(*store.Job) {})
		(&course{DB: d}).follow(t, "08:00 tick; 08:05 tick take end=succeeded tick")
		o.DryRun = true
		attempts, backoff := store.Attempts(3), store.Duration(time.Minute)
		for what, edit := range map[string]func(*store.Job){
			"timeout":     func(j *store.Job) { j.Timeout = store.Duration(time.Hour) },
			"keep":        func(j *store.Job) { j.Keep.Runs = 7 },
			"retry":       func(j *store.Job) { j.Retry = store.Retry{Attempts: &attempts, Backoff: &backoff} },
			"hooks":       func(j *store.Job) { j.On.Failed = "alarm" },
			"tags":        func(j *store.Job) { j.Tags = []string{"nightly"} },
			"heartbeat":   func(j *store.Job) { j.Heartbeat.URL = "https://example.org/ping" },
			"zone":        func(j *store.Job) { j.Own.Zone, j.StartZone = "Europe/Berlin", "Europe/Berlin" },
			"description": func(j *store.Job) { j.Description = "made of words" },
			"disabled":    func(j *store.Job) { j.Disabled = true },
		} {
			if got := with(edit); got != "done job" {
				t.Errorf("%s: %s", what, got)
			}
		}
		d.Clock.Set(ticktest.Morning(8, 0)) // a new job needs a start to come
		for what, edit := range map[string]func(*store.Job){
			"rule":      func(j *store.Job) { j.Own.Rule = "every 6m" },
			"start":     func(j *store.Job) { j.Start = "at 2026-01-05T09:03:00" },
			"not after": func(j *store.Job) { j.NotAfter = ticktest.Morning(23, 0) },
			"runs":      func(j *store.Job) { j.MaxRuns = 2 },
			"steps":     func(j *store.Job) { j.Steps = []store.Step{ticktest.Step("", "SELECT 2")} },
			"no rule":   func(j *store.Job) { j.Own, j.RepeatAfter = nil, store.Duration(time.Minute) },
		} {
			if got := with(edit); got != "create job" {
				t.Errorf("%s: %s", what, got)
			}
		}
	})
}

// The change log keeps each definition of a job that goes when it is done, also those that were altered long ago. Of other
// jobs, it keeps the last one.
func TestPruneKeepsDefinitionsOfDoneJobs(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		first := func() float64 { return 0 } // where a sweep begins
		sweeps := ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Chance: first})
		other := store.Job{Name: "other", Steps: []store.Step{ticktest.Nop("")}}
		defs := store.Definitions{Jobs: []store.Job{once(), other}}
		o := store.ApplyOptions{Manifest: "jobs"}
		brought(t, d, defs, o)
		for _, name := range []string{"job", "other"} {
			if _, err := d.AlterJob(t.Context(), name, store.AlterOptions{}, func(j store.Job) (store.Job, error) {
				j.Steps = []store.Step{ticktest.Step("", "SELECT 2")}
				return j, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		(&course{DB: d}).follow(t, "08:00 tick; 08:05 tick take end=succeeded tick")
		d.Clock.Add(401 * 24 * time.Hour)
		for range 4 {
			ticktest.Request(t, d, "other")
			ticktest.Pass(t, ticktest.New(t, sweeps))
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("changes")+" WHERE subject LIKE '%other' AND action <> 'run-now'"); n != 1 {
			t.Errorf("the other job has %d definitions in the change log", n)
		}
		if got := brought(t, d, defs, o); got != "done job, change other" {
			t.Errorf("after the sweep: %s", got)
		}
	})
}
