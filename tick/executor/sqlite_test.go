package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
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
