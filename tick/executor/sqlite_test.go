package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestSQLReachesOneFile: if other users than the tick's user can write definitions, their SQL reads and writes no other
// file of the tick's user than the database.
func TestSQLReachesOneFile(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "jobs.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	run := func(h *Host, text string) error {
		x, err := newSQL(s, h)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		_, err = x.Execute(t.Context(), attempt(`{"sql": ["`+text+`"]}`))
		return err
	}
	other := filepath.Join(dir, "other.db")
	for _, text := range []string{
		"ATTACH '" + other + "' AS x", "attach('" + dir + "/' || 'other.db') as x", "/* */ATTACH '" + other + "' AS x",
		"SELECT 1; ATTACH '" + other + "' AS x; CREATE TABLE x.t (n)", "ATTACH 'file:" + other + "?mode=rwc' AS x",
		"VACUUM INTO '" + other + "'", "VACUUM main INTO '" + other + "'", "VACUUM; VACUUM INTO '" + other + "'", "VACUUM INTO ('" + dir + "' || '/other.db')",
	} {
		if err := run(nil, text); err == nil || !strings.Contains(err.Error(), "reaches another file") || errors.Is(err, ErrNothingDone) {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := os.Stat(other); err == nil {
			t.Fatalf("%s has made a file", text)
		}
	}
	for _, text := range []string{"VACUUM", " vacuum main ;", "ATTACH ':memory:' AS x", "CREATE TEMPORARY TABLE t AS SELECT 1", "SELECT count(*) FROM dbjobs_runs ORDER BY random()"} {
		if err := run(nil, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"ATTACH '" + other + "' AS x", "VACUUM INTO '" + other + "2'"} {
		if err := run(&Host{Own: true}, text); err != nil {
			t.Errorf("of his own, %s: %v", text, err)
		}
	}
}

// A table of the user may be damaged. An atomic step that meets it has failed, as any other step has: a file has no connection that could
// break.
func TestAtomicStepOnADamagedTable(t *testing.T) {
	path := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	s, err := store.Open(t.Context(), path, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	damaged := storetest.OpenSQL(t, path)
	for _, text := range []string{"CREATE TABLE damaged (n int)", "PRAGMA writable_schema = ON",
		"UPDATE sqlite_schema SET rootpage = (SELECT min(rootpage) FROM sqlite_schema WHERE type = 'index') WHERE name = 'damaged'"} {
		if _, err := damaged.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	damaged.Close()
	if s, err = store.Open(t.Context(), path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	x, err := NewSQL(s)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, atomic := range []string{"true", "false"} {
		_, err := x.Execute(t.Context(), attempt(`{"sql": ["DELETE FROM damaged WHERE n = 1"], "atomic": `+atomic+`}`))
		if err == nil || errors.Is(err, ErrNothingDone) || strings.Contains(err.Error(), "connection") || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("atomic %s: %v", atomic, err)
		}
	}
}
