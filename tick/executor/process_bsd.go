//go:build unix && !linux

package executor

import (
	"os/exec"
	"syscall"
)

// apart gives the program a process group of its own. If the tick is killed, only the watch ends it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
