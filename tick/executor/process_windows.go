//go:build !unix

package executor

import (
	"context"
	"os/exec"
)

// These systems have no process groups and no SIGTERM. A program that is stopped is killed at once, and the processes that it
// has started continue. If the tick is killed, the program continues too.

func keepFiles() {}

func apart(*exec.Cmd) {}

func endGroup(_ context.Context, cmd *exec.Cmd, _ <-chan struct{}) {
	_ = cmd.Process.Kill() // it may have ended just now
}

// watch does nothing here, since there are no groups to kill.
type watch struct{}

var watching watch

func (watch) begin()     {}
func (watch) add(int)    {}
func (watch) remove(int) {}

// groups does nothing here: a process leaves no zombie.
type groups struct{}

var leftOver groups

func (groups) add(int) {}
func (groups) reap()   {}

// replaceable finds nothing here: these systems use access lists to say who may write.
func replaceable(string) string { return "" }
