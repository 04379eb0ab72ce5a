package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// acts is the variable that says what this program does, where it stands for the program of a step.
const acts = "ACTS_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(acts) {
	case "":
		os.Exit(m.Run())
	case "environment":
		fmt.Print(strings.Join(os.Environ(), "\n"))
	case "arguments":
		fmt.Printf("%q", os.Args[1:])
	case "parent", "background":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), acts+"=sleeper")
		if err := child.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(os.Getenv("PIDS"), fmt.Appendln(nil, child.Process.Pid), 0o600); err != nil {
			panic(err)
		}
		if os.Getenv(acts) == "background" {
			os.Exit(0)
		}
		time.Sleep(time.Hour)
	case "tidy":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, os.Interrupt)
		if err := os.WriteFile(os.Getenv("PIDS"), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
			panic(err)
		}
		<-asked
		fmt.Println("tidied")
	case "tick": // a tick that executes a step of which somebody waits for the output
		x, err := executor.KindOf("exec").Open(nil, anything)
		if err != nil {
			panic(err)
		}
		go func() {
			_, _ = x.Execute(context.Background(), executor.Request{Task: &store.Task{}, Spec: json.RawMessage(os.Getenv("SPEC"))})
		}()
		time.Sleep(time.Hour)
	case "sleeper":
		time.Sleep(time.Hour)
	}
	os.Exit(0)
}

// acting is the spec of a step whose program is this one. pids is the file into which it writes the number of a process.
func acting(as, pids string, args ...string) executor.ProgramSpec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return executor.ProgramSpec{Run: append([]string{self}, args...), Env: map[string]string{acts: as, "PIDS": pids}}
}

// lives reports whether a process lives.
func lives(t *testing.T, pid int) bool {
	t.Helper()
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	event, err := windows.WaitForSingleObject(h, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}

// ends waits until a process has ended.
func ends(t *testing.T, pid int) {
	t.Helper()
	for over := time.Now().Add(20 * time.Second); lives(t, pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("process %d lives on", pid)
		}
	}
}

// number is the number of a process, which a program writes into a file.
func number(t *testing.T, path string) int {
	t.Helper()
	for over := time.Now().Add(20 * time.Second); time.Now().Before(over); time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && strings.HasSuffix(string(text), "\n") {
			return pid
		}
	}
	t.Fatal("no number has come")
	return 0
}

// A step that is stopped leaves no process behind, whatever its program has started.
func TestExecStopsTheTree(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancelCause(t.Context())
	child := make(chan int, 1)
	go func() {
		defer cancel(errStop)
		defer close(child)
		child <- number(t, pids)
	}()
	spec := acting("parent", pids)
	grace := store.Duration(50 * time.Millisecond)
	spec.Grace = &grace
	res, err := execute(ctx, t, anything, "exec", spec)
	if !errors.Is(err, errStop) || res.Facts != "" {
		t.Errorf("%v, facts %s", err, res.Facts)
	}
	ends(t, <-child)
}

// A program is asked to end, and gets its grace.
func TestExecAsksToEnd(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancelCause(t.Context())
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), acts+"=sleeper")
	other.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(other.Process.Pid))
	_ = errors.Join(other.Process.Kill(), other.Wait())
	if err != nil {
		t.Skipf("no Ctrl-Break without a console: %v", err)
	}
	go func() {
		defer cancel(errStop)
		number(t, pids)
	}()
	spec := acting("tidy", pids)
	grace := store.Duration(time.Hour)
	spec.Grace = &grace
	res, err := execute(ctx, t, anything, "exec", spec)
	if !errors.Is(err, errStop) || res.Output != "tidied\n" {
		t.Errorf("%v, output %q", err, res.Output)
	}
}

// A tick that is killed leaves nothing of its programs.
func TestExecEndsWithItsTick(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	spec, err := json.Marshal(acting("parent", pids))
	if err != nil {
		t.Fatal(err)
	}
	tick := exec.Command(os.Args[0])
	tick.Env = append(os.Environ(), acts+"=tick", "SPEC="+string(spec))
	if err := tick.Start(); err != nil {
		t.Fatal(err)
	}
	child := number(t, pids)
	if !lives(t, child) {
		t.Fatal("the child has ended too early: nothing is shown")
	}
	if err := tick.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ends(t, child)
	_ = tick.Wait() // it was killed
}

// A process that stays in the background does not hold the run, and goes on.
func TestExecLeavesTheBackground(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	if res, err := execute(t.Context(), t, anything, "exec", acting("background", pids)); err != nil {
		t.Fatalf("%v, output %q", err, res.Output)
	}
	child := number(t, pids)
	if !lives(t, child) {
		t.Error("what stays in the background was stopped")
	}
	if p, err := os.FindProcess(child); err == nil {
		_ = p.Kill()
	}
}

// Arguments reach a program as they are, and its folder may have blanks and umlauts.
func TestExecArguments(t *testing.T) {
	spec := acting("arguments", "", `a"b`, `c d\`, "", "ü&calc.exe", "%PATH%")
	spec.Dir = filepath.Join(t.TempDir(), "Jobs für heute")
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	res, err := execute(t.Context(), t, anything, "exec", spec)
	if want := fmt.Sprintf("%q", spec.Run[1:]); err != nil || res.Output != want {
		t.Errorf("%v, output %s, want %s", err, res.Output, want)
	}
}

// A program has what each program of Windows needs, and nothing else of the tick. A step's variable replaces one of another case.
func TestExecEnvironment(t *testing.T) {
	t.Setenv("DBJOBS_DATABASE_URL", "postgres://ann:geheimnis@h/d")
	t.Setenv("PLANTED", "geheimnis")
	t.Setenv("TMP", `C:\old`)
	spec := acting("environment", "")
	spec.Env["tmp"] = `C:\new`
	res, err := execute(t.Context(), t, anything, "exec", spec)
	if err != nil {
		t.Fatal(err)
	}
	has := strings.ToUpper(res.Output)
	for _, want := range []string{"SYSTEMROOT=", "USERPROFILE=", `PATH=` + strings.ToUpper(os.Getenv("SystemRoot")), `TMP=C:\NEW`, "DBJOBS_RUN_ID="} {
		if !strings.Contains(has, want) {
			t.Errorf("a program lacks %s", want)
		}
	}
	if strings.Contains(has, "GEHEIMNIS") || strings.Contains(has, `C:\OLD`) {
		t.Errorf("a program has too much:\n%s", res.Output)
	}
}

// Programs are found by a name or by a path, in any case, and only programs are started.
func TestExecFindsPrograms(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tool.exe", "tool.bat", "tool.cmd", "tool.ps1"} {
		if err := os.WriteFile(filepath.Join(dir, name), self, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	named := &executor.Host{Programs: []executor.Program{{Path: strings.ToUpper(filepath.Join(dir, "tool.exe"))}}}
	folder := &executor.Host{Programs: []executor.Program{{Path: strings.ToUpper(dir)}}}
	for _, c := range []struct {
		host      *executor.Host
		kind, run string
		err       string
	}{
		{anything, "exec", "hostname", ""},
		{anything, "exec", "HOSTNAME.EXE", ""},
		{anything, "exec", filepath.Join(dir, "tool.exe"), ""},
		{anything, "exec", filepath.ToSlash(filepath.Join(dir, "tool.exe")), ""},
		{named, "exec", filepath.Join(dir, "TOOL.exe"), ""},
		{folder, "exec", filepath.Join(dir, "tool.EXE"), ""},
		{folder, "exec", dir + `-other\tool.exe`, "does not allow"},
		{named, "exec", filepath.Join(dir, "tool.bat"), "does not allow"},
		{folder, "exec", filepath.Join(dir, "tool.bat"), "let cmd.exe run it"},
		{folder, "exec", filepath.Join(dir, "tool.CMD"), "let cmd.exe run it"},
		{folder, "exec", filepath.Join(dir, "tool.bat."), "let cmd.exe run it"},
		{folder, "exec", filepath.Join(dir, "tool.ps1"), "let powershell.exe run it"},
		{anything, "exec", "dbjobs-is-not-here", "there is no program"},
		{anything, "exec", "/usr/bin/env", "of this system"},
		{anything, "shell", "echo x", "Windows has no /bin/sh"},
	} {
		spec := executor.ProgramSpec{Run: []string{c.run}, Env: map[string]string{acts: "nothing"}}
		_, err := execute(t.Context(), t, c.host, c.kind, spec)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %s: %v, want %q", c.kind, c.run, err, c.err)
		}
	}
}
