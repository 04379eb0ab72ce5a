//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// signalled starts a tick, with the words of a command before it, whose one job goes on until the returned function is
// called. That function returns what the tick said on standard error.
func signalled(t *testing.T, stdout *os.File, words ...string) (tick *exec.Cmd, finish func() string) {
	t.Helper()
	dir := t.TempDir()
	begun, end := filepath.Join(dir, "begun"), filepath.Join(dir, "end")
	for _, args := range [][]string{
		{"job", "create", "one", "--max-deliveries", "1", "--shell", "touch " + begun + "; until [ -e " + end + " ]; do sleep 0.05; done"},
		{"job", "run-now", "one"},
	} {
		if code, stderr := invoke(t.Context(), t, dir, nil, new(bytes.Buffer), args...); code != exitDone {
			t.Fatalf("%q: code %d, said %q", args, code, stderr)
		}
	}
	words = append(words, program(t), "tick", "--verbose", "--grace", "1m")
	tick = exec.Command(words[0], words[1:]...)
	tick.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "DBJOBS_CONFIG=programs: [/bin/sh]"}
	var stderr bytes.Buffer
	tick.Stdout, tick.Stderr = stdout, &stderr
	if err := tick.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tick.Process.Kill() }) // if the test has failed
	waitUntil(t, "the job begins", func() bool { _, err := os.Stat(begun); return err == nil })
	return tick, func() string {
		t.Helper()
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = tick.Wait() // its code is looked at by the test
		var out bytes.Buffer
		if code, said := invoke(t.Context(), t, dir, nil, &out, "run", "list"); code != exitDone || !strings.Contains(out.String(), "succeeded") {
			t.Errorf("code %d, said %q: the job ran to its end, and its run is\n%s", code, said, &out)
		}
		return stderr.String()
	}
}

// TestAClosedTerminalAsksATickToEnd: the terminal sends SIGHUP more than once, and what executes still has its grace.
func TestAClosedTerminalAsksATickToEnd(t *testing.T) {
	t.Parallel()
	tick, finish := signalled(t, nil)
	for range 3 {
		if err := tick.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if stderr := finish(); tick.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("%v, said %q", tick.ProcessState, stderr)
	}
}

// TestNohup: under nohup a closed terminal is no reason to end.
func TestNohup(t *testing.T) {
	t.Parallel()
	tick, finish := signalled(t, nil, "/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`)
	if err := tick.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if stderr := finish(); tick.ProcessState.ExitCode() != exitDone {
		t.Errorf("%v, said %q", tick.ProcessState, stderr)
	}
}

// TestAReaderThatIsGone: a tick whose reader of standard output and standard error is gone records its runs. Then it fails,
// because its output was not written.
func TestAReaderThatIsGone(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	tick, finish := signalled(t, w, "/bin/sh", "-c", `exec "$0" "$@" 2>&1`)
	if finish(); tick.ProcessState.ExitCode() != exitFailed {
		t.Errorf("%v", tick.ProcessState)
	}
}

// TestAChangeWhoseReaderIsGone: a command that has changed something sets the alarm for it, although the reader of its output
// is gone, as in `dbjobs job backfill … | head -1`. Then it fails, because its output was not written.
func TestAChangeWhoseReaderIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, stderr := invoke(t.Context(), t, dir, nil, new(bytes.Buffer), "job", "create", "one", "--rule", "every 1m starting 2026-01-01T00:00", "--sql", "SELECT 1"); code != exitDone {
		t.Fatalf("code %d, said %q", code, stderr)
	}
	rung, alarm := filepath.Join(dir, "rung"), filepath.Join(dir, "alarm")
	if err := os.WriteFile(alarm, []byte("#!/bin/sh\ntouch "+rung+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	change := exec.Command(program(t), "job", "backfill", "one", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-02T12:00:00Z")
	change.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "DBJOBS_WAKE=exec:" + alarm}
	change.Stdout = w
	if err := change.Run(); err == nil || change.ProcessState.ExitCode() != exitFailed {
		t.Errorf("%v", change.ProcessState)
	}
	if _, err := os.Stat(rung); err != nil {
		t.Errorf("no alarm is set: %v", err)
	}
}

// TestPassIsNamedByTheCommandAlone: a name or a value that reads like a command makes no pass of another command.
func TestPassIsNamedByTheCommandAlone(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"":                                    true, // of a Lambda function
		"tick":                                true,
		"work --queue reports":                true,
		"serve":                               true,
		"--database sqlite:a.db tick --quiet": true,
		"--database=sqlite:a.db --utc work":   true,
		"--log-format json serve":             true,
		"-- tick":                             true,
		"check --trigger tick --json":         false,
		"run list --job work":                 false,
		"job history tick":                    false,
		"--database work job list":            false,
		"--nosuch":                            false,
		"help tick":                           false,
		"job list":                            false,
	} {
		if got := isPass(strings.Fields(line)); got != want {
			t.Errorf("%q is a pass: %t, want %t", line, got, want)
		}
	}
}
