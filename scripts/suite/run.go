//go:build unix

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// events prints lines of programs that run side by side, each line whole.
type events struct{ sync.Mutex }

// copy prints the lines of a program, and hands on each event. It returns the last one.
func (e *events) copy(from io.Reader, each func(event) error) (last event, err error) {
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			last = event{}
			if err := json.Unmarshal(line, &last); err != nil {
				return last, fmt.Errorf("read %q: %w", line, err)
			}
			if err := errors.Join(e.print(line), each(last)); err != nil {
				return last, err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return last, nil
		case err != nil:
			return last, err
		}
	}
}

func (e *events) print(line []byte) error {
	e.Lock()
	defer e.Unlock()
	_, err := os.Stdout.Write(line)
	return err
}

// event is what of one is needed here.
type event struct {
	Action  string
	Package string
	Test    string  `json:",omitempty"`
	Elapsed float64 `json:",omitempty"` // seconds
}

// runAll runs programs, and reports whether all have passed. That with the most source of tests begins first, as a guess of how
// long it takes: a long one that begins last would leave a core idle.
func runAll(ctx context.Context, programs []program, atOnce int, earlier *results) (passed bool, err error) {
	converter, err := exec.CommandContext(ctx, "go", "tool", "-n", "test2json").Output()
	if err != nil {
		return false, fmt.Errorf("find test2json: %w", err)
	}
	slices.SortStableFunc(programs, func(a, b program) int { return cmp.Compare(b.source, a.source) })
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		lines events
		errs  []error
		next  = make(chan program)
	)
	passed = true
	for range atOnce {
		all.Go(func() {
			for p := range next {
				ok, err := p.test(ctx, strings.TrimSpace(string(converter)), &lines, earlier)
				mu.Lock()
				passed, errs = passed && ok, append(errs, err)
				mu.Unlock()
			}
		})
	}
	for _, p := range programs {
		if ctx.Err() == nil {
			next <- p
		}
	}
	close(next)
	all.Wait()
	return passed, errors.Join(append(errs, context.Cause(ctx))...)
}

// test runs the program in its package's folder, and reports whether its tests have passed. When ctx ends, the program and all
// that it has started get SIGTERM.
func (p program) test(ctx context.Context, converter string, lines *events, earlier *results) (passed bool, err error) {
	key, err := earlier.key(&p)
	if err != nil {
		return false, err
	}
	args := append([]string{"-t", "-p", p.label, p.file, "-test.v=test2json", "-test.paniconexit0"}, p.run...)
	if names, pattern := earlier.skip(key); len(names) > 0 {
		fmt.Fprintf(os.Stderr, "suite: %s: passed in an earlier run, and left out: %s\n", p.label, strings.Join(names, ", "))
		if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-test.skip=") }); i >= 0 {
			args[i] += "|" + pattern
		} else {
			args = append(args, "-test.skip="+pattern)
		}
	}
	cmd := exec.CommandContext(ctx, converter, args...)
	cmd.Dir, cmd.Env = p.dir, append(append(os.Environ(), "PWD="+p.dir), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("run the tests of %s: %w", p.label, err)
	}
	last, copied := lines.copy(out, func(e event) error { return earlier.add(key, e) })
	err = cmd.Wait()
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) || !exit.Exited() {
		return err == nil, errors.Join(err, copied)
	}
	if last.Action == "fail" && last.Test == "" {
		return false, copied
	}
	// A program that ends without a word, as one that is killed, has no event of its own end.
	line, err := json.Marshal(event{Action: "fail", Package: p.label})
	if err != nil {
		return false, err
	}
	return false, errors.Join(copied, lines.print(append(line, '\n')))
}
