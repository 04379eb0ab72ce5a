//go:build unix

package executor

import (
	"os"
	"slices"
	"strconv"
	"syscall"
)

const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var inherited = []string{"HOME", "USER", "LOGNAME", "LANG", "TZ"}

// passing has the errors of a start that may pass.
var passing = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY}

const (
	errTooLong   = syscall.E2BIG
	errNoProgram = syscall.ENOEXEC
)

// fileNames returns the names of the files that a program without a folder may have.
func fileNames(name string) []string { return []string{name} }

func mayExecute(info os.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

func samePath(a, b string) bool { return a == b }

// startable refuses nothing: the system reads in the first line of a file which program it needs.
func startable(string) error { return nil }

// KeepFiles keeps the open files of this process from programs, also those with which somebody has started this process. A lock
// of flock around the tick would otherwise be held by what a program leaves in the background, and no further tick could come.
func KeepFiles() {
	files, _ := os.ReadDir("/dev/fd") // where this is missing, only what Go has opened is kept
	for _, f := range files {
		if n, err := strconv.Atoi(f.Name()); err == nil && n > 2 {
			syscall.CloseOnExec(n)
		}
	}
}

// ask asks a group to end.
func ask(group int) bool {
	_ = syscall.Kill(-group, syscall.SIGTERM) // it may have ended just now
	return true
}

func kill(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// asksToEnd reports whether a program was ended by one of the signals that ask the tick itself to end.
func asksToEnd(p *os.ProcessState) bool {
	status, ok := p.Sys().(syscall.WaitStatus)
	return ok && slices.Contains([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}, status.Signal())
}

func exited(p *os.ProcessState) bool { return p.Exited() }
