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
