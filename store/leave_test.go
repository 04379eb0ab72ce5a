package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// Whatever removes a job or a schedule ends its pause: nobody can name it afterwards to resume it. Other pauses go on.
func TestAPauseEndsWithItsSubject(t *testing.T) {
	t.Parallel()
	who := store.Author{By: "ada"}
	apply := func(t *testing.T, d *storetest.DB, defs store.Definitions) {
		t.Helper()
		if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{Author: who, Manifest: "m", Prune: true}); err != nil {
			t.Fatal(err)
		}
	}
	steps := []store.Step{sqlStep("", "SELECT 1")}
	stays := store.Definitions{Schedules: []store.Schedule{{Name: "stays", Rule: "every 5m"}}, Jobs: []store.Job{{Name: "stays", Steps: steps}}}
	ways := map[string]func(t *testing.T, d *storetest.DB) error{
		"remove": func(t *testing.T, d *storetest.DB) error {
			if err := d.RemoveJob(t.Context(), "goes", who); err != nil {
				return err
			}
			_, err := d.RemoveSchedule(t.Context(), "goes", false, store.AlterOptions{Author: who})
			return err
		},
		"detach": func(t *testing.T, d *storetest.DB) error {
			if _, err := d.RemoveSchedule(t.Context(), "goes", true, store.AlterOptions{Author: who}); err != nil {
				return err
			}
			return d.RemoveJob(t.Context(), "goes", who)
		},
		"prune": func(t *testing.T, d *storetest.DB) error {
			apply(t, d, stays)
			return nil
		},
	}
	for name, remove := range ways {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				apply(t, d, store.Definitions{Schedules: append([]store.Schedule{{Name: "goes", Rule: "every 1h"}}, stays.Schedules...),
					Jobs: append([]store.Job{{Name: "goes", Schedules: []string{"goes"}, Steps: steps}}, stays.Jobs...)})
				for _, scope := range []string{store.ScopeJob, store.ScopeSchedule} {
					for _, subject := range []string{"goes", "stays"} {
						if _, err := d.Pause(t.Context(), store.Subject{Scope: scope, Name: subject}, time.Time{}, store.Author{By: "bob"}); err != nil {
							t.Fatal(err)
						}
					}
				}
				d.Clock.Add(time.Minute)
				if err := remove(t, d); err != nil {
					t.Fatal(err)
				}
				all, err := d.Pauses(t.Context(), true, 10)
				if err != nil || len(all) != 4 {
					t.Fatalf("%v: %+v", err, all)
				}
				ended := 0
				for _, p := range all {
					if p.ResumedAt.Equal(d.Clock.Now()) && p.ResumedBy == "ada" && !p.Missed {
						ended++
					}
				}
				held, err := d.Pauses(t.Context(), false, 10)
				if err != nil || ended != 2 || len(held) != 2 || held[0].Scope == held[1].Scope {
					t.Errorf("%v: %d have ended; these hold: %+v", err, ended, held)
				}
			})
		})
	}
}

// A job that others name as a hook stays, as one after which others run does: the definitions of the others could not
// be applied again.
func TestAHookInUseIsNotRemoved(t *testing.T) {
	steps := []store.Step{sqlStep("", "SELECT 1")}
	job := func(name string, on store.Hooks) store.Job { return store.Job{Name: name, On: on, Steps: steps} }
	hook, other, user := job("hook", store.Hooks{Failed: "hook"}), job("other", store.Hooks{}), job("user", store.Hooks{Late: "hook"})
	file := func(jobs ...store.Job) store.Definitions { return store.Definitions{Jobs: jobs} }
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		apply := func(defs store.Definitions) (made error) {
			t.Helper()
			o := store.ApplyOptions{Manifest: "m", Prune: true, DryRun: true}
			told, toldError := d.Apply(t.Context(), defs, o)
			o.DryRun = false
			changes, made := d.Apply(t.Context(), defs, o)
			if text(toldError) != text(made) || len(told) != len(changes) {
				t.Errorf("the dry run reports %v, apply makes %v\n%v\n%v", told, changes, toldError, made)
			}
			return made
		}
		refused := func(how string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "hook: cannot be removed: it is the hook of job ") || !strings.HasSuffix(err.Error(), "user for late; remove `on.late` from user, or remove that job too") {
				t.Errorf("%s: %v", how, err)
			}
		}
		fine := func(how string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
		fine("all", apply(file(hook, other, user)))
		refused("remove", d.RemoveJob(t.Context(), "hook", store.Author{}))
		refused("pruned while the file names it", apply(file(other, user)))
		refused("pruned while a new job names it", apply(file(job("new", store.Hooks{}), user)))
		fine("the user names another one", apply(file(other, job("user", store.Hooks{Late: "other"}))))
		fine("again", apply(file(hook, user)))
		fine("together", apply(file(other)))
		fine("again", apply(file(hook, user)))
		fine("the user goes", d.RemoveJob(t.Context(), "user", store.Author{}))
		fine("it names itself", d.RemoveJob(t.Context(), "hook", store.Author{}))
	})
}

// The files of two owners may have one name. Where rows belong to logins, Prune leaves the schedules and the calendars of another one,
// whether jobs use them or not, and lists them.
func TestPruneLeavesWhatIsOfAnotherOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("knows no logins")
		}
		if err := d.SetOwners(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		apply := func(manifest string, defs store.Definitions) (did []string) {
			t.Helper()
			changes, err := d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: manifest, Prune: manifest != ""})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				did = append(did, c.Action+" "+c.Kind+" "+c.Subject)
			}
			return did
		}
		schedule := func(name, calendar string) store.Schedule {
			return store.Schedule{Name: name, Rule: "every 5m", Calendar: calendar}
		}
		day := []string{"2036-12-26"}
		apply("m", store.Definitions{Schedules: []store.Schedule{schedule("idle", "de"), schedule("used", "")}, Calendars: []store.Calendar{{Name: "de", Days: day}, {Name: "eu", Days: day}}})
		apply("", store.Definitions{Jobs: []store.Job{{Name: "uses", Owner: "ann", Schedules: []string{"used"}, Steps: []store.Step{sqlStep("", "SELECT 1")}}}})
		for _, table := range []string{"schedules", "calendars"} {
			d.Exec(t, "UPDATE "+d.Table(table)+" SET owner = 'ann'")
		}
		apply("m", store.Definitions{Schedules: []store.Schedule{schedule("mine", "")}, Calendars: []store.Calendar{{Name: "own", Days: day}}})
		did := strings.Join(apply("m", store.Definitions{Schedules: []store.Schedule{schedule("other", "")}}), ", ")
		if did != "create schedule other, left schedule idle, left schedule used, remove schedule mine, left calendar de, left calendar eu, remove calendar own" {
			t.Errorf("it did: %s", did)
		}
	})
}

// A removal waits for an edit of definitions that is under way, and sees what the edit has written: here, a job that runs
// after the one to be removed.
func TestARemovalTakesItsTurn(t *testing.T) {
	t.Parallel()
	routines := map[string]string{"postgres": "SELECT dbjobs.drop_job('first')", "mariadb": "CALL dbjobs_drop_job('first', NULL)"}
	ways := map[string]func(t *testing.T, d *storetest.DB) error{
		"command": func(t *testing.T, d *storetest.DB) error { return d.RemoveJob(t.Context(), "first", store.Author{}) },
		"routine": func(t *testing.T, d *storetest.DB) error {
			_, err := d.SQL.ExecContext(t.Context(), routines[d.Engine])
			return err
		},
	}
	for name, remove := range ways {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				lock := " FOR UPDATE"
				if d.Engine == "sqlite" {
					lock = ""
				}
				if name == "routine" && lock == "" {
					t.Skip("SQLite has no routines")
				}
				jobs := []store.Job{{Name: "first", Steps: []store.Step{sqlStep("", "SELECT 1")}}, {Name: "second", Steps: []store.Step{sqlStep("", "SELECT 1")}}}
				if _, err := d.Apply(t.Context(), store.Definitions{Jobs: jobs}, store.ApplyOptions{}); err != nil {
					t.Fatal(err)
				}
				edit, err := d.SQL.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = edit.Rollback() }()
				var version int
				if err := edit.QueryRowContext(t.Context(), "SELECT version FROM "+d.Table("installation")+" WHERE id = 1"+lock).Scan(&version); err != nil {
					t.Fatal(err)
				}
				if _, err := edit.ExecContext(t.Context(), "INSERT INTO "+d.Table("job_after")+" (job_id, after_job_id) SELECT s.id, f.id FROM "+
					d.Table("jobs")+" s JOIN "+d.Table("jobs")+" f ON s.name = 'second' AND f.name = 'first'"); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- remove(t, d) }()
				select {
				case err := <-done:
					t.Fatalf("it did not wait: %v", err)
				case <-time.After(300 * time.Millisecond):
				}
				if err := edit.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err == nil || !strings.Contains(err.Error(), "runs after it") {
					t.Errorf("removed: %v", err)
				}
			})
		})
	}
}
