//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWhatIsNoFileIsNotReplaced: -o /dev/stdout writes there. A link stays a link.
func TestWhatIsNoFileIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	c := newCLI(nil, io.Discard, io.Discard, os.LookupEnv)
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
		if n, err := c.writeTo(path, write); n != 3 || err != nil {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v", path, err)
		}
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
