package executor_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// On PostgreSQL, the reset of a session is sent together with the last statement of an attempt. The statement has the
// same results as alone, can be stopped as alone, and leaves no session that is not reset.
func TestSessionIsMadeAsNewAlongWithTheLastStatement(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres") // sessions of other engines are reset by a separate trip
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (what text)")
	r := newRenewing(t, d)
	execute := func(s *engine.Session, ctx context.Context, text string) (engine.Told, int64, error) {
		var told engine.Told
		res, err := s.Conn.ExecContext(engine.Listen(s.Last(ctx), &told), text)
		if err != nil {
			return told, 0, err
		}
		n, err := res.RowsAffected()
		return told, n, err
	}

	s, number := r.take()
	r.lock(s, number)
	told, n, err := execute(s, t.Context(), "INSERT INTO effects VALUES ('one'), ('two') RETURNING what, 7 AS seven")
	if facts := told.Facts(); err != nil || n != 2 || facts != `{"rows": 2, "row": {"what": "one", "seven": 7}}` {
		t.Errorf("%d rows, %s: %v", n, facts, err)
	}
	r.isNew(number)
	s.Release(err == nil)

	s, then := r.take()
	if then != number {
		t.Errorf("session %d is followed by %d", number, then)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err = execute(s, ctx, "INSERT INTO effects SELECT 'late' FROM pg_sleep(60)"); err == nil || ctx.Err() == nil {
		t.Errorf("a statement whose time is over: %v", err)
	}
	s.Release(err == nil)
	if d.Int(t, "SELECT count(*) FROM effects") != 2 {
		t.Error("a statement that was stopped took effect")
	}

	s, then = r.take()
	if then == number {
		t.Error("the session of what was stopped goes on")
	}
	if _, _, err = execute(s, t.Context(), "INSERT INTO nowhere VALUES (1)"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a statement that fails: %v", err)
	}
	s.Release(err == nil)
}

// The reset is also sent together with COMMIT. A refused COMMIT has its reason, and its session can be used once more.
func TestSessionIsMadeAsNewAlongWithCommit(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (what text UNIQUE DEFERRABLE INITIALLY DEFERRED)")
	r := newRenewing(t, d)
	s, number := r.take()
	commit := func(what ...string) error {
		t.Helper()
		tx, err := s.Conn.BeginTx(s.Last(t.Context()), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range what {
			if _, err := tx.ExecContext(engine.Listen(t.Context(), &engine.Told{}), "INSERT INTO effects VALUES ($1)", w); err != nil {
				t.Fatal(err)
			}
		}
		return tx.Commit()
	}
	r.lock(s, number)
	if err := commit("one", "one"); err == nil || !strings.Contains(err.Error(), "effects_what_key") {
		t.Errorf("a COMMIT that a deferred constraint refuses: %v", err)
	}
	r.isNew(number)
	r.lock(s, number)
	if err := commit("one", "two"); err != nil {
		t.Error(err)
	}
	r.isNew(number)
	s.Release(true)
	s, then := r.take()
	if s.Release(true); then != number {
		t.Errorf("session %d is followed by %d", number, then)
	}
	if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

// On PostgreSQL, the record of an atomic step also goes along with COMMIT. If the run was delivered again, nothing is committed.
func TestRecordGoesAlongWithCommit(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (what text)")
	record := recordsOf(t, d)
	r := newRenewing(t, d)
	s, number := r.take()
	atomic := func() error {
		t.Helper()
		tx, err := s.Conn.BeginTx(s.Last(t.Context()), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(engine.Listen(t.Context(), &engine.Told{}), "INSERT INTO effects VALUES ('one')"); err != nil {
			t.Fatal(err)
		}
		if err := record(t.Context(), tx, executor.Result{}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "SELECT id FROM dbjobs.runs FOR UPDATE NOWAIT") // nothing was sent yet
		return tx.Commit()
	}
	for range 3 {
		d.Exec(t, "UPDATE dbjobs.attempts SET state = 'running', finished_at = NULL")
		r.lock(s, number)
		if err := atomic(); err != nil {
			t.Fatal(err)
		}
		r.isNew(number)
		s.Release(true)
		if n := d.Int(t, "SELECT count(*) FROM dbjobs.attempts WHERE state = 'succeeded' AND finished_at >= started_at"); n != 1 {
			t.Errorf("%d attempts are recorded, want 1", n)
		}
		var then int64
		if s, then = r.take(); then != number {
			t.Errorf("session %d is followed by %d", number, then)
		}
	}
	d.Exec(t, "UPDATE dbjobs.attempts SET state = 'running', finished_at = NULL")
	d.Exec(t, "UPDATE dbjobs.runs SET fence = fence + 1")
	if err := atomic(); err == nil || !strings.Contains(err.Error(), "delivered again") {
		t.Errorf("a run that was delivered again: %v", err)
	}
	s.Release(false)
	if n := d.Int(t, "SELECT count(*) FROM effects"); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
}

// recordsOf returns what records the success of a step in its transaction: always of the same run, which is delivered.
func recordsOf(t *testing.T, d *storetest.DB) func(context.Context, *sql.Tx, executor.Result) error {
	t.Helper()
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "atomic", Queue: "others", Steps: []store.Step{ticktest.AtomicStep("SELECT 1")}}}})
	ticktest.Request(t, d, "atomic")
	ticktest.Run(t, d)
	holder := store.Holder{Name: "another", Lease: time.Hour}
	tasks, err := d.Take(t.Context(), "others", 1, holder)
	if err != nil || len(tasks) != 1 {
		t.Fatal(err, tasks)
	}
	return func(ctx context.Context, tx *sql.Tx, _ executor.Result) error {
		task := tasks[0]
		_, err := d.EndStepIn(ctx, tx, &task, store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, holder)
		return err
	}
}

// The login of a job may have no right on our schema, for which the first reset looks. Its sessions are used again, too.
func TestSessionOfALoginWithoutRightsIsUsedAgain(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	login, s := d.As(t)
	d.Exec(t, "REVOKE ALL ON SCHEMA dbjobs FROM "+login)
	sessions, err := s.JobSessions(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sessions.Close() })
	r := renewing{t, d, sessions}
	first, number := r.take()
	var may bool
	if err := first.Conn.QueryRowContext(t.Context(), "SELECT has_schema_privilege('dbjobs', 'USAGE')").Scan(&may); err != nil || may {
		t.Fatal("the login has a right", err)
	}
	first.Release(true)
	next, then := r.take()
	if then != number {
		t.Errorf("session %d is followed by %d", number, then)
	}
	next.Release(true)
}

// renewing is sessions that are used again.
type renewing struct {
	t *testing.T
	d *storetest.DB
	*engine.Sessions
}

func newRenewing(t *testing.T, d *storetest.DB) renewing {
	sessions, err := d.JobSessions(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sessions.Close() })
	return renewing{t, d, sessions}
}

// take returns a session that was reset, and its number.
func (r renewing) take() (s *engine.Session, number int64) {
	r.t.Helper()
	for range 20 { // the first resets are sent alone
		s, err := r.Take(r.t.Context(), nil)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := s.Conn.QueryRowContext(r.t.Context(), "SELECT pg_backend_pid()").Scan(&number); err != nil {
			r.t.Fatal(err)
		}
		if s.Kept() {
			return s, number
		}
		s.Release(true)
	}
	r.t.Fatal("no session is used again")
	return nil, 0
}

func (r renewing) locks(number int64) int {
	return r.d.Int(r.t, fmt.Sprintf("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND pid = %d", number))
}

// lock takes a lock in a session. The session no longer has it after a reset.
func (r renewing) lock(s *engine.Session, number int64) {
	r.t.Helper()
	if _, err := s.Conn.ExecContext(r.t.Context(), "SELECT pg_advisory_lock(42)"); err != nil || r.locks(number) != 1 {
		r.t.Fatal(r.locks(number), err)
	}
}

// isNew waits until a session that is not yet released has been reset.
func (r renewing) isNew(number int64) {
	r.t.Helper()
	for range 1000 {
		if r.locks(number) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.t.Error("the session has its lock until it is released")
}
