package tick_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A foreign setting is one that somebody has set for a database, for reasons of his own.
type foreign struct {
	settings []string
	fails    string // the text that the error must have; empty: everything works as usual
}

// allEffects is the content of the table that the jobs write after a complete use of the program.
const allEffects = "Jürgen 2, one 4, plain 2, remote 1, two 4"

// effects makes the table that they write. It has a key, since some servers take no table without one.
func effects(engine string) string {
	key := "serial"
	if engine == "sqlite" {
		key = "integer"
	} else if storetest.Dialect(engine) == "mariadb" {
		key = "bigint AUTO_INCREMENT"
	}
	return "CREATE TABLE " + public(engine) + "effects (n varchar(100), id " + key + " PRIMARY KEY)"
}

// hostilePath stands for the settings of storetest.Hostile.
const hostilePath = "search_path = hostile, public"

// public is the schema of the table that jobs write, before its name.
func public(engine string) string {
	if engine == "postgres" {
		return "public."
	}
	return ""
}

// useAll uses the program once: the definitions, passes in which jobs succeed and fail, a worker, commands that people
// use meanwhile, and the commands that show all this.
func useAll(t *testing.T, engine, url string) error {
	ctx := t.Context()
	clock := storetest.NewClock(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
	s, err := store.Open(ctx, url, store.Options{Clock: clock.Now, Create: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Migrate(ctx); err != nil {
		return err
	}
	x, err := executor.NewSQL(s)
	if err != nil {
		return err
	}
	defer x.Close()
	tk := &tick.Tick{Store: s, Name: "test", Holder: "test", Version: "test", Now: time.Now, Executors: executor.Registry{"sql": x}}
	goes := func(what func(context.Context) (tick.Report, error), want string) error {
		r, err := what(ctx)
		if got := fmt.Sprintf("%d succeeded, %d failed, %d cancelled", r.Succeeded, r.Failed, r.Cancelled); err == nil && got != want {
			err = fmt.Errorf("a pass with %s, want %s: %+v", got, want, r)
		}
		return err
	}
	pass := func(after time.Duration, want string) error {
		clock.Add(after)
		return goes(tk.Run, want)
	}
	table, place := public(engine)+"effects", "?"
	if engine == "postgres" {
		place = "$1"
	}
	defs := store.Definitions{Schedules: []store.Schedule{{Name: "often", Rule: "every 5m"}}, Groups: []store.Group{{Name: "few", MaxRunning: 1}},
		Jobs: []store.Job{
			{Name: "Jürgen", Schedules: []string{"often"}, Tags: []string{"ä"}, Keep: store.Keep{Runs: 1}, Steps: []store.Step{ticktest.StepWith(true, "INSERT INTO "+table+" (n) VALUES ("+place+")", "${job}")}},
			{Name: "plain", Schedules: []string{"often"}, Group: "few", Steps: []store.Step{ticktest.Step("", "INSERT INTO "+table+" (n) VALUES ('plain')")}},
			{Name: "two", Own: ticktest.EveryFiveMinutes(), Group: "few", Steps: []store.Step{ticktest.Step("one", "INSERT INTO "+table+" (n) VALUES ('one')"), ticktest.Step("two", "INSERT INTO "+table+" (n) VALUES ('two')")}},
			{Name: "remote", Queue: "reports", Steps: []store.Step{ticktest.StepWith(true, "INSERT INTO "+table+" (n) VALUES ('remote')")}},
			{Name: "bad", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO "+public(engine)+"no_such_table VALUES (1)")}},
		}}
	var run store.Run
	for _, do := range []func() error{
		func() error { _, err := s.Apply(ctx, defs, store.ApplyOptions{Manifest: "jobs"}); return err },
		func() error { return pass(0, "0 succeeded, 0 failed, 0 cancelled") },
		func() error { return pass(6*time.Minute, "3 succeeded, 1 failed, 0 cancelled") },
		func() error {
			runs, err := s.Runs(ctx, store.RunFilter{Job: "bad"})
			if err == nil && len(runs) == 1 {
				_, err = s.RetryRun(ctx, runs[0].ID, "", store.Author{})
			}
			return err
		},
		func() error { return pass(0, "0 succeeded, 1 failed, 0 cancelled") },
		func() error {
			_, err := s.Pause(ctx, store.Subject{Scope: store.ScopeTag, Name: "ä"}, time.Time{}, store.Author{Reason: "déjà vu"})
			return err
		},
		func() error { return pass(5*time.Minute, "2 succeeded, 1 failed, 0 cancelled") },
		func() error {
			_, err := s.Resume(ctx, store.Subject{Scope: store.ScopeTag, Name: "ä"}, true, store.Author{})
			return err
		},
		func() error { return pass(0, "1 succeeded, 0 failed, 0 cancelled") },
		func() (err error) {
			made, err := s.RunNow(ctx, "Jürgen", store.Request{Args: map[string]string{"day": "ö"}})
			run = made.Run
			return err
		},
		func() error { _, err := s.CancelRun(ctx, run.ID, store.Author{}); return err },
		func() error { return pass(0, "0 succeeded, 0 failed, 1 cancelled") },
		func() error {
			from := time.Date(2026, 1, 5, 7, 0, 0, 0, time.UTC)
			_, _, err := tick.Backfill(ctx, s, "two", tick.Range{From: from, To: from.Add(5 * time.Minute), Limit: 10})
			return err
		},
		func() error { return pass(0, "2 succeeded, 0 failed, 0 cancelled") },
		func() error { _, err := s.RunNow(ctx, "remote", store.Request{}); return err },
		func() error { return pass(0, "0 succeeded, 0 failed, 0 cancelled") },
		func() error { return goes(tk.Work, "1 succeeded, 0 failed, 0 cancelled") },
		func() error {
			defs.Jobs[1].Priority = 7
			defs.Jobs = defs.Jobs[:4]
			_, err := s.Apply(ctx, defs, store.ApplyOptions{Manifest: "jobs", Prune: true})
			return err
		},
		func() error { _, err := s.Replan(ctx, "", decide.Start, store.Author{}); return err },
		func() error { return s.RemoveJob(ctx, "plain", store.Author{}) },
		func() error { return pass(0, "0 succeeded, 0 failed, 0 cancelled") },
		func() error { return read(ctx, s, run.ID) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// read returns everything that the commands show of it.
func read(ctx context.Context, s *store.Store, run string) error {
	jobs, err := s.Jobs(ctx, store.JobFilter{})
	if err == nil && (len(jobs) != 3 || jobs[0].Name != "Jürgen" || jobs[0].Tags[0] != "ä") {
		err = fmt.Errorf("the jobs are %+v", jobs)
	}
	detail, failed := s.Run(ctx, run)
	if failed == nil && (detail.State != store.Cancelled || !strings.Contains(detail.Args, "ö")) {
		failed = fmt.Errorf("the run that was cancelled is %+v", detail)
	}
	err = errors.Join(err, failed)
	runs, failed := s.Runs(ctx, store.RunFilter{})
	if failed == nil && len(runs) < 6 {
		failed = fmt.Errorf("%d runs are listed", len(runs))
	}
	err = errors.Join(err, failed)
	pauses, failed := s.Pauses(ctx, true, 10)
	if failed == nil && (len(pauses) != 1 || pauses[0].Reason != "déjà vu" || !pauses[0].Since.Equal(time.Date(2026, 1, 5, 8, 6, 0, 0, time.UTC))) {
		failed = fmt.Errorf("the pauses are %+v", pauses)
	}
	err = errors.Join(err, failed)
	changes, failed := s.Changes(ctx, "", "", 1000)
	if failed == nil && len(changes) < 10 {
		failed = fmt.Errorf("%d changes are listed", len(changes))
	}
	_, gaps := s.Gaps(ctx, "two", 10)
	_, schedules := s.Schedules(ctx)
	_, groups := s.Groups(ctx)
	return errors.Join(err, failed, gaps, schedules, groups)
}

// Whatever is set for the sessions of a database, by the server, for the database or for its login: everything that the
// program does works as usual, or the error says which setting prevents it.
func TestSettingsOfOthers(t *testing.T) {
	t.Parallel()
	whole := prove.Whole()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			list := storetest.For(engine, foreignSettings)
			tried := 0
			for _, f := range list {
				one := f.settings
				for len(one) > 0 {
					now := one
					if whole { // one at a time
						now = one[:1]
					}
					one = one[len(now):]
					tried += len(now)
					t.Run(fmt.Sprintf("%s and %d more", now[0], len(now)-1), func(t *testing.T) { tryForeign(t, engine, now, f.fails) })
				}
			}
			t.Logf("%d settings", tried)
		})
	}
}

func tryForeign(t *testing.T, engine string, settings []string, fails string) {
	plain := storetest.URL(t, engine)
	if engine == "sqlite" { // some settings must be there first
		storetest.Settings(t, plain, settings...)
	}
	admin := storetest.OpenSQL(t, plain)
	if engine == "postgres" && settings[0] == hostilePath {
		storetest.Hostile(t, admin)
		settings = settings[1:]
	}
	if _, err := admin.Exec(effects(engine)); err != nil {
		t.Fatal(err)
	}
	url := plain
	if engine != "sqlite" && len(settings) > 0 {
		url = storetest.Settings(t, plain, settings...)
	}
	err := useAll(t, engine, url)
	switch {
	case fails == "" && err != nil:
		t.Errorf("%v", err)
	case fails != "" && err == nil && regexp.MustCompile(fails).MatchString(""): // it may, or may not
		t.Log("works")
	case fails != "" && (err == nil || !regexp.MustCompile(fails).MatchString(err.Error())):
		t.Errorf("%v, want an error with %s", err, fails)
	case fails == "":
		hasAllEffects(t, engine, admin)
	default:
		t.Logf("%v", err)
	}
}

func hasAllEffects(t *testing.T, engine string, db *sql.DB) {
	t.Helper()
	var effects []string
	rows, err := db.Query("SELECT n, COUNT(*) FROM " + public(engine) + "effects GROUP BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		effects = append(effects, fmt.Sprint(name, " ", n))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(effects)
	if got := strings.Join(effects, ", "); got != allEffects {
		t.Errorf("the effects are %s", got)
	}
}
