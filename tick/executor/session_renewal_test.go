package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// On PostgreSQL, what makes a session as new goes along with the last statement of an attempt. The statement tells what it
// would tell alone, is stopped as it would be alone, and leaves no session that is not as new.
func TestSessionIsMadeAsNewAlongWithTheLastStatement(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres") // sessions of other engines are made as new by a trip of their own
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (what text)")
	locks := func(number int64) int {
		return d.Int(t, fmt.Sprintf("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND pid = %d", number))
	}
	sessions, err := d.JobSessions(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sessions.Close()
	take := func() (s *engine.Session, number int64) {
		t.Helper()
		for range 20 { // the first times it is made as new by itself
			if s, err = sessions.Take(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := s.Conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&number); err != nil {
				t.Fatal(err)
			}
			if s.Kept() {
				return s, number
			}
			s.Release(true)
		}
		t.Fatal("no session is used again")
		return nil, 0
	}
	execute := func(s *engine.Session, ctx context.Context, text string) (engine.Told, int64, error) {
		var told engine.Told
		res, err := s.Conn.ExecContext(engine.Listen(s.Last(ctx), &told), text)
		if err != nil {
			return told, 0, err
		}
		n, err := res.RowsAffected()
		return told, n, err
	}

	s, number := take()
	if _, err := s.Conn.ExecContext(t.Context(), "SELECT pg_advisory_lock(42)"); err != nil || locks(number) != 1 {
		t.Fatal(locks(number), err)
	}
	told, n, err := execute(s, t.Context(), "INSERT INTO effects VALUES ('one'), ('two') RETURNING what, 7 AS seven")
	if facts := told.Facts(); err != nil || n != 2 || facts != `{"rows": 2, "row": {"what": "one", "seven": 7}}` {
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
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err = execute(s, ctx, "INSERT INTO effects SELECT 'late' FROM pg_sleep(60)"); err == nil || ctx.Err() == nil {
		t.Errorf("a statement whose time is over: %v", err)
	}
	s.Release(err == nil)
	if d.Int(t, "SELECT count(*) FROM effects") != 2 {
		t.Error("a statement that was stopped took effect")
	}

	s, then = take()
	if then == number {
		t.Error("the session of what was stopped goes on")
	}
	if _, _, err = execute(s, t.Context(), "INSERT INTO nowhere VALUES (1)"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a statement that fails: %v", err)
	}
	s.Release(err == nil)
}
