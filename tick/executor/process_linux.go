package executor

import (
	"os/exec"
	"syscall"
)

// apart gives the program a process group of its own. The kernel kills it if the thread that starts it ends before it, as
// all do with a tick that is killed; so that thread has to wait for it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
