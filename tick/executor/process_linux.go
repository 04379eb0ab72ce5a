package executor

import (
	"os/exec"
	"syscall"
)

// apart gives the program its own process group. The kernel kills the program if the thread that has started it ends first. All
// threads end when the tick is killed. So the thread that starts the program has to wait for it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
