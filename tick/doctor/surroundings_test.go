package doctor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/doctor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// An examination that cannot go on says so in its report, so that nobody takes the findings up to then for all.
func TestExaminationThatStops(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r, err := doctor.Examine(ctx, d.Store, doctor.Options{Clock: d.Clock.Now, Direct: func(context.Context, *store.Store) error {
			stop()
			return nil
		}})
		if err == nil || r.Stopped != err.Error() {
			t.Errorf("it stopped with %v, and the report says %q", err, r.Stopped)
		}
		if r, err := doctor.Examine(t.Context(), d.Store, doctor.Options{Clock: d.Clock.Now}); err != nil || r.Stopped != "" {
			t.Errorf("%v: it came to its end, and the report says %q", err, r.Stopped)
		}
	})
}

// Problems around the ledger are named: the trigger, the clock, versions, runs that nobody takes, jobs that passes
// leave alone, a missing index.
func TestSurroundings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "due", Own: ticktest.EveryFiveMinutes(), Steps: ok},
			{Name: "left", Own: ticktest.EveryFiveMinutes(), Queue: "never", Steps: ok},
		}})
		expect := func(why string, want ...string) {
			t.Helper()
			if found, r := examine(t, d); !slices.Equal(found, want) {
				t.Errorf("%s: %q, want %q: %+v", why, found, want, r.Findings)
			}
		}
		expect("no pass came", "trigger")
		ticktest.Run(t, d)
		expect("a pass came")
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		d.Clock.Add(2 * time.Hour)
		expect("the trigger died", "queued", "trigger")
		freeze := store.Subject{Scope: store.ScopeAll}
		ticktest.Pause(t, d, freeze, time.Time{})
		expect("everything is paused", "trigger")
		ticktest.Resume(t, d, freeze, false)
		came := func() {
			t.Helper()
			d.Exec(t, "UPDATE "+d.Table("ticks")+" SET version = 'old', error = 'no room', last_at = "+literal(d, d.Clock.Now()))
		}
		came()
		expect("a pass came, and perhaps not since the freeze", "pass")
		d.Clock.Add(time.Hour)
		came()
		expect("passes come and do nothing", "overdue due", "overdue left", "pass", "queued")
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'waiting' WHERE state = 'queued'")
		d.Exec(t, "DELETE FROM "+d.Table("plans"))
		expect("plans are gone, and a run waits", "pass", "stuck left", "unplanned due", "unplanned left")

		r, err := doctor.Examine(t.Context(), d.Store, doctor.Options{Clock: func() time.Time { return d.Clock.Now().Add(-time.Minute) }, Version: "new"})
		var checks []string
		for _, f := range r.Findings {
			checks = append(checks, f.Check)
		}
		if err != nil || !slices.Contains(checks, "clock") || !slices.Contains(checks, "version") {
			t.Errorf("%v: %q", err, checks)
		}
		drop := "DROP INDEX " + d.Table("runs_number")
		if d.Engine == "mariadb" {
			drop = "DROP INDEX runs_number ON " + d.Table("runs")
		}
		d.Exec(t, drop)
		found, r := examine(t, d)
		if !slices.Contains(found, "indexes") {
			t.Errorf("an index is gone: %q", found)
		}
		for _, f := range r.Findings {
			if f.Check == "indexes" {
				d.Exec(t, f.Advice)
			}
		}
		if found, _ := examine(t, d); slices.Contains(found, "indexes") {
			t.Errorf("the index was made again: %q", found)
		}
		d.Exec(t, "DROP VIEW "+d.Table("v_gaps"))
		if found, _ := examine(t, d); d.Engine != "mariadb" && !slices.Contains(found, "views") { // MariaDB may hide the only view
			t.Errorf("a view is gone: %q", found)
		}
		d.Exec(t, "UPDATE "+d.Table("installation")+" SET repeatable = NULL")
		if found, _ := examine(t, d); !slices.Contains(found, "views") {
			t.Errorf("the views are those of another program: %q", found)
		}
		if applied, err := d.Migrate(t.Context()); err != nil || len(applied) != 1 {
			t.Errorf("applied %q: %v", applied, err)
		}
		if found, _ := examine(t, d); slices.Contains(found, "views") {
			t.Errorf("they were brought in: %q", found)
		}
	})
}

// A login that may only read can examine, and learns which actions a tick with this login could not do. A login with
// the rights of the README lacks no right.
func TestRightsAreNamed(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		login, s := d.As(t)
		denied := func(s *store.Store) string {
			r, err := doctor.Examine(t.Context(), s, doctor.Options{Clock: d.Clock.Now, Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Check == "rights" {
					return f.Problem
				}
			}
			return ""
		}
		if got := denied(s); got != "" {
			t.Errorf("a login with all rights: %s", got)
		}
		if d.Engine == "postgres" { // where no function is for everybody
			d.Exec(t, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA dbjobs FROM PUBLIC")
			user, as := d.Account(t, "user")
			u, err := store.Open(t.Context(), as, store.Options{Clock: d.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { u.Close() })
			if got := denied(s) + denied(u); got != "" {
				t.Errorf("a login with the rights of its kind: %s", got)
			}
			d.Exec(t, "REVOKE EXECUTE ON FUNCTION dbjobs.record_attempt FROM "+user)
			if got := denied(u); !strings.Contains(got, "EXECUTE on dbjobs.record_attempt") {
				t.Errorf("a login that cannot end an atomic step: %s", got)
			}
		}
		for _, table := range []string{"runs", "jobs"} {
			revoke := "REVOKE INSERT, DELETE ON " + d.Table(table) + " FROM " + login
			if d.Engine == "mariadb" {
				revoke += "@'%'"
			}
			d.Exec(t, revoke)
		}
		got := denied(s)
		for _, right := range []string{"DELETE on " + d.Table("jobs"), "DELETE on " + d.Table("runs"), "INSERT on " + d.Table("jobs"), "INSERT on " + d.Table("runs")} {
			if !strings.Contains(got, right) {
				t.Errorf("%s is not named: %s", right, got)
			}
		}
	})
}

// A table on which the login has no right may look like one that is gone. The rights are named, and nobody is sent to a
// copy of the database.
func TestRightsOnATableThatIsNotShown(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		login, s := d.As(t)
		if d.Engine == "mariadb" {
			login += "@'%'"
		}
		d.Exec(t, "REVOKE ALL ON "+d.Table("calendars")+" FROM "+login)
		r, err := doctor.Examine(t.Context(), s, doctor.Options{Clock: d.Clock.Now, Version: "test"})
		if err == nil || r.Stopped == "" {
			t.Errorf("it has come to its end: %v, %+v", err, r)
		}
		var problems []string
		for _, f := range r.Findings {
			if problems = append(problems, f.Problem); f.Check == "tables" || f.Check == "keys" || f.Check == "indexes" || f.Check == "views" || strings.Contains(f.Advice, "copy") {
				t.Errorf("%+v", f)
			}
		}
		if text := strings.Join(problems, "\n"); !strings.Contains(text, "SELECT on "+d.Table("calendars")) {
			t.Errorf("the rights are not named: %s", text)
		}
	})
}

// A sequence that is behind the rows of its table, as after a replication of the rows alone, is named with the statement
// that advances it. Until then, a definition that cannot be added is not called a duplicate.
func TestASequenceBehindItsRows(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	job := func(name string) store.Definitions {
		return store.Definitions{Jobs: []store.Job{{Name: name, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}
	}
	ticktest.Apply(t, d, job("first"))
	ticktest.Run(t, d)
	if found, r := examine(t, d); len(found) > 0 {
		t.Fatalf("%q: %+v", found, r.Findings)
	}
	d.Exec(t, "ALTER TABLE dbjobs.jobs ALTER COLUMN id RESTART WITH 1")
	_, err := d.Apply(t.Context(), job("second"), store.ApplyOptions{CreateOnly: true})
	if err == nil || errors.Is(err, store.ErrExists) || !strings.Contains(err.Error(), "setval") {
		t.Errorf("a job that the sequence does not let in: %v", err)
	}
	d.Exec(t, "ALTER TABLE dbjobs.jobs ALTER COLUMN id RESTART WITH 1")
	found, r := examine(t, d)
	if !slices.Equal(found, []string{"sequence"}) {
		t.Fatalf("%q: %+v", found, r.Findings)
	}
	d.Exec(t, r.Findings[0].Advice)
	if found, r := examine(t, d); len(found) > 0 {
		t.Errorf("after its advice: %q: %+v", found, r.Findings)
	}
	ticktest.Apply(t, d, job("second"))
}

// Whatever the plan of the statement is, it asks only sequences for their rights: the server fails for a table.
func TestSequencesByOtherPlans(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	for _, setting := range []string{"enable_nestloop=off", "enable_nestloop=off&enable_hashjoin=off", "enable_indexscan=off&enable_bitmapscan=off"} {
		if _, err := ticktest.OpenBeside(t, d, setting, store.Options{Clock: d.Clock.Now}).Server(t.Context()); err != nil {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// A login whose transactions are read-only by a setting learns that no pass can write.
func TestALoginThatWritesNothing(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	for setting, want := range map[string][]string{"off": {"trigger"}, "on": {"standby", "trigger"}} {
		beside := *d
		beside.Store = ticktest.OpenBeside(t, d, "default_transaction_read_only="+setting, store.Options{Clock: d.Clock.Now})
		if found, r := examine(t, &beside); !slices.Equal(found, want) {
			t.Errorf("%s: %q, want %q: %+v", setting, found, want, r.Findings)
		}
	}
}

// If rows have owners, doctor names a login that no row security binds: here, the login that made the tables. Only a
// superuser can make superusers and grant BYPASSRLS, and the login of the tests is not a superuser.
func TestRightsThatNoRowSecurityBinds(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		login, bound := d.As(t)
		if d.Engine == "postgres" {
			t.Cleanup(func() { d.Exec(t, "REVOKE dbjobs_ticker FROM "+login) })
		}
		for _, owners := range []bool{false, true} {
			if err := d.SetOwners(t.Context(), owners); err != nil {
				t.Fatal(err)
			}
			if owners && d.Engine == "postgres" {
				d.Exec(t, "GRANT dbjobs_ticker TO "+login)
			}
			for who, s := range map[string]*store.Store{"maker": d.Store, "ticker": bound} {
				r, err := doctor.Examine(t.Context(), s, doctor.Options{Clock: d.Clock.Now, Version: "test"})
				if err != nil {
					t.Fatal(err)
				}
				told := slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
					return f.Check == "rights" && strings.Contains(f.Problem, "this login owns the tables: no row security binds it")
				})
				if want := owners && who == "maker" && d.Engine == "postgres"; told != want {
					t.Errorf("%s, owners %t: told %t: %+v", who, owners, told, r.Findings)
				}
			}
		}
	})
}

// A restore may leave out what keeps the rows of one login from another, and a DBA may switch it off for a repair. Then doctor
// names it until it is there again.
func TestGuardsOfOwnersThatAreMissing(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		told := func() string {
			t.Helper()
			r, err := doctor.Examine(t.Context(), d.Store, doctor.Options{Clock: d.Clock.Now, Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Check == "owners" {
					_, names, _ := strings.Cut(f.Problem, "missing: ")
					return names
				}
			}
			return ""
		}
		for _, owners := range []bool{false, true} {
			if err := d.SetOwners(t.Context(), owners); err != nil {
				t.Fatal(err)
			}
			if got := told(); got != "" {
				t.Errorf("owners %t: missing are %s", owners, got)
			}
		}
		d.Exec(t, "ALTER TABLE dbjobs.jobs DISABLE ROW LEVEL SECURITY")
		d.Exec(t, "DROP POLICY every ON dbjobs.ticks")
		d.Exec(t, "ALTER TABLE dbjobs.job_after DISABLE TRIGGER refuse_reference")
		d.Exec(t, "ALTER TABLE dbjobs.job_schedules ENABLE REPLICA TRIGGER refuse_reference")
		if got := told(); got != "row security of dbjobs.jobs, trigger refuse_reference of dbjobs.job_schedules, trigger refuse_reference of dbjobs.job_after, policy every of dbjobs.ticks" {
			t.Errorf("missing are %s", got)
		}
		if err := d.SetOwners(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if got := told(); got != "" {
			t.Errorf("after migrate --owners: missing are %s", got)
		}
	})
}
