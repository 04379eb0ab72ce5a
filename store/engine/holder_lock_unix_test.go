//go:build unix

package engine

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A sign of life that cannot be opened for another reason than that it is not there says nothing: its holder counts as alive, and a
// later pass looks again.
func TestSignOfLifeThatCannotBeOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db-holder-1")
	if locked(path) {
		t.Error("a holder without a file counts as alive")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	alive := locked(path)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !alive {
		t.Error("the holder counts as dead although this process can open no file")
	}
	if locked(path) {
		t.Error("a file that nobody has locked counts as a sign of life")
	}
}
