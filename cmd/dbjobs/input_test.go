//go:build unix

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

	"github.com/dbjobs/dbjobs/store/storetest"
)

// A command that waits for a pipe ends when it is asked to: while nobody has opened the other end, and while nobody writes.
func TestAPipeIntoWhichNobodyWrites(t *testing.T) {
	for _, opened := range []bool{false, true} {
		for _, command := range []string{"diff -f", "import crontab", "calendar import de -f", "rule next @daily --calendar", "rule lint @daily @hourly --calendar", "diff -f days.yaml"} {
			dir := t.TempDir()
			pipe := filepath.Join(dir, "pipe")
			words := append(strings.Fields(command), pipe)
			if command == "diff -f days.yaml" { // it names the pipe
				words = []string{"diff", "-f", filepath.Join(dir, "days.yaml")}
				if err := os.WriteFile(words[2], []byte("calendars: {de: {file: pipe}}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				storetest.Skip(t, "pipes with names are needed: %v", err)
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
			code, stderr := invoke(ctx, t, t.TempDir(), nil, io.Discard, words...)
			if code != exitInterrupted || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, opened %t: code %d, said %q", command, opened, code, stderr)
			}
		}
	}
}

// A calendar from a pipe can be read once only, for any number of rules.
func TestCalendarFromAPipe(t *testing.T) {
	const question = `{"rule": "@daily", "after": "2026-12-24T12:00:00Z", "count": 1}` + "\n"
	for command, want := range map[string]string{
		"rule lint @daily @hourly": "@daily\n  no warnings\n@hourly\n  no warnings\n",
		"rule next --jsonl":        strings.Repeat(`{"id":null,"next":["2026-12-26T00:00:00Z"],"exhausted":false}`+"\n", 2),
	} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			storetest.Skip(t, "pipes with names are needed: %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		written := make(chan error, 1)
		go func() { written <- os.WriteFile(pipe, []byte("2026-12-25 Christmas Day\n"), 0) }()
		var out strings.Builder
		code, stderr := invoke(ctx, t, t.TempDir(), strings.NewReader(question+question), &out, append(strings.Fields(command), "--calendar", pipe)...)
		if err := <-written; err != nil || code != exitDone || out.String() != want {
			t.Errorf("%s: %v, code %d, said %q, printed %q", command, err, code, stderr, &out)
		}
	}
}
