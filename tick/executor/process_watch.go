//go:build unix

package executor

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// watch is a shell that runs beside this process and knows the groups in which programs run. When this process ends, in any
// way, the pipe between the two is closed, and the shell kills the groups that are left.
type watch struct {
	mu    sync.Mutex
	begun bool
	list  io.Writer // nil: there is no shell
}

// watching is the watch of this process. It begins with the first program.
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

// begin starts the shell, in its own group: a signal that stops the tick must not stop the shell first. Programs do not hold
// the pipe of the shell, since Go closes it for them.
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
	go func() { _ = cmd.Wait() }() // the shell ends with this process, or somebody has killed it
}

func (w *watch) add(pid int)    { w.write('+', pid) }
func (w *watch) remove(pid int) { w.write('-', pid) }

func (w *watch) write(sign rune, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list != nil {
		_, _ = fmt.Fprintf(w.list, "%c %d\n", sign, pid) // this fails if the shell has ended
	}
}
