//go:build unix

package executor

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// watch is a shell that runs beside this process and knows the groups in which programs run. When this process ends, in any
// way, the pipe between the two is closed, and the shell kills the groups that are left.
//
// Crash window: if somebody kills the shell, nothing takes its place before the next program starts.
type watch struct {
	mu     sync.Mutex
	none   bool         // there is no shell, as in some images
	list   io.Writer    // nil: no shell runs
	groups map[int]bool // those in use
}

// watching is the watch of this process. It begins with the first program.
var watching = watch{groups: map[int]bool{}}

const watchText = `groups=' '
trap '' HUP INT QUIT TERM
while read -r sign group; do
	case $sign in
	+) groups="$groups$group " ;;
	-) groups="${groups%% $group *} ${groups#* $group }" ;;
	esac
done
for group in $groups; do kill -s KILL -- "-$group"; done`

// begin starts the shell if none runs, in its own group: a signal that stops the tick must not stop the shell first. Programs do not
// hold the pipe of the shell, since Go closes it for them. An error says that the machine lacks what a start needs, which may pass.
func (w *watch) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.none || w.list != nil {
		return nil
	}
	cmd := &exec.Cmd{Path: shellPath, Args: []string{shellPath, "-c", watchText}, Env: []string{"PATH=" + searchPath}, Dir: "/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err = lacking(err); errors.Is(err, ErrNothingDone) {
		return err
	} else if err != nil {
		w.none = true
		return nil
	}
	w.list = pipe
	for group := range w.groups {
		w.write('+', group)
	}
	go func() {
		_ = cmd.Wait() // it ends with this process, or somebody has killed it
		w.mu.Lock()
		defer w.mu.Unlock()
		w.list = nil
	}()
	return nil
}

func (w *watch) add(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[pid] = true
	w.write('+', pid)
}

func (w *watch) remove(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, pid)
	w.write('-', pid)
}

// write tells the shell of a group. The caller holds the lock.
func (w *watch) write(sign rune, pid int) {
	if w.list != nil {
		_, _ = fmt.Fprintf(w.list, "%c %d\n", sign, pid) // this fails if the shell has ended
	}
}
