package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// adopt makes this process the parent of the processes that its programs leave behind, as process 1 of a container is.
func adopt(t *testing.T) {
	t.Helper()
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	set := func(on uintptr) {
		if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, on, 0); err != 0 {
			t.Fatal(err)
		}
	}
	set(1)
	t.Cleanup(func() { set(0) })
}

// A program gets no file that this process has open, also none that is open for all programs, as a lock of flock is.
func TestExecGetsNoFiles(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); err != 0 {
		t.Fatal(err)
	}
	res, err := execute(t.Context(), t, anything, "shell", sh(fmt.Sprintf("[ ! -e /proc/$$/fd/%d ] || echo it has the file", f.Fd())))
	if err != nil || res.Output != "" {
		t.Error(res.Output, err)
	}
}

// parent is the parent of a process, and whether the process is a zombie; 0: it is gone.
func parent(t *testing.T, pid int) (ppid int, zombie bool) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	var state string
	if _, err := fmt.Sscan(after, &state, &ppid); err != nil {
		t.Fatal(err)
	}
	return ppid, state == "Z"
}

// Process 1 of a container is the parent of what a stopped program has started. There, too, the attempt ends as soon as the
// group has ended, before its grace is over, and leaves no zombie.
//
// The child of a shell with a trap keeps the trap until it has become its program, and drops a signal that comes before: the shell
// waits for that.
func TestExecStopsTheGroupAsProcessOne(t *testing.T) {
	adopt(t)
	beforeTheGrace(t, func() {
		pids, res := stopped(t, 3, `sleep 1000 & echo $! >> $PIDS; sh -c 'trap "sleep 0.2; echo tidied; exit 0" TERM; sleep 1000 &
			until grep -q sleep /proc/$!/comm; do :; done; echo $$ >> $PIDS; wait' &
			while [ $(grep -c . $PIDS) -lt 2 ]; do sleep 0.01; done; echo $$ >> $PIDS; exec sleep 1000`, time.Hour, 0)
		if len(pids) != 3 || res.Output != "tidied\n" {
			t.Errorf("%d processes, output %q", len(pids), res.Output)
		}
		for _, pid := range pids {
			if of, zombie := parent(t, pid); of != 0 {
				t.Errorf("process %d is still there, as a child of %d; a zombie: %t", pid, of, zombie)
			}
		}
	})
}

// What a program leaves in the background ends later, as a child of process 1. It stays a zombie only until another program has run.
func TestExecBackgroundAsProcessOne(t *testing.T) {
	adopt(t)
	res, err := execute(t.Context(), t, anything, "shell", sh(`sleep 1000 & echo $!`))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(res.Output))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := execute(t.Context(), t, anything, "shell", sh("true")); err != nil || !lives(pid) {
		t.Errorf("another program ended what lives in the background, or failed: %v", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); lives(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d lives on", pid)
		}
	}
	if of, zombie := parent(t, pid); of != os.Getpid() || !zombie {
		t.Fatalf("process %d has the parent %d; a zombie: %t: nothing is shown", pid, of, zombie)
	}
	if _, err := execute(t.Context(), t, anything, "shell", sh("true")); err != nil {
		t.Fatal(err)
	}
	if of, _ := parent(t, pid); of != 0 {
		t.Errorf("process %d is still a zombie", pid)
	}
}

// A program, or what interprets it, may be on a file server that is away. The attempt ends with its time, and has touched nothing. The
// program is not started: the start would hold up the whole process until the server is back.
func TestExecOfAProgramThatIsAway(t *testing.T) {
	away, _ := storetest.Away(t, "#!/bin/sh\n")
	if err := os.Chmod(away, 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#! "+away+" -x\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	over := errors.New("its time is over")
	ctx, end := context.WithCancelCause(t.Context())
	end(over)
	for _, path := range []string{away, script} {
		res, err := execute(ctx, t, anything, "exec", executor.ProgramSpec{Run: []string{path}})
		if _, unsent := errors.AsType[*executor.UnsentError](err); !unsent || !errors.Is(err, over) || !strings.Contains(res.Output, path) {
			t.Errorf("%s: %v, output %q; want that it was not begun, since %v", path, err, res.Output, over)
		}
	}
}
