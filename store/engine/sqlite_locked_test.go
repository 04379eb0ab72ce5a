package engine

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSQLiteFileThatIsLocked: where another process has the whole file locked, who connects says so, and waits no longer than its
// context allows.
func TestSQLiteFileThatIsLocked(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	first, err := Open(t.Context(), url, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	c, err := sqliteConnector(url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	other := sql.OpenDB(c)
	defer other.Close()
	other.SetMaxOpenConns(1)
	for _, text := range []string{"PRAGMA locking_mode = EXCLUSIVE", "CREATE TABLE t (n)"} {
		if _, err := other.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	// A machine that is slow has not found the lock within a short time.
	const locked = "another process has the file locked"
	for patience := 200 * time.Millisecond; err == nil || patience < time.Minute && !strings.Contains(err.Error(), locked); patience *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if db, opened := Open(ctx, url, Options{}); opened == nil {
			db.Close()
			t.Fatal("it was opened")
		} else {
			err = opened
		}
		cancel()
	}
	if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), locked) {
		t.Error(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	after.Close()
}
