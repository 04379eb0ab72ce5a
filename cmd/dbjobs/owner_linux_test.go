package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// killedAtAChown runs a command, whose processes are killed when they ask for a file to be given to a user or a group. Filters like
// this one are usual, as those of containers and of systemd.
func killedAtAChown(cmd *exec.Cmd) (said []byte, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // which ends with this goroutine; its children have the filter, too
		kill := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS}
		filter := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FCHOWN, Jf: 1}, kill,
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FCHOWNAT, Jf: 1}, kill,
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
		}
		if err == nil {
			said, err = cmd.CombinedOutput()
		}
	}()
	<-ended
	return said, err
}

// Passes leave owners alone that are right, as they are for a user whose files are all its own. So passes end where no process may
// change an owner, also those that replace a file of metrics.
func TestPassesThatMayChangeNoOwner(t *testing.T) {
	t.Parallel()
	n := asNobody(t)
	n.env = append(n.env, "DBJOBS_METRICS="+filepath.Join(n.home, "jobs.prom"))
	n.dbjobs("migrate")
	n.dbjobs("job", "create", "often", "--repeat-after", "1h", "--sql", "SELECT 1")
	for range 2 {
		id := n.dbjobs("job", "run-now", "often")
		if said, err := killedAtAChown(n.command("tick", "--quiet")); err != nil || len(said) > 0 {
			t.Errorf("%v: %s", err, said)
		}
		if run := n.dbjobs("run", "show", id); !strings.Contains(run, "succeeded") {
			t.Errorf("the run has not succeeded: %s", run)
		}
	}
	for _, pattern := range []string{"*-holder-*", "*.tmp"} {
		if left, err := filepath.Glob(filepath.Join(n.home, pattern)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	}
}
