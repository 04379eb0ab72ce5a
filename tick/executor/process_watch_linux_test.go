package executor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shells returns the shells of watches that live.
func shells(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, _ := os.ReadFile(file) // it may have ended
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && strings.Contains(string(line), watchText) && strings.Contains(string(stat), fmt.Sprintf(" %d ", os.Getpid())) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A machine may lack files or processes for a moment. The shell begins as soon as it can, and no program runs without it.
func TestWatchBeginsLater(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	none := files
	none.Cur = 0
	w := watch{groups: map[int]bool{}}
	lower := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none)
	err := w.begin()
	if raise := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); lower != nil || raise != nil {
		t.Fatal(lower, raise)
	}
	if !errors.Is(err, ErrNothingDone) {
		t.Errorf("without files: %v, want that nothing was done", err)
	}
	if err := w.begin(); err != nil || w.list == nil {
		t.Fatalf("with files again: %v, %v; want a shell", w.list, err)
	}
	w.list.(io.Closer).Close()
}

// Somebody may kill the shell, such as the kernel where memory is short. With the next program begins another one, which knows the
// programs that run.
func TestWatchIsReplaced(t *testing.T) {
	others := shells(t)
	w := watch{groups: map[int]bool{}}
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.add(cmd.Process.Pid)
	killed := slices.DeleteFunc(shells(t), func(pid int) bool { return slices.Contains(others, pid) })
	if len(killed) != 1 {
		t.Fatalf("its shells are %d, want one", killed)
	}
	if err := syscall.Kill(killed[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for seen := false; !seen; time.Sleep(time.Millisecond) { // until this process has seen its end
		w.mu.Lock()
		seen = w.list == nil
		w.mu.Unlock()
	}
	if err := w.begin(); err != nil || w.list == nil {
		t.Fatalf("%v, %v; want another shell", w.list, err)
	}
	w.list.(io.Closer).Close() // as at the end of the process
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the program has ended by %v, want that the shell has killed it", cmd.ProcessState)
	}
}
