//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// hold opens a database as a pass does, and shows until the end of the test that its holder is alive.
func hold(t *testing.T, path string) {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	release, err := s.Hold(store.Holder{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
}

// An error says which path is no regular file. A link may name a file that is not there yet.
func TestSQLiteFilesAreRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("pipe"), 0o600), os.Symlink(at("folder"), at("to a folder")), os.Symlink(at("new.db"), at("to a file"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"folder":      at("folder") + " is a folder; name a file",
		"to a folder": at("to a folder") + " is a folder; name a file",
		"pipe":        at("pipe") + " is not a regular file; name one",
	} {
		for _, create := range []bool{false, true} {
			if _, err := store.Open(t.Context(), "sqlite:"+at(name), store.Options{Create: create}); !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, made if absent: %t: %v", name, create, err)
			}
		}
	}
	if _, err := store.Open(t.Context(), "sqlite:"+at("to a file"), store.Options{}); !errors.Is(err, store.ErrSchema) {
		t.Errorf("before the file is made: %v", err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+at("to a file"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if info, err := os.Stat(at("new.db")); err != nil || info.Size() == 0 {
		t.Errorf("the file that the link names: %v", err)
	}
}

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
		hold(t, path)
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
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%s is %s, want %s", e.Name(), got, want)
			}
		}
	}
}

// The sign of life of a holder is beside the file of the database, by whatever link the holder names it, and belongs to
// whom the database belongs: otherwise a process that names it otherwise, or is of that user, takes a living holder for dead.
func TestASignOfLifeIsForAllWhoWriteTheDatabase(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	path, link := filepath.Join(dir, "jobs.db"), filepath.Join(elsewhere, "link.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	if owner == 0 { // the tick of root, with a database of another user
		owner = 65534
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	hold(t, link)
	signs, err := filepath.Glob(path + "-holder-*")
	if err != nil || len(signs) != 1 {
		t.Fatalf("%q, %v", signs, err)
	}
	info, err := os.Stat(signs[0])
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != owner {
		t.Errorf("%s belongs to %+v, want %d", signs[0], info.Sys(), owner)
	}
}

// Root often makes the database of a service, whose folder belongs to the user of the service already. The file belongs to that
// user, too: otherwise it would be private to root, and each pass of the service would be denied.
func TestRootMakesTheDatabaseOfAnotherUser(t *testing.T) {
	const user, group = 65534, 65533
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file for another user")
	}
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Chown(dir, user, group), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	hold(t, filepath.Join(link, "jobs.db")) // systemd makes such a link
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Sys().(*syscall.Stat_t); is.Uid != user || is.Gid != group || info.Mode().Perm() != 0o600 {
			t.Errorf("%s belongs to %d:%d and is %s", e.Name(), is.Uid, is.Gid, info.Mode())
		}
	}
}

// A file that is no database, or is damaged, is reported as such, with what to do.
func TestADamagedFileIsTold(t *testing.T) {
	dir := t.TempDir()
	text, torn := filepath.Join(dir, "text.db"), filepath.Join(dir, "torn.db")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no database"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+torn, store.Options{Create: true})
	if err == nil {
		_, err = s.Migrate(t.Context())
		s.Close()
	}
	if err == nil {
		err = os.Truncate(torn, 100_000)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{text: "is of another program", torn: "`dbjobs doctor` says where"} {
		if _, err := store.Open(t.Context(), "sqlite:"+path, store.Options{}); !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A page of the file may be damaged that only a transaction reads. The error comes at once, and says nothing of a connection: a file has
// none that could break.
func TestADamagedPageIsReportedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	reads := 0
	calls := storetest.Calls{Rewrite: func(text string) string {
		if strings.Contains(text, "dbjobs_installation") {
			reads++
			return "SELECT * FROM damaged"
		}
		return text
	}}
	damaged := storetest.OpenSQL(t, "sqlite:"+path)
	for _, text := range []string{"CREATE TABLE damaged (n int)", "PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET rootpage = (SELECT min(rootpage) FROM sqlite_schema WHERE type = 'index') WHERE name = 'damaged'"} {
		if _, err := damaged.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	damaged.Close()
	s, err = store.Open(t.Context(), "sqlite:"+path, store.Options{Wrap: calls.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Apply(t.Context(), jobNamed("a"), store.ApplyOptions{})
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "the file is damaged") || strings.Contains(err.Error(), "connection") || reads != 1 {
		t.Errorf("%d reads: %v", reads, err)
	}
}
