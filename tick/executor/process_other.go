//go:build !unix

package executor

import (
	"os/exec"
	"time"
)

// Here there are no process groups and no SIGTERM. A program that is stopped is killed at once, what it has started goes
// on, and where the tick is killed, the program goes on too.

func apart(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd, _ time.Duration, _ <-chan struct{}) {
	_ = cmd.Process.Kill() // it may have ended just now
}

// watch is nothing here, since there are no groups to be killed.
type watch struct{}

var watching watch

func (watch) begin()     {}
func (watch) add(int)    {}
func (watch) remove(int) {}

// replaceable says nothing here: other systems tell by access lists who may write.
func replaceable(string) string { return "" }
