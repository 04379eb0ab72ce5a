//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// The names by which this program calls itself, and the files it then gets.
const (
	keepCommand  = "keep-for-testservers"
	sweepCommand = "sweep-for-testservers"

	leashFile = 3 // closes when the child is to stop, or the folder to go
	aliveFile = 4 // held open, so that the sweeper waits for this process
)

const stopLimit = 5 * time.Second // from being asked to stop to being killed

// orders are what a keeper is to do: which child to run, as whom, and how to end it.
type orders struct {
	Args []string
	User *user
	Stop syscall.Signal
}

// A kept process is a child under a keeper of its own.
type kept struct {
	leash *os.File
	done  chan struct{} // closed when the keeper has ended, and so its child
	code  int           // the child's exit code, once done
}

// keep starts a child with the environment, folder and files of cmd.
func (r *run) keep(cmd *exec.Cmd, o orders) (*kept, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	leash, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer leash.Close() // the keeper has its own
	cmd.Path, cmd.Args = r.self, []string{r.self, keepCommand, string(text)}
	cmd.ExtraFiles = []*os.File{leash, r.alive}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's Ctrl-C
	if err := cmd.Start(); err != nil {
		_ = end.Close() // nobody reads it
		return nil, fmt.Errorf("%s could not be started: %w", o.Args[0], err)
	}
	k := &kept{leash: end, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		_ = cmd.Wait() // what it says is in the exit code
		k.code = exitCode(cmd.ProcessState)
	}()
	return k, nil
}

// stop ends the child and returns when it is gone. It may be called again.
func (k *kept) stop() {
	_ = k.leash.Close() // an error means that it is closed
	<-k.done
}

// runKeeper is the keeper's process. It exits with its child's exit code.
func runKeeper(text string) int {
	syscall.CloseOnExec(leashFile)
	syscall.CloseOnExec(aliveFile)
	deaf()
	// The parent whose death the kernel reports is the thread.
	runtime.LockOSThread()

	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil || len(o.Args) == 0 {
		fmt.Fprintln(os.Stderr, "testservers:", keepCommand, "is for testservers' own use")
		return exitUsage
	}
	child := exec.Command(o.Args[0], o.Args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: o.User.credential()}
	dieWithParent(child.SysProcAttr, o.Stop)
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		return exitNotRun
	}
	group := -child.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = child.Wait() // what it says is in the exit code
	}()
	select {
	case <-ended:
	case <-closed(os.NewFile(leashFile, "leash")):
		_ = syscall.Kill(group, o.Stop) // it may just have ended
		select {
		case <-ended:
		case <-time.After(stopLimit):
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // what it started and left behind
	<-ended
	return exitCode(child.ProcessState)
}

// startSweeper starts the process that removes dir once the launcher and all its
// keepers have ended, and sets r.alive, by which it knows them.
func (r *run) startSweeper() error {
	leash, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer leash.Close() // the sweeper has its own
	cmd := exec.Command(r.self, sweepCommand, r.dir)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{leash}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = end.Close() // nobody reads it
		return err
	}
	r.alive, r.sweeper = end, cmd
	return nil
}

// runSweeper is the sweeper's process.
func runSweeper(dir string) int {
	deaf()
	<-closed(os.NewFile(leashFile, "leash"))
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintf(os.Stderr, "testservers: %s could not be removed whole: %v\n", filepath.Base(dir), err)
		return exitFailed
	}
	return 0
}

// deaf makes this process outlive the signals that end its launcher. Unlike
// ignoring them, it is not handed on to children.
func deaf() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
}

// closed tells when the last writer of a pipe is gone.
func closed(pipe *os.File) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, pipe) // any end is the end
	}()
	return done
}

// exitCode is a process's exit code as a shell gives it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// combined runs cmd, which the sweeper waits for too, and tells in its error
// what cmd printed last.
func (r *run) combined(cmd *exec.Cmd) error {
	cmd.ExtraFiles = []*os.File{r.alive}
	cmd.WaitDelay = stopLimit
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return fmt.Errorf("%s ended with %s:\n%s", filepath.Base(cmd.Path), strconv.Itoa(exitCode(exit.ProcessState)), tail(out))
	case err != nil:
		return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}
