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
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, url, Options{})
	if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "another process has the file locked") {
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
