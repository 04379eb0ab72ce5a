//go:build unix

package executor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/tick/executor"
)

// A process that stays in the background does not hold the run, and goes on.
func TestExecBackground(t *testing.T) {
	t.Parallel()
	res, err := execute(t.Context(), t, anything, "shell", sh(`sleep 1000 & echo $!`))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(res.Output))
	if err != nil || !lives(pid) {
		t.Fatalf("what stays in the background was stopped: %q, %v", res.Output, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// What stays in the background and prints when nobody reads any more is ended by SIGPIPE, unless it prints into a file.
func TestExecBackgroundThatPrintsLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const late = `sleep 4; echo late; echo > %s`
	text := fmt.Sprintf("("+late+") & ("+late+") > log 2>&1 & echo first", "printed", "wrote")
	res, err := execute(t.Context(), t, anything, "shell", executor.ProgramSpec{Run: []string{text}, Dir: dir})
	if err != nil || res.Output != "first\n" {
		t.Fatalf("%q, %v", res.Output, err)
	}
	for _, err := os.Stat(filepath.Join(dir, "wrote")); err != nil; _, err = os.Stat(filepath.Join(dir, "wrote")) {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	if _, err := os.Stat(filepath.Join(dir, "printed")); err == nil {
		t.Error("what printed goes on")
	}
}
