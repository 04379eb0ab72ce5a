package tick_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// crossing makes a deadlock with a session that writes row 1 of other and then row 2. The other session loses, because
// this one has written more. The function that crossing returns waits for the end, and reports whether the other
// session lost. PostgreSQL looks for a deadlock once, a second after a session begins to wait. On a machine that is
// busy for that long, this session may lose instead.
func crossing(t *testing.T, d *storetest.DB) (won func() bool) {
	t.Helper()
	tx, err := d.SQL.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range []string{"INSERT INTO weight SELECT * FROM " + storetest.Numbers(500), "UPDATE other SET n = n + 1 WHERE id = 2"} {
		if _, err := tx.Exec(st); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan bool, 1)
	go func() {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if meets(d) {
				break
			}
		}
		if _, err := tx.Exec("UPDATE other SET n = n + 1 WHERE id = 1"); err != nil {
			t.Logf("the deadlock was to be the other's: %v", err)
			_ = tx.Rollback() // the server has already done this
			ended <- false
			return
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		ended <- true
	}()
	return func() bool { return <-ended }
}

// meets reports whether the other session has row 1. PostgreSQL undoes the transaction that waited first: there, the
// other session must also wait already.
func meets(d *storetest.DB) bool {
	var n int
	if d.Engine == "postgres" {
		err := d.SQL.QueryRow(`SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
			WHERE NOT l.granted AND a.datname = current_database() AND a.query LIKE '%WHERE id = 2'`).Scan(&n)
		return err == nil && n > 0
	}
	return d.SQL.QueryRow("SELECT id FROM other WHERE id = 1 FOR UPDATE NOWAIT").Scan(&n) != nil
}

// After a deadlock, an atomic step is tried again if its own transaction was undone. It is never tried again if its
// text had committed that transaction before. The engine reports both cases in the same words.
func TestAtomicStepInADeadlock(t *testing.T) {
	const first, second = "UPDATE other SET n = n + 10 WHERE id = 1", "UPDATE other SET n = n + 10 WHERE id = 2"
	const insert = "INSERT INTO effects VALUES (1)"
	cases := []struct {
		name    string
		text    []string
		engines string
		atomic  bool
	}{
		{"plain", []string{insert, first, second}, "postgres,mariadb", true},
		{"procedure", []string{insert, "CALL crosses()"}, "mariadb", true},
		{"temporary table", []string{insert, "CREATE TEMPORARY TABLE picked (n int)", first, second}, "postgres,mariadb", true},
		{"variable", []string{"INSERT INTO effects VALUES (COALESCE(@mine, 1))", "SET @mine = 2", first, second}, "mariadb", true},
		{"commits", []string{insert, "COMMIT", "START TRANSACTION", first, second}, "postgres,mariadb", false},
		{"DDL", []string{insert, "CREATE TABLE more (n int)", "START TRANSACTION", first, second}, "mariadb", false},
		{"within a procedure", []string{"CALL commits()"}, "mariadb", false},
	}
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Exec(t, "CREATE TABLE weight (n int)")
		d.Exec(t, "CREATE TABLE other (id int PRIMARY KEY, n int)")
		d.Exec(t, "INSERT INTO other VALUES (1, 0), (2, 0)")
		if d.Engine == "mariadb" {
			d.Exec(t, "CREATE PROCEDURE crosses() BEGIN "+first+"; "+second+"; END")
			d.Exec(t, "CREATE PROCEDURE commits() BEGIN "+insert+"; COMMIT; START TRANSACTION; "+first+"; "+second+"; END")
		}
		for _, c := range cases {
			if !strings.Contains(c.engines, d.Engine) {
				continue
			}
			name := c.name
			var r tick.Report
			var err error
			for try, won := 1, false; !won; try++ {
				name = fmt.Sprintf("%s %d", c.name, try)
				d.Exec(t, "DELETE FROM effects")
				d.Exec(t, "UPDATE other SET n = 0")
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: name, Steps: []store.Step{ticktest.AtomicStep(c.text...)}}}})
				ticktest.Request(t, d, name)
				ended := crossing(t, d)
				r, err = ticktest.New(t, d.Store).Run(t.Context())
				if won = ended(); !won && try == 5 {
					t.Fatalf("%s: the other session lost each of %d deadlocks", c.name, try)
				}
			}
			if err != nil || len(r.Runs) != 1 && !c.atomic || r.Started != 1 {
				t.Fatalf("%s: %v: %+v", c.name, err, r)
			}
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: name})
			if err != nil || len(runs) != 1 || runs[0].Attempts != 1 {
				t.Fatalf("%s: %v: %+v", c.name, err, runs)
			}
			refused := strings.HasPrefix(runs[0].Error, "the step is not atomic: ")
			if succeeded := runs[0].State == store.Succeeded; succeeded != c.atomic || refused == c.atomic {
				t.Errorf("%s: %s: %s", c.name, runs[0].State, runs[0].Error)
			}
			if n := d.Int(t, "SELECT sum(n) FROM effects"); n != 1 {
				t.Errorf("%s: %d effects", c.name, n)
			}
			if lost := d.Int(t, "SELECT n FROM other WHERE id = 2") % 10; lost == 0 {
				t.Errorf("%s: there was no deadlock", c.name)
			}
			d.Exec(t, "UPDATE other SET n = 0")
		}
	})
}

// The same for a snapshot that is too old for a write. MariaDB reports that with another number.
func TestAtomicStepWithAnOldSnapshot(t *testing.T) {
	const late = "UPDATE other SET n = -1"
	for _, e := range storetest.Engines(t) {
		if e != "mariadb" { // MySQL has no such setting
			continue
		}
		d := storetest.Open(t, e, store.Options{})
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Exec(t, "CREATE TABLE other (id int PRIMARY KEY, n int)")
		d.Exec(t, "INSERT INTO other VALUES (1, 0)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "commits", Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)", "COMMIT",
			"START TRANSACTION", "SELECT * FROM other", late)}}}})
		ticktest.Request(t, d, "commits")
		calls := storetest.Calls{Before: func(call storetest.Call) error {
			if call.SQL == late {
				d.Exec(t, "UPDATE other SET n = n + 1")
			}
			return nil
		}}
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, "innodb_snapshot_isolation=ON", store.Options{Wrap: calls.Wrap})).Run(t.Context())
		if err != nil || r.Failed != 1 || !strings.HasPrefix(r.Runs[0].Error, "the step is not atomic: ") || !strings.Contains(r.Runs[0].Error, "1020") {
			t.Errorf("%v: %+v", err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 1 {
			t.Errorf("%d effects", n)
		}
	}
}

// SQLite's BUSY reaches an atomic step only if the step's text has released the lock for writing.
func TestAtomicStepThatMeetsBusy(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	d.Exec(t, "CREATE TABLE effects (n int)")
	d.Exec(t, "CREATE TABLE other (n int)")
	const locked = "INSERT INTO other VALUES (1)"
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "commits", Steps: []store.Step{
		ticktest.AtomicStep("INSERT INTO effects VALUES (1)", "COMMIT", "PRAGMA busy_timeout = 0", locked)}}}})
	ticktest.Request(t, d, "commits")
	var calls storetest.Calls
	var holder *sql.Tx
	calls.Before = func(c storetest.Call) (err error) {
		if c.SQL == locked && holder == nil {
			holder, err = d.SQL.BeginTx(t.Context(), nil)
		}
		return err
	}
	calls.After = func(c storetest.Call) error {
		if c.SQL == locked && holder != nil {
			_ = holder.Rollback()
		}
		return nil
	}
	r, err := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})).Run(t.Context())
	if err != nil || r.Failed != 1 || !strings.HasPrefix(r.Runs[0].Error, "the step is not atomic: ") || !strings.Contains(r.Runs[0].Error, "SQLITE_BUSY") {
		t.Errorf("%v: %+v", err, r.Runs)
	}
	if n := d.Int(t, "SELECT count(*) FROM effects"); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// An engine may undo the whole transaction at an error that is no conflict, as InnoDB does if it has no room left for locks. That is
// a failure like any other, unless the text had committed something before: the procedures do what the server does then.
func TestAtomicStepThatItsServerUndoes(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" {
			t.Skip("an error leaves the transaction as it is, until its client ends it")
		}
		const full = "ROLLBACK; SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1206, MESSAGE_TEXT = 'The total number of locks exceeds the lock table size'; END"
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Exec(t, "CREATE PROCEDURE purges() BEGIN INSERT INTO effects VALUES (1); "+full)
		d.Exec(t, "CREATE PROCEDURE commits() BEGIN INSERT INTO effects VALUES (2); COMMIT; START TRANSACTION; INSERT INTO effects VALUES (3); "+full)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "purges", Steps: []store.Step{ticktest.AtomicStep("CALL purges()")}}, {Name: "commits", Steps: []store.Step{ticktest.AtomicStep("CALL commits()")}}}})
		ticktest.Request(t, d, "purges")
		ticktest.Request(t, d, "commits")
		r := ticktest.Run(t, d)
		if r.Failed != 2 {
			t.Fatalf("%+v", r)
		}
		for _, e := range r.Runs {
			commits := strings.HasSuffix(e.Job, "commits")
			if strings.HasPrefix(e.Error, "the step is not atomic: ") != commits || !strings.Contains(e.Error, "lock table size") {
				t.Errorf("%s: %s", e.Job, e.Error)
			}
		}
		for name, paused := range map[string]bool{"purges": false, "commits": true} {
			if j, err := d.Job(t.Context(), name); err != nil || (j.Paused != nil) != paused {
				t.Errorf("%s: %+v, %v", name, j.Paused, err)
			}
		}
		if n, sum := d.Int(t, "SELECT count(*) FROM effects"), d.Int(t, "SELECT sum(n) FROM effects"); n != 1 || sum != 2 {
			t.Errorf("%d effects, their sum is %d", n, sum)
		}
	})
}

// An atomic step whose text has committed something is not executed again if the text then loses against another
// transaction. It is tried again only if it had no effect.
func TestAtomicStepInAConflictAfterItsCommit(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Exec(t, "CREATE TABLE other (n int)")
		d.Exec(t, "INSERT INTO other VALUES (1)")
		wait := "SET lock_timeout = '20ms'"
		if d.Engine == "mariadb" {
			wait = "SET innodb_lock_wait_timeout = 0"
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "commits", Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (1)", "COMMIT", wait, "UPDATE other SET n = 2")}},
			{Name: "holds", Steps: []store.Step{ticktest.AtomicStep("INSERT INTO effects VALUES (2)", wait, "UPDATE other SET n = 2")}},
		}})
		ticktest.Request(t, d, "commits")
		ticktest.Request(t, d, "holds")
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE other SET n = 3"); err != nil {
			t.Fatal(err)
		}
		var calls storetest.Calls
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})).Run(t.Context())
		if err != nil || r.Failed != 2 {
			t.Fatalf("%v: %+v", err, r)
		}
		sent := 0
		for _, call := range calls.All() {
			if call.SQL == "UPDATE other SET n = 2" {
				sent++
			}
		}
		if sent != 2 {
			t.Errorf("the two texts were sent %d times, want once each: their sessions say how long they wait for the lock", sent)
		}
		for _, e := range r.Runs {
			if found := strings.HasPrefix(e.Error, "the step is not atomic: "); found != strings.HasSuffix(e.Job, "commits") {
				t.Errorf("%s: %s", e.Job, e.Error)
			}
		}
		if n, held := d.Int(t, "SELECT count(*) FROM effects WHERE n = 1"), d.Int(t, "SELECT count(*) FROM effects WHERE n = 2"); n != 1 || held != 0 {
			t.Errorf("%d effects of the one that commits, %d of the other", n, held)
		}
	})
}
