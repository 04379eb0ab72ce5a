package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// An atomic step whose text ends its transaction is found out, however it does that, and its job is paused: whatever it
// has done would be done again.
func TestAStepThatEndsItsTransactionIsNotAtomic(t *testing.T) {
	const insert, nowhere = "INSERT INTO effects VALUES (1)", "INSERT INTO nowhere VALUES (1)"
	type texts map[string][]string
	everywhere := texts{
		"commits":                    {insert, "COMMIT"},
		"commits first":              {"COMMIT", insert},
		"rolls back":                 {insert, "ROLLBACK"},
		"commits and begins":         {insert, "COMMIT", "BEGIN", insert},
		"commits, begins and fails":  {insert, "COMMIT", "BEGIN", nowhere},
		"commits and fails":          {insert, "COMMIT", nowhere},
		"commits, and sets the same": {insert, "COMMIT", "BEGIN", "SAVEPOINT dbjobs_step"},
	}
	more := map[string]texts{
		"postgres": {
			"in one text":           {insert + "; COMMIT; BEGIN; " + insert},
			"prepares or refuses":   {"COMMIT AND CHAIN"},
			"rolls back, and chain": {insert, "ROLLBACK AND CHAIN"},
			"another word":          {insert, "END"},
		},
		"sqlite": {"in one text": {insert + "; COMMIT; BEGIN; " + insert}, "another word": {insert, "END"}},
		"mariadb": {
			"DDL":                {insert, "CREATE TABLE another (n int)"},
			"DDL and failure":    {"ALTER TABLE other ADD m int", nowhere},
			"DDL alone":          {"TRUNCATE TABLE effects"},
			"locks":              {"LOCK TABLES effects WRITE", insert},
			"begins":             {insert, "START TRANSACTION", insert},
			"within a procedure": {"CALL commits()"},
			"a setting":          {"SET autocommit = 0", insert, "SET autocommit = 1", insert},
			"a failure handled":  {"BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; " + insert + "; COMMIT; " + nowhere + "; END"},
		},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		if d.Engine == "mariadb" {
			d.Exec(t, "CREATE TABLE other (n int)")
			d.Exec(t, "CREATE PROCEDURE commits() BEGIN "+insert+"; COMMIT; END")
		}
		tries, wait := store.Attempts(3), store.Duration(time.Second)
		cases := texts{}
		var defs store.Definitions
		for _, group := range []texts{everywhere, more[d.Engine]} {
			for name, list := range group {
				cases[name] = list
				defs.Jobs = append(defs.Jobs, store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Retry: store.Retry{Attempts: &tries, Backoff: &wait},
					Steps: []store.Step{ticktest.AtomicStep(list...)}})
			}
		}
		ticktest.Apply(t, d, defs)
		tk := ticktest.New(t, d.Store)
		tk.Concurrency = 1
		for range 4 {
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.Clock.Add(5 * time.Minute)
		}
		for name := range cases {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: name})
			if err != nil || len(runs) != 1 || runs[0].State != store.Failed || runs[0].Attempts != 1 || !strings.HasPrefix(runs[0].Error, "the step is not atomic: ") {
				t.Errorf("%s: %v: %+v", name, err, runs)
			}
			j, err := d.Job(t.Context(), name)
			if err != nil || j.Paused == nil || !strings.Contains(j.Paused.Reason, "ended the transaction") {
				t.Errorf("%s: %v: %+v", name, err, j.Paused)
			}
		}
	})
}

// What engines undo with the transaction stays atomic, and so does a failure: it is tried again.
func TestWhatATransactionHoldsStaysAtomic(t *testing.T) {
	const insert, nowhere = "INSERT INTO effects VALUES (1)", "INSERT INTO nowhere VALUES (1)"
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		good := map[string][]string{
			"savepoints":      {"SAVEPOINT a", insert, "ROLLBACK TO SAVEPOINT a", insert, "RELEASE SAVEPOINT a"},
			"temporary table": {"CREATE TEMPORARY TABLE t (n int)", insert},
		}
		if d.Engine != "mariadb" {
			good["DDL"] = []string{"CREATE TABLE another (n int)", insert}
		}
		if d.Engine == "postgres" {
			good["begins in vain"] = []string{"BEGIN", insert} // a warning
		}
		bad := map[string][]string{"fails": {insert, nowhere}, "fails at once": {nowhere}, "syntax": {insert, "NOT SQL"}}
		tries, wait := store.Attempts(2), store.Duration(time.Second)
		var defs store.Definitions
		for name, list := range good {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Steps: []store.Step{ticktest.AtomicStep(list...)}})
		}
		for name, list := range bad {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Retry: store.Retry{Attempts: &tries, Backoff: &wait}, Steps: []store.Step{ticktest.AtomicStep(list...)}})
		}
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		ticktest.Run(t, d)
		d.Clock.Add(time.Minute)
		ticktest.Run(t, d)
		for name := range good {
			if got := ticktest.States(t, d, name); !slices.Equal(got, []string{store.Succeeded}) {
				t.Errorf("%s: %v", name, got)
			}
		}
		for name := range bad {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: name})
			if err != nil || runs[0].State != store.Failed || runs[0].Attempts != 2 || strings.Contains(runs[0].Error, "atomic") {
				t.Errorf("%s: %v: %+v", name, err, runs)
			}
			if j, err := d.Job(t.Context(), name); err != nil || j.Paused != nil {
				t.Errorf("%s: %v: %+v", name, err, j.Paused)
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != len(good) {
			t.Errorf("%d effects, want %d", n, len(good))
		}
	})
}

// A step that is stopped half-way, here because its pass is, has to tell as well whether its text ended the transaction:
// what it has committed would be done again. One that did not is given back.
func TestAStoppedStepTellsWhatItHasCommitted(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO effects VALUES (1)"
	for name, c := range map[string]struct {
		before []string
		atomic bool
	}{
		"atomic":             {[]string{insert}, true},
		"commits":            {[]string{insert, "COMMIT"}, false},
		"commits and begins": {[]string{insert, "COMMIT", "BEGIN", insert}, false},
	} {
		for _, e := range storetest.Engines(t) {
			t.Run(e+"/"+name, func(t *testing.T) {
				t.Parallel()
				slow := map[string][]string{
					"sqlite": {"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1e9) SELECT count(*) FROM c",
						"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1e9) INSERT INTO effects SELECT count(*) FROM c"},
					"postgres": {"SELECT pg_sleep(60)", "WITH s AS (SELECT 1, pg_sleep(60)) INSERT INTO effects SELECT 1 FROM s"},
					"mariadb":  {"SELECT SLEEP(60)", "INSERT INTO effects WITH s AS (SELECT SLEEP(60)) SELECT 1 FROM s"},
				}[e]
				var calls storetest.Calls
				d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
				for i, last := range slow {
					d.Exec(t, []string{"CREATE TABLE effects (n int)", "DELETE FROM effects"}[i])
					job := fmt.Sprint(name, i)
					ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: job, Steps: []store.Step{ticktest.AtomicStep(append(c.before, last)...)}}}})
					ticktest.Request(t, d, job)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					calls.Before = func(call storetest.Call) error {
						if call.SQL == last {
							time.AfterFunc(100*time.Millisecond, cancel)
						}
						return nil
					}
					if _, err := ticktest.New(t, d.Store).Run(ctx); !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
					runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
					if err != nil || len(runs) != 1 || runs[0].Attempts != 1 {
						t.Fatalf("%v: %+v", err, runs)
					}
					state, effects := store.Failed, 1
					if c.atomic {
						state, effects = store.Waiting, 0
					}
					told := strings.HasPrefix(runs[0].Error, "the step is not atomic: ")
					if n := d.Int(t, "SELECT count(*) FROM effects"); runs[0].State != state || told == c.atomic || n != effects {
						t.Errorf("%s: %d effects, %s: %s", last, n, runs[0].State, runs[0].Error)
					}
					if j, err := d.Job(t.Context(), job); err != nil || (j.Paused == nil) != c.atomic {
						t.Errorf("%v: paused: %+v", err, j.Paused)
					}
					// Its run is not to be tried beside the next job's: on SQLite that would wait for it.
					if _, err := d.AbortJob(t.Context(), job, false, store.Author{}); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// Each attempt tells what its engine tells of a failure.
func TestAnAttemptTellsWhatTheEngineTells(t *testing.T) {
	type facts struct {
		Code, Severity string
		Line           int
		Detail, Hint   string
	}
	second := "SELECT 1;\n-- a remark: ü\nSELEKT 2" // in simple protocols, the second of one text
	cases := map[string]map[string]struct {
		statements []string
		want       facts
	}{
		"postgres": {
			"syntax":    {[]string{"SELECT 1", "SELECT\n  'ü', 1 +\nFROM nowhere"}, facts{"42601", "ERROR", 3, "", ""}},
			"table":     {[]string{"SELECT 1\nFROM nowhere"}, facts{"42P01", "ERROR", 2, "", ""}},
			"block":     {[]string{"DO $$\nBEGIN\n  PERFORM 1 / 0;\nEND $$"}, facts{"22012", "ERROR", 3, "", ""}},
			"raised":    {[]string{"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'ZZ001'; END $$"}, facts{"ZZ001", "ERROR", 1, "", ""}},
			"unique":    {[]string{"CREATE TABLE u (n int PRIMARY KEY)", "INSERT INTO u VALUES (1), (1)"}, facts{"23505", "ERROR", 0, "Key (n)=(1) already exists.", ""}},
			"severer":   {[]string{"SELECT pg_terminate_backend(pg_backend_pid())"}, facts{"57P01", "FATAL", 0, "", ""}},
			"hint":      {[]string{"DO $$ BEGIN RAISE EXCEPTION 'no' USING DETAIL = 'none is left', HINT = 'wait'; END $$"}, facts{"P0001", "ERROR", 1, "none is left", "wait"}},
			"in a text": {[]string{second}, facts{"42601", "ERROR", 3, "", ""}},
		},
		"mariadb": {
			"syntax": {[]string{"SELECT\n  1\n+ FROM nowhere"}, facts{"1064 (42000)", "", 3, "", ""}},
			"table":  {[]string{"SELECT 1\nFROM nowhere"}, facts{"1146 (42S02)", "", 0, "", ""}},
			"unique": {[]string{"CREATE TABLE u (n int PRIMARY KEY)", "INSERT INTO u VALUES (1), (1)"}, facts{"1062 (23000)", "", 0, "", ""}},
			"raised": {[]string{"BEGIN NOT ATOMIC SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END"}, facts{"1644 (45000)", "", 0, "", ""}},
		},
		"sqlite": {
			"syntax": {[]string{"SELECT\n  1\n+ FROM nowhere"}, facts{"1", "", 0, "", ""}},
			"unique": {[]string{"CREATE TABLE u (n int PRIMARY KEY)", "INSERT INTO u VALUES (1), (1)"}, facts{"1555", "", 0, "", ""}},
		},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		var defs store.Definitions
		for name, c := range cases[d.Engine] {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Steps: []store.Step{ticktest.Step("", c.statements...)}})
		}
		defs.Jobs = append(defs.Jobs, store.Job{Name: "counts", Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1), (2), (3)", "DELETE FROM effects WHERE n > 1")}})
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		ticktest.Run(t, d)
		attempt := func(job string) store.Attempt {
			t.Helper()
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
			if err != nil || len(runs) != 1 {
				t.Fatal(err, runs)
			}
			detail, err := d.Run(t.Context(), runs[0].ID)
			if err != nil || len(detail.Tries) != 1 || detail.Tries[0].StartedAt.IsZero() || detail.Tries[0].FinishedAt.IsZero() {
				t.Fatalf("%v: %+v", err, detail)
			}
			return detail.Tries[0]
		}
		for name, c := range cases[d.Engine] {
			a := attempt(name)
			if got := (facts{a.Code, a.Severity, a.Line, a.Detail, a.Hint}); got != c.want || a.State != store.Failed || a.Error == "" {
				t.Errorf("%s: %+v, want %+v: %s", name, got, c.want, a.Error)
			}
		}
		if a := attempt("counts"); a.State != store.Succeeded || a.Rows == nil || *a.Rows != 5 {
			t.Errorf("%+v", a)
		}
	})
}
