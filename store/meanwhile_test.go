package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// meanwhile opens a database, in which do happens as soon as the next transaction of the store is about to begin.
func meanwhile(t *testing.T, e string) (d *storetest.DB, next func(do func())) {
	var calls storetest.Calls
	var armed func()
	calls.Before = func(c storetest.Call) error {
		if do := armed; c.Kind == storetest.Begin && do != nil {
			armed = nil
			do()
		}
		return nil
	}
	d = storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
	return d, func(do func()) { armed = do }
}

// A command about a run looks it up first, and changes it then. What happens to the run in between is what the command says.
func TestARunThatIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d, next := meanwhile(t, e)
			steps := []store.Step{{Name: "a", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: steps}}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			r, err := d.RunNow(t.Context(), "job", store.Request{})
			if err != nil {
				t.Fatal(err)
			}
			becomes := func(state string) func() {
				return func() { d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = '"+state+"' WHERE id = '"+r.ID+"'") }
			}
			next(becomes("succeeded"))
			if _, err := d.CancelRun(t.Context(), r.ID, store.Author{}); err == nil || !strings.Contains(err.Error(), "has ended: succeeded") {
				t.Errorf("a run that has just succeeded is cancelled: %v", err)
			}
			becomes("failed")()
			next(becomes("running"))
			if _, err := d.RetryRun(t.Context(), r.ID, "", store.Author{}); err == nil || !strings.Contains(err.Error(), "is running: only a run that failed") {
				t.Errorf("a run that was just opened again is opened again: %v", err)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes")+" WHERE action IN ('cancel', 'retry')"); n != 0 {
				t.Errorf("%d changes are on record", n)
			}
		})
	}
}

// A calendar that a command has removed, or changed, before another command writes its days is not lost, and the change that
// came before stays.
func TestACalendarThatIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d, next := meanwhile(t, e)
			other, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			imports := func(s *store.Store, day string) []store.Change {
				changes, err := s.AlterCalendar(t.Context(), "c", store.AlterOptions{}, func(old *store.Calendar) (store.Calendar, error) {
					c := store.Calendar{Days: []string{day}}
					if old != nil {
						c.WorkingDays = old.WorkingDays
					}
					return c, nil
				})
				if err != nil || len(changes) != 1 {
					t.Errorf("%s: %v, %v", day, changes, err)
					return []store.Change{{}}
				}
				return changes
			}
			next(func() { imports(other, "2030-01-01") })
			if made := imports(d.Store, "2030-01-02"); made[0].Action != "change" {
				t.Errorf("the calendar was made already: %v", made)
			}
			next(func() {
				c := store.Calendar{Name: "c", WorkingDays: "MO-FR"}
				if _, err := other.Apply(t.Context(), store.Definitions{Calendars: []store.Calendar{c}}, store.ApplyOptions{Manifest: "m"}); err != nil {
					t.Error(err)
				}
			})
			imports(d.Store, "2030-01-03")
			if c, err := d.Calendar(t.Context(), "c"); err != nil || c.WorkingDays != "MO-FR" || c.Manifest != "m" {
				t.Errorf("the change before is lost: %+v, %v", c, err)
			}
			next(func() {
				if err := other.RemoveCalendar(t.Context(), "c", store.Author{}); err != nil {
					t.Error(err)
				}
			})
			if made := imports(d.Store, "2030-01-04"); made[0].Action != "create" {
				t.Errorf("the calendar was removed: %v", made)
			}
		})
	}
}

// A pass removes a job that is done after a command has read it. Then an apply makes the job anew, since it has other work now, and
// a command that enables or disables it does not find it. SQLite has one writer at a time.
func TestAJobThatIsRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if storetest.Dialect(e) == "sqlite" {
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var d *storetest.DB
			armed := false
			calls.Before = func(c storetest.Call) error {
				writes := strings.Contains(c.SQL, "j.id = d.id") && strings.Contains(c.SQL, "changed_at = ")
				if armed && (writes || strings.Contains(c.SQL, "ORDER BY id FOR UPDATE")) {
					armed = false
					d.Exec(t, "UPDATE "+d.Table("jobs")+" SET removed_at = created_at WHERE removed_at IS NULL")
				}
				return nil
			}
			d = storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			apply := func(sql string) []store.Change {
				job := store.Job{Name: "job", Steps: []store.Step{sqlStep("a", sql)}}
				if sql != "SELECT 1" {
					job.Priority = 1
				}
				changes, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{job}}, store.ApplyOptions{Manifest: "m"})
				if err != nil || len(changes) != 1 {
					t.Fatal(changes, err)
				}
				return changes
			}
			apply("SELECT 1")
			armed = true
			changed := apply("SELECT 2")
			if j, err := d.Job(t.Context(), "job"); err != nil || j.Priority != 1 || changed[0].Action != "create" {
				t.Errorf("%v, %v, %v", changed, j.Steps, err)
			}
			armed = true
			if err := d.EnableJob(t.Context(), "job", false, store.Author{}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("disabled although it is gone: %v", err)
			}
		})
	}
}

// Rows stay as somebody has set it while a migrator was about to begin, whatever the migrator has read before.
func TestOwnersThatAreSetWhileAMigratorBegins(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" { // has no owners
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d, next := meanwhile(t, e)
			other, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			for _, owners := range []bool{false, true} {
				if err := d.SetOwners(t.Context(), !owners); err != nil {
					t.Fatal(err)
				}
				d.Exec(t, "DROP VIEW "+d.Table("v_errors")) // so there is something to migrate
				next(func() {
					if err := other.SetOwners(t.Context(), owners); err != nil {
						t.Error(err)
					}
				})
				if done, err := d.Migrate(t.Context()); len(done) == 0 || err != nil {
					t.Errorf("%q, %v", done, err)
				}
				if c, err := d.Schema(t.Context()); c.Owners != owners || c.Outdated || err != nil {
					t.Errorf("owners: %t, %+v, %v", owners, c, err)
				}
			}
		})
	}
}
