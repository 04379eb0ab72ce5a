package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command that waits for a pipe ends when it is asked to: while nobody has opened the other end, and while nobody writes.
func TestAPipeIntoWhichNobodyWrites(t *testing.T) {
	for _, opened := range []bool{false, true} {
		for _, command := range []string{"diff -f", "import crontab"} {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skip("pipes with names are needed: ", err)
			}
			if opened {
				w, err := os.OpenFile(pipe, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			time.AfterFunc(50*time.Millisecond, stop)
			code, stderr := invoke(ctx, t, t.TempDir(), nil, io.Discard, append(strings.Fields(command), pipe)...)
			if code != exitInterrupted || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, opened %t: code %d, said %q", command, opened, code, stderr)
			}
		}
	}
}
