package tick_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What an atomic step has committed by its own text is not done again where the text then loses against another
// transaction: that is tried again only where it had no effect.
func TestAConflictAfterACommitIsNotTriedAgain(t *testing.T) {
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
		r, err := ticktest.New(t, d.Store).Run(t.Context())
		if err != nil || r.Failed != 2 {
			t.Fatalf("%v: %+v", err, r)
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

// A batch that was not written is not told of.
func TestABatchThatFailedIsNotReported(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		d.Clock.Add(6 * time.Minute)
		before := d.Int(t, "SELECT sum(decided) FROM "+d.Table("ticks"))
		var calls storetest.Calls
		broken := errors.New("broken by the test")
		calls.Before = func(c storetest.Call) error {
			if c.Kind == storetest.Exec && strings.Contains(c.SQL, "INSERT INTO "+d.Table("runs")) {
				return storetest.RefusedError{Err: broken}
			}
			return nil
		}
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})).Run(t.Context())
		if !errors.Is(err, broken) || r.Decided != 0 || r.Made != 0 {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := d.Int(t, "SELECT sum(decided) FROM "+d.Table("ticks")); n != before {
			t.Errorf("the record has %d decided more", n-before)
		}
	})
}

// The wake of a retry is told by the pass that backed off, though it decided nothing, and a further pass heeds it.
func TestARetryIsTheNextRun(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tries, wait, jitter := store.Attempts(2), store.Duration(5*time.Second), 0
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Retry: store.Retry{Attempts: &tries, Backoff: &wait, Jitter: &jitter},
			Steps: []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}}}})
		ticktest.Request(t, d, "a")
		ticktest.DecideOnly(t, d)
		tk, _ := repeating(t, d)
		r, err := tk.RunFor(t.Context(), 20*time.Second)
		if err != nil || r.Passes != 2 || r.Waiting != 1 || r.Failed != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// slowly is the test's database behind statements that take a time, by a clock that goes on.
func slowly(t *testing.T, d *storetest.DB, each time.Duration) *store.Store {
	t.Helper()
	var calls storetest.Calls
	calls.Before = func(storetest.Call) error { time.Sleep(each); return nil }
	began, base := time.Now(), d.Clock.Now()
	return ticktest.OpenBeside(t, d, "", store.Options{Clock: func() time.Time { return base.Add(time.Since(began)) }, Wrap: calls.Wrap})
}

// However the passes fall on the end of a budget, that end is no error, and none begins without a budget.
func TestRunForEndsWithItsBudget(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 1s")}})
		ticktest.Run(t, d)
		for i := range 5 {
			s := slowly(t, d, 10*time.Millisecond)
			tk := ticktest.New(t, s)
			// A tenth of it is for what runs at its end, which takes four calls.
			tk.Budget = time.Duration(2500+i*190) * time.Millisecond
			r, err := tk.RunFor(t.Context(), time.Minute)
			if err != nil {
				t.Errorf("budget %s: %v: %+v", tk.Budget, err, r)
			}
			d.Clock.Add(tk.Budget)
		}
	})
}

// A step that commits with its end reads anew at each statement, whatever a session does by default: a heartbeat that
// came in between would else fail its end for ever.
func TestAHeartbeatHarmsNoAtomicStep(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		options, sleep := "default_transaction_isolation=repeatable%20read", "SELECT pg_sleep(0.4)"
		if d.Engine == "mariadb" {
			options, sleep = "innodb_snapshot_isolation=ON", "SELECT SLEEP(0.4)"
		}
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{
			ticktest.AtomicStep("SELECT * FROM effects", "SELECT * FROM "+d.Table("runs"), sleep, "INSERT INTO effects VALUES (1)")}}}})
		ticktest.Request(t, d, "a")
		ticktest.DecideOnly(t, d)
		ctx, stop := context.WithCancel(t.Context())
		beaten := make(chan int)
		go func() { // a heartbeat every 150 ms
			beats := 0
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-time.After(150 * time.Millisecond):
					beats++
					_, _ = d.SQL.ExecContext(ctx, "UPDATE "+d.Table("runs")+" SET error = 'x' WHERE state = 'running'")
				}
			}
			beaten <- beats
		}()
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, options, store.Options{})).Run(t.Context())
		stop()
		if n := <-beaten; err != nil || r.Succeeded != 1 || n < 2 {
			t.Fatalf("%d beats; %v: %+v", n, err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 1 {
			t.Errorf("%d effects", n)
		}
	})
}
