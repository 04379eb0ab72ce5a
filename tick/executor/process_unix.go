//go:build unix

package executor

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// endGroup asks the program's process group to end, and after the grace makes it. ended is closed when the program itself
// has ended and has been waited for: what it has started may take the rest of the grace.
//
// The number of the group cannot have come to another one by then: it is in use as long as one of the group lives, and
// the kernel gives out all other numbers before it comes again.
func endGroup(cmd *exec.Cmd, grace time.Duration, ended <-chan struct{}) {
	group := -cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM) // it may have ended just now
	over := time.NewTimer(grace)
	defer over.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for gone := false; ; {
		select {
		case <-over.C:
			_ = syscall.Kill(group, syscall.SIGKILL)
			_ = cmd.Process.Kill() // which may have gone to another group
			return
		case <-ended:
			gone, ended = true, nil
		case <-look.C:
		}
		if gone && errors.Is(syscall.Kill(group, 0), syscall.ESRCH) {
			return
		}
	}
}
