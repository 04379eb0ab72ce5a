package tick_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Somebody opens a run again while the history is pruned. The run keeps all of its attempts, or is deleted with them,
// whether the request comes before its rows are locked or after.
func TestPruneOfARunThatIsOpenedAgain(t *testing.T) {
	for _, before := range []string{"begin", "DELETE FROM attempts", "DELETE FROM runs"} {
		t.Run(before, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if before != "begin" && d.Engine == "sqlite" {
					t.Skip("one writer at a time")
				}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Keep: store.Keep{Runs: 1}, Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}}}})
				ticktest.Request(t, d, "job")
				ticktest.Run(t, d)
				first, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
				if err != nil || len(first) != 1 || first[0].State != store.Failed {
					t.Fatal(err, first)
				}
				ticktest.Request(t, d, "job")
				var calls storetest.Calls
				selected, met := false, false
				calls.Before = func(c storetest.Call) error {
					text := strings.ReplaceAll(strings.ReplaceAll(c.SQL, "dbjobs.", ""), "dbjobs_", "")
					selected = selected || strings.Contains(text, "number <= ")
					if met || !selected || !strings.HasPrefix(c.Kind+text, before) && !strings.HasPrefix(text, before) {
						return nil
					}
					met = true
					ctx, stop := context.WithTimeout(t.Context(), time.Second)
					defer stop()
					_, _ = d.RetryRun(ctx, first[0].ID, "", store.Author{}) // it may have to wait for too long
					return nil
				}
				tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
				tk.Limit = 1
				if _, err := tk.Run(t.Context()); err != nil || !met {
					t.Fatal(err, met)
				}
				missing := d.Int(t, fmt.Sprintf("SELECT count(*) FROM %s r WHERE attempts <> (SELECT count(*) FROM %s a WHERE a.run_id = r.id)", d.Table("runs"), d.Table("attempts")))
				if orphans := d.Int(t, fmt.Sprintf("SELECT count(*) FROM %s WHERE run_id NOT IN (SELECT id FROM %s)", d.Table("attempts"), d.Table("runs"))); missing+orphans > 0 {
					t.Errorf("%d runs have lost attempts, %d attempts are of no run", missing, orphans)
				}
			})
		})
	}
}

// A run that is too old is opened again and succeeds, before the history that was found too old is deleted: it is kept from its new end on.
func TestPruneOfARunThatHasEndedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Keep: store.Keep{Age: store.Duration(time.Hour)}, Steps: []store.Step{ticktest.Step("", "SELECT * FROM later")}}}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		d.Clock.Add(2 * time.Hour)
		var calls storetest.Calls
		selected, met := false, false
		calls.Before = func(c storetest.Call) error {
			selected = selected || strings.Contains(c.SQL, "WHERE expires_at <= ")
			if met || !selected || c.Kind != storetest.Begin {
				return nil
			}
			met = true
			d.Exec(t, "CREATE TABLE later (id int)")
			if _, err := d.RetryRun(t.Context(), "job", "", store.Author{}); err != nil {
				t.Error(err)
			}
			ticktest.Run(t, d)
			return nil
		}
		gone, err := ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}).Prune(t.Context(), nil, func() bool { return false })
		if err != nil || gone != 0 || !met {
			t.Errorf("%d runs deleted, %v; opened again: %t", gone, err, met)
		}
		if r, err := d.Run(t.Context(), "job"); err != nil || r.State != store.Succeeded || len(r.Tries) != 2 {
			t.Errorf("the run is %q with %d attempts, %v", r.State, len(r.Tries), err)
		}
	})
}

// A pass that is asked to end while it looks for old history says nothing of that: a later pass looks.
func TestPruneIsInterruptedWithoutAWord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Request(t, d, "job")
		var calls storetest.Calls
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		calls.Before = func(c storetest.Call) error {
			if strings.Contains(c.SQL, "j.keep_age_ms") && strings.Contains(c.SQL, "removed_at <") {
				stop()
			}
			return nil
		}
		tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
		var log strings.Builder
		tk.Log = slog.New(slog.NewTextHandler(&log, nil))
		_, _ = tk.Run(ctx) // its error, if any, is about the end of the pass
		if ctx.Err() == nil || log.Len() > 0 {
			t.Errorf("stopped: %v; %s", ctx.Err(), log.String())
		}
	})
}

// Rows that are no longer kept are also deleted if no run of their job ends any more. Any pass deletes runs that are
// too old, also a pass that has nothing else to do. Passes over other jobs delete the rows that an earlier pass or a
// smaller keep has left, and old changes.
func TestPruneFindsLaterWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			pruneLater(t, storetest.Open(t, e, store.Options{Chance: farAndNear()}))
		})
	}
}

// farAndNear are the places where passes begin to look for old history: one near the end, the next at the start. A pass looks for
// jobs, and then for records.
func farAndNear() func() float64 {
	looks := -1
	return func() float64 {
		looks++
		return 0.9 * float64(1-looks/2%2)
	}
}

func pruneLater(t *testing.T, d *storetest.DB) {
	t.Helper()
	idle := store.Job{Name: "idle", Keep: store.Keep{Age: store.Duration(24 * time.Hour)}, Steps: []store.Step{ticktest.Nop("")}}
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{idle, {Name: "busy", Steps: []store.Step{ticktest.Nop("")}}}})
	for range 4 {
		ticktest.Request(t, d, "idle")
		ticktest.Run(t, d)
		d.Clock.Add(time.Minute)
	}
	count := func() int {
		return d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE job_id = (SELECT id FROM "+d.Table("jobs")+" WHERE name = 'idle')")
	}
	d.Exec(t, "UPDATE "+d.Table("jobs")+" SET keep_runs = 2 WHERE name = 'idle'")
	for try := 0; count() > 2; try++ {
		if try > 100 {
			t.Fatalf("%d runs are left of a job that keeps 2", count())
		}
		ticktest.Request(t, d, "busy")
		ticktest.Run(t, d)
	}
	d.Clock.Add(25 * time.Hour)
	ticktest.Run(t, d)
	if n := count(); n > 0 {
		t.Errorf("%d runs are left that are too old", n)
	}
	changes := func(of string) int {
		return d.Int(t, "SELECT count(*) FROM "+d.Table("changes")+" WHERE subject LIKE '%idle' AND action "+of)
	}
	for _, enabled := range []bool{false, true, false, true} {
		if err := d.EnableJob(t.Context(), "idle", enabled, store.Author{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.AbortJob(t.Context(), "idle", false, store.Author{Reason: "not before the audit"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range [][2]string{{"idle", "rested"}, {"rested", "idle"}} {
		if _, err := d.RenameJob(t.Context(), name[0], name[1], store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before := changes("<> 'rename'")
	d.Clock.Add(401 * 24 * time.Hour)
	for try := 0; changes("<> 'rename'") > 1; try++ { // the last one says which state it is
		if try > 100 {
			t.Fatalf("%d of %d changes are left", changes("<> 'rename'"), before)
		}
		ticktest.Request(t, d, "busy")
		ticktest.Run(t, d)
	}
	if got := seen(t, d, "v_jobs", "state, why", "WHERE name = 'idle'"); !slices.Equal(got, []string{"aborted|not before the audit"}) {
		t.Errorf("the state of the job, and why, are %q", got)
	}
	if n := changes("= 'rename'"); n != 1 { // apply looks for it, lest the rename be done twice
		t.Errorf("%d renames are left", n)
	}
}

// A rename stays in the change log, of schedules and of jobs, also when what was renamed is gone: apply does no rename twice.
func TestPruneKeepsRenames(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		first := func() float64 { return 0 } // where a sweep begins
		sweeps := ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Chance: first})
		load := store.Job{Name: "load", Schedules: []string{"early"}, Steps: []store.Step{ticktest.Nop("")}}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "early", Rule: "every 5m"}}, Jobs: []store.Job{load, {Name: "busy", Steps: load.Steps}}})
		if _, err := d.RenameSchedule(t.Context(), "early", "late", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RenameJob(t.Context(), "load", "load-old", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(401 * 24 * time.Hour)
		if err := d.RemoveJob(t.Context(), "load-old", store.Author{}); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			ticktest.Request(t, d, "busy")
			ticktest.Pass(t, ticktest.New(t, sweeps))
		}
		got := seen(t, d, "changes", "kind, action", "WHERE subject NOT LIKE '%busy'")
		if want := []string{"job|remove", "job|rename", "schedule|rename"}; !slices.Equal(got, want) {
			t.Errorf("the change log has %q, want %q", got, want)
		}
	})
}

// Jobs that were removed 400 days ago go with all that belongs to them, but not those that something still needs.
func TestPruneForgetsRemovedJobs(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			forgetRemoved(t, storetest.Open(t, e, store.Options{Chance: func() float64 { return 0 }}))
		})
	}
}

// A sweep also comes to the newest of a million jobs.
func TestPruneForgetsTheNewestOfManyJobs(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{Chance: func() float64 { return 0.99999 }})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "busy", Steps: []store.Step{ticktest.Nop("")}}}})
			jobs := d.Table("jobs")
			var rows []string
			for i, days := range append(make([]int, 150), 500) { // before now; a sweep looks at fewer jobs
				rows = append(rows, fmt.Sprintf("(%d, 'job %d', %s, 'x')", 1_000_000+i, i, ticktest.Literal(d, d.Clock.Now().AddDate(0, 0, -days))))
			}
			d.Exec(t, "INSERT INTO "+jobs+" (id, name, removed_at, planned) VALUES "+strings.Join(rows, ", "))
			d.Exec(t, "UPDATE "+jobs+" SET planned = plan_input WHERE id >= 1000000")
			ticktest.Request(t, d, "busy")
			ticktest.Run(t, d)
			if n := d.Int(t, "SELECT count(*) FROM "+jobs); n != 151 {
				t.Errorf("there are %d jobs, want the 150 that were removed lately, and one more", n)
			}
		})
	}
}

func forgetRemoved(t *testing.T, d *storetest.DB) {
	t.Helper()
	once := func(name string) store.Job {
		return store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), MaxRuns: 1, RemoveDone: true, Steps: []store.Step{ticktest.Nop("")}}
	}
	busy := store.Job{Name: "busy", Steps: []store.Step{ticktest.Nop("")}}
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{busy, once("once"), once("followed"), once("by hand"), once("pausing"),
		{Name: "follower", After: []store.After{{Job: "followed"}}, Steps: []store.Step{ticktest.Nop("")}}}})
	if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{once("of a file")}}, store.ApplyOptions{Manifest: "file"}); err != nil {
		t.Fatal(err)
	}
	if err := d.RemoveJob(t.Context(), "by hand", store.Author{}); err != nil { // before any pass: it has no plan
		t.Fatal(err)
	}
	ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "pausing"}, d.Clock.Now().Add(time.Minute))
	for range 4 {
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
	}
	names := func() string {
		list := map[string]string{"sqlite": "group_concat(name, ', ')", "postgres": "string_agg(name, ', ')", "mariadb": "GROUP_CONCAT(name SEPARATOR ', ')"}[d.Engine]
		var names string
		if err := d.SQL.QueryRow("SELECT " + list + " FROM (SELECT name FROM " + d.Table("jobs") + " ORDER BY name LIMIT 100) AS t").Scan(&names); err != nil {
			t.Fatal(err)
		}
		return names
	}
	all, left := "busy, by hand, followed, follower, of a file, once, pausing", "busy, followed, follower, of a file"
	if live := d.Int(t, "SELECT count(*) FROM "+d.Table("jobs")+" WHERE removed_at IS NULL"); live != 2 {
		t.Fatalf("%d jobs are not removed", live)
	}
	for _, c := range []struct {
		wait time.Duration
		want string
	}{{399 * 24 * time.Hour, all}, {2 * 24 * time.Hour, left}} {
		d.Clock.Add(c.wait)
		for range 2 { // the first pass deletes their runs
			ticktest.Request(t, d, "busy")
			ticktest.Run(t, d)
		}
		if got := names(); got != c.want {
			t.Errorf("%s later: %s, want %s", c.wait, got, c.want)
		}
	}
	for _, table := range []string{"plans", "steps", "plan_rules", "job_schedules", "schedules", "job_after"} {
		if n := d.Int(t, fmt.Sprintf("SELECT count(*) FROM %s x WHERE job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM %s j WHERE j.id = x.job_id)", d.Table(table), d.Table("jobs"))); n > 0 {
			t.Errorf("%d rows of no job are left in %s", n, table)
		}
	}
}

// Stretches of ticks, and pauses, that ended 400 days ago are deleted. A pause without an end stays.
func TestPruneForgetsOldTicksAndPauses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		jobs := []store.Job{{Name: "busy", Steps: []store.Step{ticktest.Nop("")}}}
		for _, name := range []string{"ended", "open"} {
			jobs = append(jobs, store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}})
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		for name, length := range map[string]time.Duration{"ended": time.Minute, "open": 0} {
			var until time.Time
			if length > 0 {
				until = d.Clock.Now().Add(length)
			}
			ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: name}, until)
		}
		for range 3 {
			ticktest.Run(t, d)
			d.Clock.Add(time.Hour)
		}
		stretches, day := d.Int(t, "SELECT count(*) FROM "+d.Table("ticks")), 24*time.Hour
		if stretches != 3 {
			t.Fatalf("%d stretches of ticks", stretches)
		}
		for _, c := range []struct {
			wait          time.Duration
			ticks, pauses int
		}{{399 * day, 4, 2}, {2 * day, 2, 1}} {
			d.Clock.Add(c.wait)
			ticktest.Request(t, d, "busy")
			ticktest.Run(t, d)
			ticks, pauses := d.Int(t, "SELECT count(*) FROM "+d.Table("ticks")), d.Int(t, "SELECT count(*) FROM "+d.Table("pauses"))
			if ticks != c.ticks || pauses != c.pauses {
				t.Errorf("%s later: %d stretches and %d pauses, want %+v", c.wait, ticks, pauses, c)
			}
		}
	})
}

// A job keeps the number of runs, or the age of runs, that its policy says.
func TestPruneKeepsWhatIsToBeKept(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "few", Own: ticktest.EveryFiveMinutes(), Keep: store.Keep{Runs: 3}, Steps: []store.Step{ticktest.Nop("")}},
			{Name: "young", Own: ticktest.EveryFiveMinutes(), Keep: store.Keep{Age: store.Duration(12 * time.Minute)}, Steps: []store.Step{ticktest.Nop("")}},
		}})
		for range 8 {
			ticktest.Run(t, d)
			d.Clock.Add(5 * time.Minute)
		}
		for name, most := range map[string]int{"few": 3, "young": 3} {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: name})
			if err != nil || len(runs) != most {
				t.Errorf("%s: %v, %d runs", name, err, len(runs))
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")); n != 6 {
			t.Errorf("%d attempts", n)
		}
	})
}
