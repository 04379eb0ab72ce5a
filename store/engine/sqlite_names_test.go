package engine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestNamesOfASQLiteFile: a file that processes may open by two names, or in two folders, gets a warning. Symbolic links lead to one name.
func TestNamesOfASQLiteFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("hard links are not counted there")
	}
	base := t.TempDir()
	file, link := filepath.Join(base, "jobs.db"), filepath.Join(base, "link.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(base, "missing.db")} {
		if told := sqliteProblem("sqlite:" + path); told != "" {
			t.Errorf("%s: %s", path, told)
		}
	}
	if err := os.Link(file, filepath.Join(base, "second.db")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(base, "second.db")} {
		if told := sqliteProblem("sqlite:" + path); !strings.Contains(told, "has 2 names") {
			t.Errorf("%s: %q", path, told)
		}
	}
	lines := []byte("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 22 8:1 /srv/my\\040jobs.db /data/my\\040jobs.db rw - ext4 /dev/sda1 rw\n")
	if !mounted(lines, "/data/my jobs.db") || mounted(lines, "/data/jobs.db") || mounted(lines, "/srv/my jobs.db") {
		t.Error("a mount of a file is not seen, or one that is not there")
	}
}

// A URL names a file with a drive, of Windows alone: elsewhere that is a name like others.
func TestDriveInASQLiteURL(t *testing.T) {
	for _, c := range [][3]string{{"windows", "/C:/jobs.db", "C:/jobs.db"}, {"windows", `C:\jobs.db`, `C:\jobs.db`}, {"windows", "/srv/jobs.db", "/srv/jobs.db"}, {"linux", "/C:/jobs.db", "/C:/jobs.db"}} {
		if got := ofDrive(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
