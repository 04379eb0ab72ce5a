package tick_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// beside runs a pass during somebody's open transaction. The pass must not wait for the transaction.
func beside(t *testing.T, d *storetest.DB, statement string) (succeeded int) {
	t.Helper()
	tx, err := d.SQL.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(statement); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	r, err := ticktest.New(t, d.Store).Run(ctx)
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	return r.Succeeded
}

// Somebody holds the plan and the run of one job. The pass still decides for the other job.
func TestLockedPlanIsPassedOver(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "locked", Steps: steps}, {Name: "free", Steps: steps}}})
		ticktest.Run(t, d)
		for _, name := range []string{"locked", "free"} {
			ticktest.RunNow(t, d, name, store.Request{})
		}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		locked := " WHERE job_id = (SELECT id FROM " + d.Table("jobs") + " WHERE name = 'locked') FOR UPDATE"
		for _, table := range []string{"plans", "runs"} {
			var id int64
			if err := tx.QueryRowContext(t.Context(), "SELECT job_id FROM "+d.Table(table)+locked).Scan(&id); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		if r, err := ticktest.New(t, d.Store).Run(ctx); err != nil || r.Succeeded != 1 {
			t.Errorf("%d runs succeeded beside a locked plan, %v", r.Succeeded, err)
		}
	})
}

// A holder stops half-way through the end of its run, with the run locked. It delays that run, and no other job's.
func TestLockedRunHoldsUpNobody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("an open write holds up all others, for the busy timeout")
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}, {Name: "b", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Request(t, d, "a")
		ticktest.DecideOnly(t, d)
		tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "gone", Lease: time.Minute})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		d.Clock.Add(time.Hour)
		ticktest.RunNow(t, d, "b", store.Request{})
		if n := beside(t, d, "UPDATE "+d.Table("runs")+" SET error = 'x' WHERE id = '"+tasks[0].Run.ID+"'"); n != 1 {
			t.Errorf("%d runs succeeded, want that of b", n)
		}
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Errorf("the lock is gone, and the run is not recovered: %+v", r)
		}
	})
}

// Somebody has locked one of the runs that a worker holds. The heartbeat of the other runs still works, and says that
// the worker holds all of them.
func TestLockedRunStopsNoHeartbeatOfOthers(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "locked", Queue: "others", Steps: steps}, {Name: "free", Queue: "others", Steps: steps}}})
		ticktest.Request(t, d, "locked")
		ticktest.Request(t, d, "free")
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "worker", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "others", 2, h)
		if err != nil || len(tasks) != 2 {
			t.Fatal(err, tasks)
		}
		ids := []string{tasks[0].Run.ID, tasks[1].Run.ID}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE "+d.Table("runs")+" SET error = 'x' WHERE id = '"+ids[0]+"'"); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(30 * time.Second)
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		signs, err := d.Heartbeat(ctx, ids, h)
		if err != nil || len(signs) != 2 {
			t.Fatalf("%v: %v", err, signs)
		}
		for i, ends := range []time.Duration{30 * time.Second, time.Minute} {
			if r, err := d.Run(t.Context(), ids[i]); err != nil || !r.LeaseUntil.Equal(d.Clock.Now().Add(ends)) {
				t.Errorf("%s: %v: its lease ends at %s", r.Job, err, r.LeaseUntil)
			}
			if extended := i == 1; signs[ids[i]].Extended != extended {
				t.Errorf("the sign of run %d: %+v", i, signs[ids[i]])
			}
		}
	})
}

// An editor's open transaction on one of a job's links blocks nothing.
func TestLockedLinkHoldsUpNobody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("an open write holds up all others, for the busy timeout")
		}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "s1", Rule: "every 5m"}, {Name: "s2", Rule: "every 7m"}},
			Jobs: []store.Job{{Name: "a", Schedules: []string{"s1", "s2"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET priority = 3")
		d.Clock.Add(10 * time.Minute)
		if n := beside(t, d, "DELETE FROM "+d.Table("job_schedules")+" WHERE schedule_id = (SELECT id FROM "+d.Table("schedules")+" WHERE name = 's1')"); n != 1 {
			t.Errorf("%d runs succeeded", n)
		}
	})
}

// locking is an executor during whose step another session takes the lock of an SQLite file.
type locking struct {
	t      *testing.T
	d      *storetest.DB
	held   *sql.Tx
	locked func() // if set, it is called as soon as the lock is held
}

func (l *locking) Execute(ctx context.Context, _ executor.Request) (executor.Result, error) {
	tx, err := l.d.SQL.BeginTx(context.WithoutCancel(ctx), nil) // immediate: it holds the lock for writing
	if err != nil {
		l.t.Error(err)
	}
	l.held = tx
	if l.locked != nil {
		l.locked()
	}
	return executor.Result{}, nil
}

// patient is a connector whose connections wait longer for the lock of an SQLite file than any test takes. So only the
// budget of a pass can end the wait.
type patient struct{ driver.Connector }

func (c patient) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err == nil {
		_, err = conn.(driver.ExecerContext).ExecContext(ctx, "PRAGMA busy_timeout = 3600000", nil)
	}
	return conn, err
}

// A pass with a budget does not wait longer than its budget for another process that writes to the SQLite file. It
// reports what it waited for. It leaves nothing half-done: neither the decision that it could not make, nor the run
// whose end it could not record.
func TestLockedFileKeepsNoPass(t *testing.T) {
	t.Parallel()
	d := storetest.Open(t, "sqlite", store.Options{})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{{Executor: "locking", Spec: []byte("{}")}}}}})
	ticktest.Run(t, d)
	d.Clock.Add(6 * time.Minute)
	count := func(of string) int { return d.Int(t, "SELECT count(*) FROM dbjobs_"+of) }
	x := &locking{t: t, d: d}
	s := ticktest.OpenBeside(t, d, "", store.Options{Wrap: func(inner driver.Connector) driver.Connector { return patient{inner} }})
	var passed atomic.Int64 // of the budget, besides the time that really passes
	pass := func(budget time.Duration) (tick.Report, error) {
		t.Helper()
		tk := ticktest.New(t, s)
		tk.Executors, tk.Budget = executor.Registry{"locking": x}, budget
		passed.Store(0)
		tk.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
		return tk.Run(t.Context())
	}
	locked := func(when string, r tick.Report, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "another process holds the lock") {
			t.Errorf("%s: %v: %+v", when, err, r)
		}
	}
	release := func() {
		t.Helper()
		if err := x.held.Rollback(); err != nil {
			t.Error(err)
		}
	}

	if _, err := x.Execute(t.Context(), executor.Request{}); err != nil {
		t.Fatal(err)
	}
	r, err := pass(3 * time.Second)
	release()
	if err != nil || !strings.Contains(r.CutShort, "another process") || r.Made != 0 || count("runs") != 0 || count("gaps") != 0 {
		t.Errorf("%v: %d runs, %d gaps: %+v", err, count("runs"), count("gaps"), r)
	}

	x.locked = func() { passed.Store(int64(time.Hour - 5*time.Second)) }
	r, err = pass(time.Hour) // it decides, takes, and cannot record the end; a slow machine has time for the first two
	locked("ending a step", r, err)
	release()
	if n := count("runs WHERE state = 'running' AND fence = 1"); r.Made != 1 || r.Started != 1 || n != 1 || count("attempts") != 1 {
		t.Fatalf("%d run: %+v", n, r)
	}

	d.Clock.Add(3 * time.Minute) // the lease is over, and no heartbeat came
	x.locked = func() { time.AfterFunc(500*time.Millisecond, release) }
	if r, err = pass(0); err != nil || r.Succeeded != 1 || r.Made != 0 {
		t.Errorf("when the lock is free again: %v: %+v", err, r)
	}
	if n := count("attempts WHERE state = 'lost'"); n != 1 || count("attempts") != 2 || count("runs") != 1 {
		t.Errorf("%d attempt lost of %d, %d runs", n, count("attempts"), count("runs"))
	}
}

// A pass without a budget also ends if the database does not answer, for example because a whole table is locked. It
// names the session that has the lock.
func TestLockedTableKeepsNoPass(t *testing.T) {
	t.Parallel()
	if !prove.Whole() {
		t.Skip("it takes a minute; DBJOBS_PROVE is not set")
	}
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue // a locked file is also waited for, for ten seconds
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
			ticktest.Run(t, d)
			d.Clock.Add(6 * time.Minute)
			conn, err := d.SQL.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for _, st := range map[string][]string{"postgres": {"BEGIN", "LOCK TABLE dbjobs.runs IN ACCESS EXCLUSIVE MODE"}, "mariadb": {"LOCK TABLES dbjobs_runs WRITE"}}[storetest.Dialect(e)] {
				if _, err := conn.ExecContext(t.Context(), st); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			_, err = ticktest.New(t, d.Store).Run(t.Context())
			t.Logf("%s: %v", time.Since(began), err)
			if took := time.Since(began); err == nil || took > 2*store.Patience || !errors.Is(err, store.ErrNoAnswer) && !errors.Is(err, store.ErrLocked) {
				t.Errorf("after %s: %v", took, err)
			}
			if e == "postgres" && !strings.Contains(fmt.Sprint(err), "locks are held by session") {
				t.Errorf("it does not say who has the lock: %v", err)
			}
		})
	}
}

// A server that no longer answers does not let the pass be recorded. This is not told as a lock of another session.
func TestPassWhoseRecordIsNotAnswered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("SQLite has no server")
		}
		calls := storetest.Calls{Before: func(call storetest.Call) error {
			if call.Kind == storetest.Exec && strings.Contains(call.SQL, d.Table("ticks")) {
				return context.DeadlineExceeded
			}
			return nil
		}}
		s, err := store.Open(t.Context(), d.URL, store.Options{Wrap: calls.Wrap})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if r, err := ticktest.New(t, s).Run(t.Context()); err != nil || !strings.Contains(r.Unrecorded, "did not answer in time") {
			t.Errorf("%v: %q", err, r.Unrecorded)
		}
	})
}

// A pass with nothing to do whose record is locked has done its work, and names the session that has the lock, as far as its
// login sees it. Of a locked file it says nothing: another pass may be writing. After five minutes the pass fails: a database that takes no writes, as on a full disk, must not
// stay unnoticed until something is due. It does not say that the trigger was silent.
func TestPassesWhoseRecordStaysLocked(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		why := map[bool]string{true: "another process has the file locked", false: "another session holds a lock on the record of ticks; "}[d.Engine == "sqlite"]
		tk := ticktest.New(t, d.Store)
		tk.Late = 5 * time.Minute
		for range 12 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		release := lockTicks(t, d)
		defer release()
		if r := ticktest.Pass(t, tk); d.Engine == "sqlite" && r.Unrecorded != "" || d.Engine != "sqlite" && (!strings.Contains(r.Unrecorded, why) || !strings.Contains(r.Unrecorded, "session")) {
			t.Errorf("not recorded: %q", r.Unrecorded)
		}
		d.Clock.Add(5 * time.Minute)
		r, err := tk.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), why) || !r.SilentSince.IsZero() || r.Unrecorded != "" {
			t.Errorf("after five minutes: %v; silent since %s; %q", err, r.SilentSince, r.Unrecorded)
		}
		release()
		if r := ticktest.Pass(t, tk); r.Unrecorded != "" {
			t.Errorf("the lock is gone: %q", r.Unrecorded)
		}
	})
}

// A trigger that comes by alarms may come seldom, so a record that is refused shows nothing at first. It does if none is on record for
// two days.
func TestPassesByAlarmsWhoseRecordStaysLocked(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk := ticktest.New(t, d.Store)
		tk.Alarm = bellFunc(func(time.Time) {})
		ticktest.Pass(t, tk)
		defer lockTicks(t, d)()
		for _, wait := range []time.Duration{47 * time.Hour, 2 * time.Hour} {
			d.Clock.Add(wait)
			r, err := tk.Run(t.Context())
			if long := wait < 47*time.Hour; long != (err != nil && strings.Contains(err.Error(), "no pass of the trigger")) || !long && err != nil {
				t.Errorf("%s later: %v: %q", wait, err, r.Unrecorded)
			}
		}
	})
}

// lockTicks locks the record of ticks, as another session does, until the function that it returns is called.
func lockTicks(t *testing.T, d *storetest.DB) (release func()) {
	t.Helper()
	tx, err := d.SQL.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	row := "UPDATE " + d.Table("ticks") + " SET holder = 'x'"
	lock := map[string]string{"postgres": "LOCK TABLE " + d.Table("ticks") + " IN EXCLUSIVE MODE", "mariadb": row, "sqlite": row}
	if _, err := tx.ExecContext(t.Context(), lock[storetest.Dialect(d.Engine)]); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() } // it is done by then, or was rolled back before
}
