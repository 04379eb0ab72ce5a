//go:build unix

package executor

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// keepFiles keeps the open files of this process from programs, also those with which somebody has started this process. A lock
// of flock around the tick would otherwise be held by what a program leaves in the background, and no further tick could come.
func keepFiles() {
	files, _ := os.ReadDir("/dev/fd") // where this is missing, only what Go has opened is kept
	for _, f := range files {
		if n, err := strconv.Atoi(f.Name()); err == nil && n > 2 {
			syscall.CloseOnExec(n)
		}
	}
}

// endGroup asks the program's process group to end, and kills it when grace ends. ended is closed when the program itself has
// ended and has been waited for: the processes that it has started may take the rest of the grace.
//
// The number of the group cannot belong to another group by then. The number is in use as long as a process of the group
// lives, and the kernel uses all other numbers before it uses this number again.
func endGroup(grace context.Context, cmd *exec.Cmd, ended <-chan struct{}) {
	group := -cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM) // it may have ended just now
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for waited := false; ; {
		select {
		case <-grace.Done():
			_ = syscall.Kill(group, syscall.SIGKILL)
			_ = cmd.Process.Kill() // the program may have moved to another group
			return
		case <-ended:
			waited, ended = true, nil
		case <-look.C:
		}
		if waited {
			if leftOver.reap(); gone(cmd.Process.Pid) {
				return
			}
		}
	}
}
