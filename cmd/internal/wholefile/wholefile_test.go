//go:build unix

package wholefile

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestWhatIsNoFileIsNotReplaced: /dev/stdout is written to. A link stays a link.
func TestWhatIsNoFileIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	write := func(w io.Writer) error { _, err := w.Write([]byte("new")); return err }
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that nobody waits for the other side
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, path := range []string{pipe, link} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := Write(path, 0o600, write); n != 3 || err != nil {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v", path, err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(file); string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if text := make([]byte, 3); !t.Failed() {
		if _, err := io.ReadFull(reader, text); !bytes.Equal(text, []byte("new")) {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// TestALinkToNothingStays: what a link leads to may be gone, as after a restart of the machine. Then it is made again there.
func TestALinkToNothingStays(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(in("above/below"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"first": "second", "second": in("gone"), "folder": "above/below", "above/below/up": "../gone", "loop": "loop"} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(w io.Writer) error { _, err := w.Write([]byte("new")); return err }
	for link, to := range map[string]string{"first": "gone", "folder/up": "above/gone"} {
		if _, err := Write(in(link), 0o600, write); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(in(to)); string(text) != "new" {
			t.Errorf("%s: %q, %v", link, text, err)
		}
	}
	if _, err := Write(in("loop"), 0o600, write); err == nil {
		t.Error("a link to itself was written to")
	}
	for _, link := range []string{"first", "second", "folder/up", "loop"} {
		if info, err := os.Lstat(in(link)); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("%s is no link any more: %v", link, err)
		}
	}
}

// TestAFileKeepsItsOwner: a page that the group of a web server may read stays readable for it.
func TestAFileKeepsItsOwner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	user, group := os.Getuid(), 54321
	if user == 0 {
		user = 54320
	} else {
		groups, err := os.Getgroups()
		if groups = slices.DeleteFunc(groups, func(g int) bool { return g == os.Getgid() }); err != nil || len(groups) == 0 {
			t.Skip("this user has one group")
		}
		group = groups[0]
	}
	if err := os.Chown(file, user, group); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(file, 0o600, func(w io.Writer) error { _, err := w.Write([]byte("new")); return err }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); int(is.Uid) != user || int(is.Gid) != group || info.Mode().Perm() != 0o640 {
		t.Errorf("user %d, group %d, %v; want %d, %d", is.Uid, is.Gid, info.Mode(), user, group)
	}
}
