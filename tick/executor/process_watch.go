//go:build unix

package executor

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// watch is a shell beside this process, which knows the groups in which programs run. When this process is no more,
// however it ended, the pipe between the two is closed, and the shell kills the groups that are left.
type watch struct {
	mu    sync.Mutex
	begun bool
	list  io.Writer // nil: there is no shell
}

// watching is that of this process, which begins with the first program.
var watching watch

const watchText = `groups=' '
trap '' HUP INT QUIT TERM
while read -r sign group; do
	case $sign in
	+) groups="$groups$group " ;;
	-) groups="${groups%% $group *} ${groups#* $group }" ;;
	esac
done
for group in $groups; do kill -s KILL -- "-$group"; done`

// begin starts the shell, in a group of its own: what stops the tick must not stop it before. Programs do not hold its pipe,
// since Go closes what is not theirs.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return
	}
	w.begun = true
	cmd := &exec.Cmd{Path: shellPath, Args: []string{shellPath, "-c", watchText}, Env: []string{"PATH=" + searchPath}, Dir: "/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil { // as in an image without a shell
		return
	}
	w.list = pipe
	go func() { _ = cmd.Wait() }() // it ends with us, or somebody has killed it
}

func (w *watch) add(pid int)    { w.write('+', pid) }
func (w *watch) remove(pid int) { w.write('-', pid) }

func (w *watch) write(sign rune, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list != nil {
		_, _ = fmt.Fprintf(w.list, "%c %d\n", sign, pid) // it fails where the shell is no more
	}
}
