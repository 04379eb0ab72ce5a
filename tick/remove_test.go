package tick_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

func once() store.Job {
	return store.Job{Name: "job", Queue: "another", RemoveDone: true, Own: &store.Schedule{Rule: "at 2026-01-05T08:05:00Z"}, Steps: []store.Step{ticktest.Nop("")}}
}

// The results of remove_when_done with everything that can happen to a job that is due once, at 08:05.
var dones = []struct {
	name, course string
	stays        string // the state in which it stays; empty: it is removed
	policy       func(*store.Job)
}{
	{"done", "08:00 tick; 08:05 tick take; 08:06 end=succeeded; 08:07 tick", "", nil},
	{"still running", "08:00 tick; 08:05 tick take; 09:00 tick", store.JobRunning, nil},
	{"not yet", "08:00 tick; 08:01 request tick take end=succeeded tick", store.JobSleeping, nil},
	{"failed", "08:00 tick; 08:05 tick take; 08:06 end=failed tick; 08:10 tick", store.JobFinished, nil},
	{"failed, and then well", "08:00 tick; 08:05 tick take; 08:06 end=failed tick; 08:10 retry tick take; 08:11 end=succeeded tick", "", nil},
	{"cancelled", "08:00 tick; 08:05 tick cancel tick; 08:10 tick", store.JobFinished, nil},
	{"lost", "08:00 tick; 08:05 tick take; 19:00 tick; 19:01 tick", store.JobFinished, func(j *store.Job) { j.MaxDeliveries = 1 }},
	{"missed", "08:00 tick; 09:05 tick; 09:06 tick", store.JobFinished, func(j *store.Job) { j.Missed = "skip" }},
	{"a request is open", "08:00 tick; 08:05 request tick take; 08:06 end=succeeded tick", store.JobSleeping, nil},
	{"paused", "08:00 tick; 08:05 tick take; 08:06 pause end=succeeded tick", store.JobPaused, nil},
	{"resumed", "08:00 tick; 08:05 tick take; 08:06 pause end=succeeded tick; 08:07 resume tick", "", nil},
	{"disabled", "08:00 tick; 08:05 tick take; 08:06 enable=false end=succeeded tick", store.JobDisabled, nil},
	{"cycles are used up", "08:00 tick; 08:05 tick take; 08:06 end=succeeded tick", "", func(j *store.Job) { j.Own.Rule, j.MaxRuns = "every 5m", 1 }},
	{"cycles are left", "08:00 tick; 08:05 tick take; 08:06 end=succeeded tick", store.JobSleeping, func(j *store.Job) { j.Own.Rule, j.MaxRuns = "every 5m", 2 }},
	{"no longer valid", "08:00 tick; 08:05 tick take; 08:06 end=succeeded tick", "", func(j *store.Job) { j.Own.Rule, j.NotAfter = "every 5m", ticktest.Morning(8, 9) }},
	{"repeated, and used up", "08:00 tick take; 08:06 end=succeeded tick", "", func(j *store.Job) { j.Own, j.RepeatAfter, j.MaxRuns = nil, store.Duration(time.Minute), 1 }},
	{"repeated", "08:00 tick take; 08:06 end=succeeded tick", store.JobSleeping, func(j *store.Job) { j.Own, j.RepeatAfter = nil, store.Duration(time.Minute) }},
	{"it is no policy of it", "08:00 tick; 08:05 tick take; 08:06 end=succeeded tick", store.JobFinished, func(j *store.Job) { j.RemoveDone = false }},
}

// A job with remove_when_done is removed when it has no further run, and not before.
func TestRemoveWhenDone(t *testing.T) {
	for i, row := range dones {
		t.Run(row.name, func(t *testing.T) {
			storetest.InTurn(t, i, func(t *testing.T, d *storetest.DB) {
				j := once()
				if row.policy != nil {
					row.policy(&j)
				}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				(&course{DB: d}).follow(t, row.course)
				v, err := d.Job(t.Context(), "job")
				if state := v.State; row.stays == "" && err == nil || row.stays != "" && (err != nil || state != row.stays) {
					t.Fatalf("%v: it is %q: %+v", err, state, v)
				}
				if row.stays != "" {
					return
				}
				list, err := d.JobHistory(t.Context(), "job", 10)
				if err != nil || list[0].Action != "remove" || list[0].By != store.Itself || !strings.Contains(list[0].Reason, "remove_when_done") {
					t.Errorf("%v: %+v", err, list)
				}
				runs, err := d.Runs(t.Context(), store.RunFilter{})
				if err != nil || len(runs) != 1 || runs[0].State != store.Succeeded || runs[0].Job != "job" {
					t.Errorf("%v: %+v", err, runs)
				}
				d.Clock.Add(24 * time.Hour)
				if r := ticktest.Run(t, d); r.Made != 0 || len(r.Gaps) != 0 || len(r.Parked) != 0 {
					t.Errorf("afterwards: %+v", r)
				}
				for _, table := range []string{"job_schedules", "schedules"} {
					if n := d.Int(t, "SELECT count(*) FROM "+d.Table(table)); n != 0 {
						t.Errorf("%d of %s are left", n, table)
					}
				}
			})
		})
	}
}

// A job that another job names as a hook stays. Otherwise that job's definition would name nothing.
func TestRemoveWhenDoneSparesHooks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		hook, other := once(), once()
		other.Name = "other"
		user := store.Job{Name: "user", Queue: "another", Own: ticktest.EveryFiveMinutes(), On: store.Hooks{Late: "job"}, Steps: hook.Steps}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{hook, other, user}})
		(&course{DB: d}).follow(t, "08:00 tick; 08:05 tick take end=succeeded take end=succeeded take end=succeeded; 08:06 tick; 08:07 tick")
		if v, err := d.Job(t.Context(), "job"); err != nil || v.State != store.JobFinished {
			t.Errorf("the hook: %v, %+v", err, v)
		}
		if v, err := d.Job(t.Context(), "other"); err == nil {
			t.Errorf("the job that is no hook is still there: %+v", v)
		}
	})
}

// brought applies definitions, and returns what that changed.
func brought(t *testing.T, d *storetest.DB, defs store.Definitions, o store.ApplyOptions) string {
	t.Helper()
	changes, err := d.Apply(t.Context(), defs, o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range changes {
		got = append(got, changes[i].Action+" "+changes[i].PlainSubject())
	}
	return strings.Join(got, ", ")
}

// If a manifest still has a job that is done, the job does not run again. If the definition differs, it does.
func TestRemoveWhenDoneIsLeftAloneByApply(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j := once()
		j.Own.Rule, j.MaxRuns, j.Start = "every 5m", 1, "at 2026-01-05T08:03:00Z"
		follower := store.Job{Name: "follower", Queue: "another", After: []store.After{{Job: "job"}}, Steps: j.Steps}
		alarm := store.Job{Name: "alarm", Steps: j.Steps}
		login, err := d.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		j.On.Failed, j.On.Lost = strings.TrimPrefix(login+"/alarm", "/"), "alarm" // both forms of the name
		defs := store.Definitions{Jobs: []store.Job{j, follower, alarm}}
		o := store.ApplyOptions{Manifest: "jobs", Prune: true, Start: decide.Start}
		brought(t, d, defs, o)
		c := &course{DB: d}
		c.follow(t, "08:00 tick; 08:05 tick take end=succeeded tick take end=succeeded tick")
		if got := ticktest.States(t, d, "follower"); len(got) != 1 || got[0] != store.Succeeded {
			t.Errorf("the follower: %v", got)
		}
		d.Clock.Add(time.Hour)
		for range 2 {
			if got := brought(t, d, defs, o); got != "done job" {
				t.Fatalf("the same again: %s", got)
			}
			if r := ticktest.Run(t, d); r.Made != 0 {
				t.Fatalf("%+v", r)
			}
		}
		o.DryRun = true
		if got := brought(t, d, defs, o); got != "done job" {
			t.Errorf("a dry run: %s", got)
		}
		o.DryRun = false
		moved := o
		moved.Manifest, moved.TakeOwnership, moved.Prune = "shop", true, false
		if got := brought(t, d, defs, moved); got != "done job, change follower, change alarm" {
			t.Errorf("in another manifest: %s", got)
		}
		o.TakeOwnership = true
		brought(t, d, defs, o)
		defs.Jobs[0].Start = "at 2026-01-05T09:33:00Z"
		if got := brought(t, d, defs, o); got != "create job, change follower" {
			t.Fatalf("another time: %s", got)
		}
		c.follow(t, "09:30 tick; 09:35 tick take end=succeeded tick")
		if got := brought(t, d, defs, o); got != "done job" {
			t.Errorf("done again: %s", got)
		}
		// `job create` makes another job of that name. When somebody has removed that one by hand, apply creates the job
		// again, too.
		defs.Jobs = []store.Job{once()}
		c.follow(t, "08:00")
		brought(t, d, defs, o)
		c.follow(t, "08:00 tick; 08:05 tick take end=succeeded tick")
		if got := brought(t, d, defs, o); got != "done job" {
			t.Errorf("once: %s", got)
		}
		if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{CreateOnly: true}); err != nil {
			t.Errorf("job create: %v", err)
		}
		if err := d.RemoveJob(t.Context(), "job", store.Author{}); err != nil {
			t.Fatal(err)
		}
		if got := brought(t, d, defs, o); got != "create job" {
			t.Errorf("after a removal by hand: %s", got)
		}
	})
}

// A rename is done once. When what was renamed is gone, a new definition that has the old name by then keeps it.
func TestRenameIsDoneOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		o := store.ApplyOptions{Manifest: "jobs", Start: decide.Start}
		load, other := once(), store.Job{Name: "load", Steps: once().Steps}
		load.Name, load.RemoveDone = "load", false
		early := store.Schedule{Name: "early", Rule: "every 5m"}
		brought(t, d, store.Definitions{Schedules: []store.Schedule{early}, Jobs: []store.Job{load}}, o)
		late := early
		load.Name, load.RemoveDone = "load-old", true
		late.Name, early.Rule = "late", "every 6m"
		defs := store.Definitions{Schedules: []store.Schedule{early, late}, Jobs: []store.Job{load, other},
			Renames: []store.Rename{{Kind: "schedule", From: "early", To: "late"}, {Kind: "job", From: "load", To: "load-old"}}}
		d.Clock.Add(time.Hour)
		if got := brought(t, d, defs, o); got != "rename late, rename load-old, create early, change load-old, create load" {
			t.Fatal(got)
		}
		(&course{DB: d}).follow(t, "08:00 tick; 08:05 tick take end=succeeded tick")
		if _, err := d.RemoveSchedule(t.Context(), "late", false, store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		if made, err := d.Made(t.Context(), defs, o.Manifest); err != nil || len(made) != 1 || made["early"].IsZero() {
			t.Errorf("%v: schedules were made at %v", err, made)
		}
		for _, o.DryRun = range []bool{true, false} {
			if got := brought(t, d, defs, o); got != "create late, done load-old" {
				t.Errorf("when what was renamed is gone: %s", got)
			}
		}
		if err := d.RemoveJob(t.Context(), "load", store.Author{}); err != nil {
			t.Fatal(err)
		}
		if got := brought(t, d, defs, o); got != "create load, done load-old" && got != "done load-old, create load" {
			t.Errorf("both are gone: %s", got)
		}
		// A job that got its former name back is renamed again.
		o.Manifest, other.Name = "more", "fetched"
		defs = store.Definitions{Jobs: []store.Job{other}}
		brought(t, d, defs, o)
		for _, to := range []string{"fetch", "fetched"} {
			if _, err := d.RenameJob(t.Context(), defs.Jobs[0].Name, to, store.AlterOptions{}); err != nil {
				t.Fatal(err)
			}
			defs.Jobs[0].Name = to
		}
		if _, err := d.RenameJob(t.Context(), "fetched", "fetch", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		other.Name = "fetch"
		defs.Jobs, defs.Renames = append(defs.Jobs, other), []store.Rename{{Kind: "job", From: "fetch", To: "fetched"}}
		if got := brought(t, d, defs, o); got != "rename fetched, create fetch" {
			t.Errorf("with its former name: %s", got)
		}
	})
}

// When what was renamed is gone, what somebody else has made with the old name is no predecessor, although the file has no
// definition of that name. What the file itself has made is one, such as after its former state was applied once more.
func TestRenameTakesNothingOfOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		o := store.ApplyOptions{Manifest: "jobs", Prune: true}
		defs := func(job, schedule string) store.Definitions {
			return store.Definitions{Schedules: []store.Schedule{{Name: schedule, Rule: "every 5m"}}, Jobs: []store.Job{{Name: job, Steps: []store.Step{ticktest.Nop("")}}}}
		}
		before, after := defs("tidy", "early"), defs("sweep", "late")
		after.Renames = []store.Rename{{Kind: "schedule", From: "early", To: "late"}, {Kind: "job", From: "tidy", To: "sweep"}}
		for _, c := range []struct {
			what string
			defs store.Definitions
			want string
		}{
			{"first", before, "create early, create tidy"},
			{"renamed", after, "rename late, rename sweep"},
			{"the former state", before, "create early, create tidy, remove sweep, remove late"},
			{"once more", after, "rename late, rename sweep"},
			{"nothing", store.Definitions{}, "remove sweep, remove late"},
		} {
			if got := brought(t, d, c.defs, o); got != c.want {
				t.Errorf("%s: %s, want %s", c.what, got, c.want)
			}
		}
		brought(t, d, before, store.ApplyOptions{CreateOnly: true})
		d.Clock.Add(time.Hour)
		if made, err := d.Made(t.Context(), after, o.Manifest); err != nil || !made["late"].IsZero() {
			t.Errorf("%v: schedules were made at %v", err, made)
		}
		for _, o.DryRun = range []bool{true, false} {
			if got := brought(t, d, after, o); got != "create late, create sweep" {
				t.Errorf("beside what others have made: %s", got)
			}
		}
	})
}

// A job that is done stays so if it had another name before, or its schedule.
func TestRemoveWhenDoneKnowsRenames(t *testing.T) {
	const to = "renamed"
	byFile := func(kind, from string) func(*testing.T, *storetest.DB, *store.Definitions) {
		return func(_ *testing.T, _ *storetest.DB, defs *store.Definitions) {
			defs.Renames = []store.Rename{{Kind: kind, From: from, To: to}}
		}
	}
	for what, rename := range map[string]func(*testing.T, *storetest.DB, *store.Definitions){
		"job by a file":      byFile("job", "job"),
		"schedule by a file": byFile("schedule", "at"),
		"job": func(t *testing.T, d *storetest.DB, _ *store.Definitions) {
			if _, err := d.RenameJob(t.Context(), "job", to, store.AlterOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"job by a routine": func(t *testing.T, d *storetest.DB, _ *store.Definitions) {
			routine := map[string]string{"postgres": "SELECT dbjobs.rename_job('job', 'renamed')", "mariadb": "CALL dbjobs_rename_job('job', 'renamed', NULL)"}[storetest.Dialect(d.Engine)]
			if routine == "" {
				t.Skip("SQLite has no routines")
			}
			d.Exec(t, routine)
		},
		"schedule": func(t *testing.T, d *storetest.DB, _ *store.Definitions) {
			r, err := d.RenameSchedule(t.Context(), "at", to, store.AlterOptions{})
			if err != nil || len(r.Changes) != 2 || r.Changes[1].PlainSubject() != "job" {
				t.Fatalf("%v: %+v", err, r.Changes)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				j, another := once(), once()
				at := store.Schedule{Name: "at", Rule: j.Own.Rule}
				another.Name, another.Own, another.Schedules, another.RemoveDone = "another", nil, []string{"at"}, false
				if strings.HasPrefix(what, "schedule") {
					j.Own, j.Schedules = nil, another.Schedules
				}
				o := store.ApplyOptions{Manifest: "jobs"}
				defs := store.Definitions{Schedules: []store.Schedule{at}, Jobs: []store.Job{another, j}}
				brought(t, d, defs, o)
				rename(t, d, &defs)
				if strings.HasPrefix(what, "job") {
					defs.Jobs[1].Name = to
				} else {
					defs.Schedules[0].Name, defs.Jobs[0].Schedules, defs.Jobs[1].Schedules = to, []string{to}, []string{to}
				}
				brought(t, d, defs, o)
				(&course{DB: d}).follow(t, "08:00 tick; 08:05 tick take end=succeeded take end=succeeded tick")
				if got := brought(t, d, defs, o); got != "done "+defs.Jobs[1].Name {
					t.Errorf("when it is done: %s", got)
				}
			})
		})
	}
}

// An edit of a job that is done keeps the job from being removed, and no pass waits for the edit.
func TestRemoveWhenDoneSparesWhatIsEdited(t *testing.T) {
	for what, statement := range map[string]string{
		"job":  "UPDATE %[1]s SET priority = 3",
		"link": "UPDATE %[3]s SET created_at = created_at",
		"rule": "UPDATE %[2]s SET description = 'mine'",
	} {
		t.Run(what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if d.Engine == "sqlite" {
					t.Skip("one writer at a time")
				}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{once()}})
				co := &course{DB: d}
				co.follow(t, "08:00 tick; 08:05 tick take; 08:06 end=succeeded")
				tx, err := d.SQL.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }() // after the first call it does nothing
				if _, err := tx.ExecContext(t.Context(), edit(d, statement)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				for range 2 {
					if _, err := ticktest.New(t, d.Store).Run(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if v, err := d.Job(t.Context(), "job"); err != nil || v.NextRun.IsZero() {
					t.Fatalf("%v: it is not looked at again: %+v", err, v)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				d.Clock.Add(time.Minute)
				ticktest.Run(t, d)
				if v, err := d.Job(t.Context(), "job"); err == nil {
					t.Fatalf("is still there: %+v", v)
				}
			})
		})
	}
}

// A job that is removed before any pass has seen it needs none afterwards.
func TestRemoveBeforeTheFirstPass(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		asked := ticktest.RunNow(t, d, "job", store.Request{})
		if err := d.RemoveJob(t.Context(), "job", store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		if p, err := d.Probe(t.Context(), "test", "tick"); err != nil || p.Anything() || !p.NextWake.IsZero() {
			t.Errorf("still needed: %+v, %v", p, err)
		}
		if r, err := d.Run(t.Context(), asked.ID); err != nil || !r.Ended() {
			t.Errorf("the run is %s, %v", r.State, err)
		}
	})
}
