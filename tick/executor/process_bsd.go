//go:build unix && !linux

package executor

import (
	"os/exec"
	"syscall"
)

// apart gives the program a process group of its own. If the tick is killed, the program goes on: only Linux has a way
// to end it then.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
