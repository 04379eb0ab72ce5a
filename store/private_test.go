//go:build unix

package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// The files of a new SQLite database are for their owner alone. A file that exists already keeps the
// rights that it has.
func TestSQLiteFilesArePrivate(t *testing.T) {
	for name, want := range map[string]fs.FileMode{"new.db": 0o600, "shared.db": 0o664} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if name == "shared.db" {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, want); err != nil {
				t.Fatal(err)
			}
		}
		s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		release, err := s.Hold(store.Holder{Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != 4 { // the database, its log, the log's index, the holder's sign of life
			t.Errorf("%s: %v", name, entries)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want && filepath.Ext(e.Name()) == ".db" || got&^want != 0 {
				t.Errorf("%s is %s, want %s", e.Name(), got, want)
			}
		}
	}
}
