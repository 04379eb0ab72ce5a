package engine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTemporaryFilesOfSQLite: where none of the folders can be written in which SQLite looks for one, as in a container with a read-only
// root, the folder of the database takes the temporary files, and memory where that cannot be written either.
func TestTemporaryFilesOfSQLite(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system tells SQLite of a folder")
	}
	base := t.TempDir()
	for _, folder := range []string{"it's; here", "link"} {
		if err := os.Mkdir(filepath.Join(base, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file, link := filepath.Join(base, "it's; here", "jobs.db"), filepath.Join(base, "link", "jobs.db")
	db, err := New("sqlite:"+file, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	none := []string{"", filepath.Join(base, "missing"), file} // no folder, and no folder at all
	for _, path := range []string{file, link} {
		if got, want := sqliteTemporaries(path, none), "PRAGMA temp_store_directory = '"+base+"/it''s; here'"; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := sqliteTemporaries(file, append(none, base)); got != "" {
		t.Errorf("with a usual folder: %s", got)
	}
	if got := sqliteTemporaries(filepath.Join(base, "missing", "jobs.db"), none); got != "PRAGMA temp_store = MEMORY" {
		t.Errorf("without any: %s", got)
	}

	c, err := sqliteConnector("sqlite:"+file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	keeping := c.(sqliteKeeping)
	keeping.Connector = sqliteInTurn{keeping.Connector, []string{sqliteTemporaries(file, none)}}
	conn, err := keeping.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	own := &sqliteJobConn{keptStatements: conn.(*keptStatements)}
	if folder, err := own.pragma(t.Context(), "PRAGMA temp_store_directory"); err != nil || !strings.HasSuffix(folder, "it's; here") {
		t.Errorf("SQLite has the folder %q; %v", folder, err)
	}
	if _, err := own.pragma(t.Context(), "PRAGMA temp_store_directory = ''"); err != nil { // it is of the whole process
		t.Error(err)
	}
}
