package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// An atomic step whose text ends its transaction is detected, however the text does that. Its job is paused, because
// everything that the step has done would be done again.
func TestAtomicStepThatEndsItsTransactionIsFoundOut(t *testing.T) {
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
			"a failure handled":  {"CALL handles()"},
		},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		if d.Engine == "mariadb" {
			d.Exec(t, "CREATE TABLE other (n int)")
			d.Exec(t, "CREATE PROCEDURE commits() BEGIN "+insert+"; COMMIT; END")
			d.Exec(t, "CREATE PROCEDURE handles() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; "+insert+"; COMMIT; "+nowhere+"; END")
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
			ticktest.Pass(t, tk)
			d.Clock.Add(5 * time.Minute)
		}
		for name := range cases {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: name})
			if err != nil || len(runs) != 1 || runs[0].State != store.Failed || runs[0].Attempts != 1 || !strings.HasPrefix(runs[0].Error, "the step is not atomic: ") {
				t.Errorf("%s: %v: %+v", name, err, runs)
			}
			j, err := d.Job(t.Context(), name)
			if err != nil || j.Paused == nil || !strings.Contains(j.Paused.Reason, "its SQL ended the transaction") {
				t.Errorf("%s: %v: %+v", name, err, j.Paused)
			}
		}
	})
}

// Statements that engines undo with the transaction stay atomic. So does a failure, which is tried again.
func TestAtomicStaysWhatTheTransactionHolds(t *testing.T) {
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
			good["begins without effect"] = []string{"BEGIN", insert} // a warning
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

// A step that is stopped half-way, here because its pass is stopped, must also report whether its text ended the
// transaction: what it has committed would be done again. The run of a step that did not end it is returned.
func TestAtomicStepThatIsStoppedTellsWhatItCommitted(t *testing.T) {
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
					"sqlite":   {storetest.Resting, "INSERT INTO effects " + storetest.Resting},
					"postgres": {"SELECT pg_sleep(60)", "WITH s AS (SELECT 1, pg_sleep(60)) INSERT INTO effects SELECT 1 FROM s"},
					"mariadb":  {"SELECT SLEEP(60)", "INSERT INTO effects WITH s AS (SELECT SLEEP(60)) SELECT 1 FROM s"},
				}[storetest.Dialect(e)]
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
					// Its run must not be tried at the same time as the next job's run: on SQLite, that one would wait
					// for it.
					if _, err := d.AbortJob(t.Context(), job, false, store.Author{}); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// The same, with statements, and a connection that breaks behind the COMMIT of the first step.
func TestAtomicStepWhoseCommitIsUnansweredTakesEffectOnce(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var effect, broken atomic.Bool
			calls.After = func(c storetest.Call) error {
				if strings.Contains(c.SQL, "INTO effects") {
					effect.Store(true)
				}
				if c.Kind == storetest.Commit && effect.Load() && broken.CompareAndSwap(false, true) {
					return errors.New("unexpected EOF")
				}
				return nil
			}
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			d.Exec(t, "CREATE TABLE effects (n int)")
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{
				ticktest.StepWith(true, "INSERT INTO effects VALUES (1)"), ticktest.StepWith(true, "INSERT INTO effects VALUES (20)")}}}})
			ticktest.Request(t, d, "job")
			r := ticktest.Run(t, d)
			if r.Succeeded != 1 || r.Started != 1 || !broken.Load() {
				t.Fatalf("%+v", r)
			}
			if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 21 {
				t.Errorf("effects: %d", n)
			}
		})
	}
}

// An atomic step whose connection is lost before its COMMIT was sent has no effect. It is delivered again, and uses up
// no attempt. This does not hold for a text that may have committed something, or for a step that is not atomic. On
// PostgreSQL, a procedure and a DO block cannot commit inside the transaction of the step.
func TestAtomicStepThatLosesItsConnectionIsDeliveredAgain(t *testing.T) {
	for _, c := range []struct {
		name, pause, state string
		atomic             bool
	}{
		{"atomic", "SELECT %s FROM naps", store.Succeeded, true},
		{"plain", "SELECT %s FROM naps", store.Failed, false},
		{"may commit", "DO SLEEP(600)", store.Failed, true},
		{"cannot commit", "DO $$BEGIN PERFORM %s FROM naps; END$$", store.Succeeded, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if d.Engine == "sqlite" {
					t.Skip("no server ends its connections")
				}
				nap := map[string]string{"postgres": "pg_sleep(n)", "mariadb": "SLEEP(n)"}[d.Engine]
				if c.name == "cannot commit" && d.Engine != "postgres" {
					t.Skip("a procedure may commit everywhere")
				}
				pause := c.pause
				switch {
				case c.name != "may commit":
					pause = fmt.Sprintf(pause, nap)
				case d.Engine == "postgres":
					pause = "SELECT pg_sleep(n) FROM naps; COMMIT"
				}
				d.Exec(t, "CREATE TABLE effects (n int)")
				d.Exec(t, "CREATE TABLE naps (n int)")
				d.Exec(t, "INSERT INTO naps VALUES (600)")
				st := ticktest.Step("", "INSERT INTO effects VALUES (1)")
				st.Spec = []byte(fmt.Sprintf(`{"sql": ["INSERT INTO effects VALUES (1)", %q, "INSERT INTO effects VALUES (2)"], "atomic": %v}`, pause, c.atomic))
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{st}}}})
				ticktest.Request(t, d, "job")
				ticktest.DecideOnly(t, d)
				asleep := map[string]string{"postgres": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
					"mariadb": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND state = 'User sleep'"}[d.Engine]
				kill := map[string]string{"postgres": "SELECT pg_terminate_backend(%d)", "mariadb": "KILL %d"}[d.Engine]
				go func() {
					var id int
					for d.SQL.QueryRow(asleep).Scan(&id) != nil && t.Context().Err() == nil {
						time.Sleep(20 * time.Millisecond)
					}
					for _, text := range []string{"UPDATE naps SET n = 0", fmt.Sprintf(kill, id)} { // the next delivery does not sleep
						if _, err := d.SQL.Exec(text); err != nil && t.Context().Err() == nil {
							t.Errorf("%s: %v", text, err)
						}
					}
				}()
				ticktest.Run(t, d)
				d.Clock.Add(10 * time.Second)
				ticktest.Run(t, d)
				list, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
				if err != nil || len(list) != 1 || list[0].State != c.state || list[0].Attempt != 1 {
					t.Fatalf("%v: %+v", err, list)
				}
				if n := d.Int(t, "SELECT count(*) FROM effects"); n != map[string]int{"atomic": 2, "plain": 1, "may commit": 0, "cannot commit": 2}[c.name] {
					t.Errorf("%d effects", n)
				}
				t.Logf("%s, error %q", list[0].State, list[0].Error)
			})
		})
	}
}

// A text that ends its transaction, and loses its session after that, has failed like any other text that loses its session:
// nobody can tell whether it has committed something, so nobody says that nothing was done, and the job is not paused.
func TestAtomicStepThatCommitsAndLosesItsSessionHasFailed(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		last := map[string]string{"postgres": "SELECT pg_terminate_backend(pg_backend_pid())", "mariadb": "KILL CONNECTION_ID()"}[d.Engine]
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)", "COMMIT", last)}}}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		list, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(list) != 1 || list[0].State != store.Failed || strings.Contains(list[0].Error, "nothing of the step took effect") {
			t.Errorf("%v: %+v", err, list)
		}
		if j, err := d.Job(t.Context(), "job"); err != nil || j.Paused != nil {
			t.Errorf("%v: paused: %+v", err, j.Paused)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 1 {
			t.Errorf("%d effects", n)
		}
	})
}

// A step that commits with its end reads new values at each statement, whatever isolation a session has by default.
// Otherwise a heartbeat that came in between would make its end fail every time.
func TestAtomicStepIsNotHarmedByAHeartbeat(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		options := "default_transaction_isolation=repeatable%20read"
		if d.Engine == "mariadb" {
			options = "innodb_snapshot_isolation=ON"
		}
		if d.Server == "mysql" { // its UPDATE sees the newest row, whatever was read before
			options = ""
		}
		const last = "INSERT INTO effects VALUES (1)"
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{
			ticktest.AtomicStep("SELECT * FROM effects", "SELECT * FROM "+d.Table("runs"), last)}}}})
		ticktest.Request(t, d, "a")
		ticktest.DecideOnly(t, d)
		beats := 0
		calls := storetest.Calls{Before: func(call storetest.Call) error {
			if call.SQL == last {
				beats++
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET error = 'x' WHERE state = 'running'")
			}
			return nil
		}}
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, options, store.Options{Wrap: calls.Wrap})).Run(t.Context())
		if err != nil || r.Succeeded != 1 || beats != 1 {
			t.Fatalf("%d beats; %v: %+v", beats, err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 1 {
			t.Errorf("%d effects", n)
		}
	})
}
