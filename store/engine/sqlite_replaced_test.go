package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// replace puts a copy in the place of a file, as a restore does.
func replace(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file+".copy", data, 0o600), os.Rename(file+".copy", file)); err != nil {
		t.Fatal(err)
	}
}

// A connection does not write to a file that was replaced, and none leads to the new file while the old one may be open. After
// Rest, when nothing is open, the new file is used. A target has no ledger, and its new file is used at once.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jobs.db")
	made, err := New("sqlite:"+file, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	target, err := New("sqlite:"+file, Options{Target: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	jobs, err := made.JobPool(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	if _, err := made.pool.ExecContext(t.Context(), "CREATE TABLE t (n int)"); err != nil {
		t.Fatal(err)
	}
	write := func(db *DB) error {
		_, err := db.pool.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
		return err
	}
	if err := errors.Join(write(made), write(target)); err != nil {
		t.Fatal(err)
	}
	target.makeRoom()
	made.Rest()
	if _, err := os.Stat(file + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log is left beside a file that nobody has open: %v", err)
	}
	replace(t, file)
	if err := errors.Join(write(made), write(target)); err != nil {
		t.Errorf("it was replaced while nobody had it open: %v", err)
	}
	target.makeRoom()
	replace(t, file)
	if err := write(target); err != nil {
		t.Errorf("a target: %v", err)
	}
	for range 3 {
		if err := made.Wrap("write", write(made)); !errors.Is(err, ErrReplaced) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("it was replaced while it was open: %v", err)
		}
	}
	if _, err := jobs.ExecContext(t.Context(), "INSERT INTO t VALUES (1)"); !errors.Is(err, ErrReplaced) {
		t.Errorf("the SQL of a job: %v", err)
	}
	made.Rest()
	if err := write(made); err != nil {
		t.Errorf("after a rest: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := write(made); !errors.Is(err, ErrUnreachable) {
		t.Errorf("it is gone: %v", err)
	}
}

// Each session of a target knows the file that it has open itself, whatever another session has found at the path. Sessions
// that wait are closed before another file is opened: SQLite must not have both open, as far as that can be helped.
func TestReplacedFileOfManySessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		journal string
		busy    int // sessions in use while the file is replaced: without a log, SQLite itself refuses to write to the old one
	}{{"WAL", 0}, {"DELETE", 1}} {
		t.Run(c.journal, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "shop.db")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := New("sqlite:"+file, Options{Target: true})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.pool.ExecContext(t.Context(), "PRAGMA journal_mode = "+c.journal+"; CREATE TABLE t (n int)"); err != nil {
				t.Fatal(err)
			}
			db.makeRoom()
			p, err := db.JobSessions(Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			const text = "INSERT INTO t VALUES (1)"
			take := func(n int) (list []*Session) {
				t.Helper()
				for range n {
					s, err := p.Take(t.Context(), []string{text})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Conn.ExecContext(t.Context(), "SELECT count(*) FROM t"); err != nil {
						t.Error(err)
					}
					list = append(list, s)
				}
				return list
			}
			release := func(list []*Session) {
				for _, s := range list {
					s.Release(true)
				}
				p.work.Wait()
			}
			busy := take(c.busy)
			release(take(2))
			replace(t, file)
			_, _ = os.Remove(file+"-wal"), os.Remove(file+"-shm") // as after a restore; without a log there is none
			list := take(1)
			if n := p.pool.Stats().OpenConnections; n != c.busy+1 {
				t.Errorf("%d sessions are open, want those in use: %d", n, c.busy+1)
			}
			release(busy)
			list = append(list, take(1)...)
			for _, s := range list {
				if _, err := s.Conn.ExecContext(t.Context(), text); err != nil {
					t.Error(err)
				}
			}
			release(list)
			rows := 0
			if err := db.pool.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&rows); err != nil || rows != 2 {
				t.Errorf("the file at the path has %d rows, not 2: %v", rows, err)
			}
		})
	}
}
