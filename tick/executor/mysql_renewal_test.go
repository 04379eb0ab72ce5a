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
)

// On MariaDB and MySQL, the reset of the session is sent together with the last statement of an attempt. The statement
// has the same results as alone, can be stopped as alone, and leaves no session that is not reset.
func TestMySQLSessionIsMadeAsNewAlongWithTheLastStatement(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		texts, ok := map[string]struct{ number, lock, locked, insert, facts, stop string }{
			"mariadb": {
				number: "SELECT CONNECTION_ID()", lock: "DO GET_LOCK(CONCAT(DATABASE(), ' renewal'), 0)", locked: "SELECT COALESCE(IS_USED_LOCK(CONCAT(DATABASE(), ' renewal')), 0) = %d",
				insert: "INSERT INTO effects VALUES ('one'), ('two')", stop: "KILL QUERY %d",
			},
		}[storetest.Dialect(d.Engine)]
		if !ok {
			t.Skip("PostgreSQL has a test of its own, and SQLite has no sessions of a server")
		}
		d.Exec(t, "CREATE TABLE effects (what text)")
		sessions, err := d.JobSessions(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sessions.Close()
		take := func() (*engine.Session, int64) {
			t.Helper()
			return takeMadeAsNew(t, sessions, texts.number)
		}
		locks := func(number int64) int { return d.Int(t, fmt.Sprintf(texts.locked, number)) }
		execute := func(s *engine.Session, text string) (engine.Told, int64, error) {
			var told engine.Told
			res, err := s.Conn.ExecContext(engine.Listen(s.Last(t.Context()), &told), text)
			if err != nil {
				return told, 0, err
			}
			n, err := res.RowsAffected()
			return told, n, err
		}

		s, number := take()
		if _, err := s.Conn.ExecContext(t.Context(), texts.lock); err != nil || locks(number) != 1 {
			t.Fatal(locks(number), err)
		}
		told, n, err := execute(s, texts.insert)
		if facts := told.Facts(); err != nil || n != 2 || facts != texts.facts {
			t.Errorf("%d rows, %s: %v", n, facts, err)
		}
		for range 1000 {
			if locks(number) == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if locks(number) > 0 {
			t.Error("the session has its lock until it is released")
		}
		s.Release(err == nil)

		s, then := take()
		if then != number {
			t.Errorf("session %d is followed by %d", number, then)
		}
		other, err := d.SQL.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Rollback() }()
		if _, err := other.Exec("UPDATE effects SET what = 'locked'"); err != nil {
			t.Fatal(err)
		}
		stopped := make(chan struct{})
		stop, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(stopped)
			for stop.Err() == nil {
				_, _ = d.SQL.Exec(fmt.Sprintf(texts.stop, number)) // the statement may not have begun yet
				time.Sleep(20 * time.Millisecond)
			}
		}()
		if _, _, err = execute(s, "UPDATE effects SET what = 'late'"); err == nil {
			t.Error("a statement that is stopped has no error")
		}
		cancel()
		<-stopped
		s.Release(err == nil)
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}
		if d.Int(t, "SELECT count(*) FROM effects WHERE what IN ('one', 'two')") != 2 {
			t.Error("a statement that was stopped took effect")
		}

		s, then = take()
		if then == number {
			t.Error("the session of what was stopped goes on")
		}
		if _, _, err = execute(s, "INSERT INTO nowhere VALUES (1)"); err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("a statement that fails: %v", err)
		}
		s.Release(err == nil)
	})
}

// takeMadeAsNew takes a session that was reset more than once: the first resets are sent alone.
func takeMadeAsNew(t *testing.T, sessions *engine.Sessions, numberOf string) (s *engine.Session, number int64) {
	t.Helper()
	var before int64
	for range 50 {
		s, err := sessions.Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Conn.QueryRowContext(t.Context(), numberOf).Scan(&number); err != nil {
			t.Fatal(err)
		}
		if s.Kept() && number == before {
			return s, number
		}
		if s.Kept() {
			before = number
		}
		s.Release(true)
	}
	t.Fatal("no session is used again")
	return nil, 0
}

// On MariaDB and MySQL, the reset is also sent together with the COMMIT of an atomic step. If COMMIT is refused, the
// step is tried again in the same session, which is reset.
func TestMySQLSessionIsMadeAsNewAlongWithCommit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if storetest.Dialect(d.Engine) != "mariadb" {
			t.Skip("on other engines it does not")
		}
		d.Exec(t, "CREATE TABLE effects (what text)")
		sessions, err := d.JobSessions(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sessions.Close()
		s, number := takeMadeAsNew(t, sessions, "SELECT CONNECTION_ID()")
		const locks = "SELECT COALESCE(IS_USED_LOCK(CONCAT(DATABASE(), ' renewal')), 0) = %d"
		if _, err := s.Conn.ExecContext(t.Context(), "DO GET_LOCK(CONCAT(DATABASE(), ' renewal'), 0)"); err != nil || d.Int(t, fmt.Sprintf(locks, number)) != 1 {
			t.Fatal("no lock", err)
		}
		atomic := func(ctx context.Context, end func(*sql.Tx) error) {
			t.Helper()
			tx, err := s.Conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("INSERT INTO effects VALUES (COALESCE(@mine, 'none'))"); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("SET @mine = 'kept'"); err != nil {
				t.Fatal(err)
			}
			if err := end(tx); err != nil {
				t.Fatal(err)
			}
		}
		atomic(s.Last(t.Context()), (*sql.Tx).Commit)
		for range 1000 {
			if d.Int(t, fmt.Sprintf(locks, number)) == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if d.Int(t, fmt.Sprintf(locks, number)) > 0 {
			t.Error("the session has its lock until it is released")
		}
		atomic(t.Context(), (*sql.Tx).Rollback)
		atomic(s.Last(t.Context()), (*sql.Tx).Commit)
		s.Release(true)
		if n := d.Int(t, "SELECT count(*) FROM effects WHERE what = 'none'"); n != 1 {
			t.Errorf("%d transactions began in a session after its reset", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2 {
			t.Errorf("%d effects, want those of what was committed", n)
		}
		if s, then := takeMadeAsNew(t, sessions, "SELECT CONNECTION_ID()"); then != number {
			t.Errorf("session %d is followed by %d", number, then)
		} else {
			s.Release(true)
		}
	})
}
