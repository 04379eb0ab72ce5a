//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"testing"
	"time"
)

// lines keeps what is written, a line each.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// A program that could not be killed is in the list of the watch only as long as it lives: later, its number may belong to a group of
// others.
func TestWatchForgetsAProgramThatCouldNotBeKilled(t *testing.T) {
	t.Parallel()
	if err := watching.begin(); err != nil {
		t.Fatal(err)
	}
	told := make(lines, 1000) // other tests start programs, too
	watching.mu.Lock()
	shell := watching.list
	watching.list = io.MultiWriter(shell, told)
	watching.mu.Unlock()
	t.Cleanup(func() {
		watching.mu.Lock()
		defer watching.mu.Unlock()
		watching.list = shell
	})
	input, end := io.Pipe()
	cmd := &exec.Cmd{Path: shellPath, Args: []string{shellPath, "-c", "exec sleep 1000"}, Stdin: input} // its Wait lasts until the input ends
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := runGroup(ctx, t.Context(), cmd, io.Discard, 0)
	if _, stuck := errors.AsType[*stuckError](err); !stuck {
		t.Fatalf("%v, want that it could not be killed", err)
	}
	_ = end.Close() // now it ends
	for late, want := time.After(10*time.Second), fmt.Sprintf("- %d\n", cmd.Process.Pid); ; {
		select {
		case line := <-told:
			if line == want {
				return
			}
		case <-late:
			t.Fatalf("the watch was not told %q", want)
		}
	}
}
