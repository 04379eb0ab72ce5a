package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/away"
	"github.com/dbjobs/dbjobs/store/engine"
)

// searchPath is the PATH of programs. A program that is named without a folder is also looked for there. inherited has the
// variables that a program gets from the tick, if the tick has them. A program gets no other variables of the tick: it must
// not see the URL of the database, for example. Both are the system's.

// linger is how long the tick waits for the output of a program that has ended, if another process holds the output open.
const linger = 2 * time.Second

// programs executes programs that the host allows, each in its own process group. If the attempt is stopped, the whole group
// is ended: by SIGTERM, then by SIGKILL. If a program ends normally, processes that it leaves in the background continue, as
// with cron; the tick waits for their output no longer than linger. What prints after that gets SIGPIPE.
//
// Crash window: a tick that is killed cannot stop the programs that it has started. Instead, a watch kills the group, and on
// Linux the kernel also kills the program. The next delivery comes when the lease has ended. If there is no shell for the
// watch, processes that the program has started may still run then.
type programs struct {
	host  *Host
	shell bool
	read  func(json.RawMessage) (ProgramSpec, error)
}

// Grace is the time that a program gets between SIGTERM and SIGKILL.
func (e *programs) Grace(raw json.RawMessage) time.Duration {
	spec, err := e.read(raw)
	if err != nil { // no program will be started
		return 0
	}
	return spec.grace()
}

// Execute runs the program once.
func (e *programs) Execute(ctx context.Context, r Request) (Result, error) {
	last := context.WithoutCancel(ctx)
	if r.Most > 0 {
		within, release := context.WithTimeout(last, r.Most)
		defer release()
		last = within
	}
	spec, err := e.read(r.Spec)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", errSpec, err)
	}
	facts := Facts(r.Task)
	cmd, err := e.command(ctx, spec, r.Task.Job.Owner, facts)
	if late, ok := errors.AsType[*away.LateError](err); ok {
		return Result{Output: late.What + " was not opened in time; is it on a file server that is away?"}, &UnsentError{late.Err}
	} else if err != nil {
		return Result{}, err
	}
	if cmd.Env, err = e.environment(ctx, spec, r.Task.Job.Owner, facts); err != nil {
		return Result{}, err
	}
	hasNUL := func(text string) bool { return strings.Contains(text, "\x00") }
	if slices.ContainsFunc(slices.Concat(cmd.Args, cmd.Env), hasNUL) {
		return Result{}, fmt.Errorf("an argument or a variable has a NUL, which no program can be given; %w", ErrFinal)
	}
	output := &store.Output{Hide: func(text string) string { return e.host.hide(r.Task.Job.Owner, text) }}
	err = runGroup(ctx, last, cmd, output, spec.grace())
	if stuck, ok := errors.AsType[*stuckError](err); ok {
		return Result{Output: stuck.Error()}, context.Cause(ctx)
	}
	res := Result{Output: output.String()}
	if cmd.ProcessState != nil && exited(cmd.ProcessState) {
		res.Facts = fmt.Sprintf(`{"code": %d}`, cmd.ProcessState.ExitCode())
	}
	return spec.judge(ctx, res, err)
}

// environment returns the whole environment of the program: the inherited variables of the tick, the facts, and the variables
// of the step. Of two with one name, os/exec takes the last; on Windows, also where the names differ in case.
func (e *programs) environment(ctx context.Context, spec ProgramSpec, owner string, facts map[string]any) ([]string, error) {
	env := []string{"PATH=" + searchPath}
	for _, name := range inherited {
		if v, found := os.LookupEnv(name); found {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(facts)) { // two facts may have the same variable name: the same fact always wins
		v, err := text(facts[name])
		if err != nil {
			return nil, err
		}
		if v != "" {
			env = append(env, factVariable(name)+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		if err := e.host.addSecrets(ctx, owner, spec.Env[name], facts); err != nil {
			return nil, err
		}
		v, err := expandText(spec.Env[name], facts)
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+v)
	}
	return env, nil
}

// stuck is how long the tick waits for a program that was killed. A program of another user cannot be killed, and a program
// that waits for a dead disk or file server does not end when it is killed.
const stuck = 3 * time.Second

// stuckError says that a program does not end. The program may still write to its output, so the output must not be read.
type stuckError struct{ pid int }

func (e *stuckError) Error() string {
	return fmt.Sprintf("process %d could not be killed, and goes on", e.pid)
}

// runGroup runs the program until the program or ctx has ended. If ctx ends, runGroup ends the program's group: by SIGKILL after
// the grace, or when last ends if that is earlier. The group can print until it has ended; after that, and after a normal end
// of the program, what others print is taken for linger.
//
// Crash window: between the start of a program and its entry in the watch's list, only the kernel ends the program together
// with the tick, and only on Linux.
func runGroup(ctx, last context.Context, cmd *exec.Cmd, output io.Writer, grace time.Duration) error {
	runtime.LockOSThread() // the kernel ends the program with the thread that has started it, see apart
	defer runtime.UnlockOSThread()
	KeepFiles()
	if err := watching.begin(); err != nil {
		return err
	}
	printed, prints, err := os.Pipe()
	if err != nil {
		return lacking(err)
	}
	cmd.Stdout, cmd.Stderr = prints, prints // one pipe for both, so that the order is kept
	apart(cmd)
	leftOver.reap()
	err = cmd.Start()
	_ = prints.Close()
	if err != nil {
		_ = printed.Close()
		return lacking(err)
	}
	defer leftOver.reap()
	watching.add(cmd.Process.Pid)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(output, printed)
	}()
	var exit error
	ended := make(chan struct{})
	go func() {
		exit = cmd.Wait()
		leftOver.add(cmd.Process.Pid)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		most, release := context.WithTimeout(last, grace)
		defer release()
		endGroup(most, cmd, ended)
		select {
		case <-ended:
			exit = context.Cause(ctx)
		case <-time.After(stuck):
			go func() {
				<-ended
				watching.remove(cmd.Process.Pid) // later, another group may have its number
			}()
			return &stuckError{cmd.Process.Pid}
		}
	}
	select {
	case <-copied:
	case <-time.After(linger):
	}
	_ = printed.Close()
	<-copied
	watching.remove(cmd.Process.Pid)
	return exit
}

// endGroup asks the program's process group to end, and kills it when grace ends. ended is closed when the program itself has
// ended and has been waited for: the processes that it has started may take the rest of the grace.
//
// The number of the group cannot belong to another group by then. The number is in use as long as a process of the group
// lives, and the kernel uses all other numbers before it uses this number again.
func endGroup(grace context.Context, cmd *exec.Cmd, ended <-chan struct{}) {
	group := cmd.Process.Pid
	asked := ask(group)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for waited := false; asked; {
		select {
		case <-grace.Done():
			asked = false
		case <-ended:
			waited, ended = true, nil
		case <-look.C:
		}
		if waited {
			if leftOver.reap(); gone(group) {
				return
			}
		}
	}
	kill(group)
	_ = cmd.Process.Kill() // the program may have moved to another group
}

// judge decides what the end of a program means for the attempt.
func (s ProgramSpec) judge(ctx context.Context, res Result, err error) (Result, error) {
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case !ok && errors.Is(err, errTooLong):
		return res, fmt.Errorf("%w: its arguments and variables are longer than this system takes, and each of them is bounded, too "+
			"(128 KiB on Linux; 32 KiB for all arguments on Windows); let the program read what is long from a file or a database; %w", err, ErrFinal)
	case !ok && errors.Is(err, fs.ErrPermission):
		return res, fmt.Errorf("%w; may this user execute it, and enter its folder?", err)
	case !ok && errors.Is(err, errNoProgram):
		return res, fmt.Errorf("%w; a script needs a first line such as #!/bin/sh, and a program has to be one for this machine", err)
	case !ok && errors.Is(err, fs.ErrNotExist):
		return res, fmt.Errorf("%w; the program is not there, or what its first line names to interpret it", err)
	case !ok:
		return res, err
	case asksToEnd(exit.ProcessState):
		return res, fmt.Errorf("%w: %s", ErrAskedToEnd, withLast(exit.Error(), res.Output))
	case exit.ExitCode() < 0:
		return res, fmt.Errorf("ended by a signal: %s", withLast(exit.Error(), res.Output))
	}
	code := exit.ExitCode()
	if slices.Contains(s.SkipExit, code) {
		res.Skip = true
		res.Output = strings.TrimLeft(fmt.Sprintf("%s\nexit code %d is among skip_exit: there was nothing to do, and the run ends here", strings.TrimRight(res.Output, "\n"), code), "\n")
		return res, nil
	}
	err = &Error{engine.Failure{Code: strconv.Itoa(code)}, errors.New(withLast(fmt.Sprintf("exit code %d", code), res.Output))}
	if len(s.RetryExit) > 0 && !slices.Contains(s.RetryExit, code) {
		err = fmt.Errorf("%w; %w: retry_exit has %s", err, ErrFinal, strings.Trim(fmt.Sprint(s.RetryExit), "[]"))
	}
	return res, err
}

// lacking marks the error of a start that failed because the machine lacks processes, memory or open files, or because the
// program is just being written: nothing was done, and that may pass.
func lacking(err error) error {
	for _, passes := range passing {
		if errors.Is(err, passes) {
			return fmt.Errorf("%w: %w", ErrNothingDone, err)
		}
	}
	return err
}

// withLast adds the last line of an output to a message, because most programs say there why they failed.
func withLast(message, output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" {
		return message
	}
	return fmt.Sprintf("%s: %.300s", message, last)
}
