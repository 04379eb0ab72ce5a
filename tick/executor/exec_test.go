//go:build unix

package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor"
)

func sh(text string) executor.ProgramSpec { return executor.ProgramSpec{Run: []string{text}} }

func TestExec(t *testing.T) {
	for _, c := range []struct {
		kind string
		spec executor.ProgramSpec
		out  string
		err  string
	}{
		{"exec", executor.ProgramSpec{Run: []string{"printf", "%s|", "${run_id}", "at ${scheduled_for}", "${attempt}", "$HOME", "${args.day}", "*"}}, "0a1b|at 2026-01-05T08:05:00.000000Z|2|$HOME|1; touch x|*|", ""},
		{"shell", sh("echo $DBJOBS_RUN_ID $DBJOBS_JOB $DBJOBS_OWNER $DBJOBS_ARGS_N; echo $DBJOBS_ARGS_DAY; ls x 2>/dev/null"), "0a1b dump ann 3\n1; touch x\n", "exit code"},
		{"shell", sh("echo out; echo err >&2; exit 3"), "out\nerr\n", "exit code 3: err"},
		{"shell", sh("kill -KILL $$"), "", "ended by a signal: signal: killed"},
		{"shell", executor.ProgramSpec{Run: []string{"pwd; echo $A"}, Dir: "/usr", Env: map[string]string{"A": "fence ${fence}"}}, "/usr\nfence 7\n", ""},
		{"exec", executor.ProgramSpec{Run: []string{"dbjobs-is-not-here"}}, "", "there is no program"},
		{"exec", executor.ProgramSpec{Run: []string{"/usr/nowhere/tool"}}, "", "no such file"},
		{"exec", executor.ProgramSpec{Run: []string{"/etc/passwd"}}, "", "may this user execute it"},
		{"exec", executor.ProgramSpec{Run: []string{"true"}, Dir: "/usr/nowhere"}, "", "/usr/nowhere"},
		{"exec", executor.ProgramSpec{Run: []string{"cat"}}, "", ""}, // its input is empty
	} {
		res, err := execute(t.Context(), t, anything, c.kind, c.spec)
		if res.Output != c.out || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %q: %q, %v; want %q, %q", c.kind, c.spec.Run, res.Output, err, c.out, c.err)
		}
	}
}

// A text that no program can get fails with advice. Another try would not help.
func TestExecTooLongOrWithNUL(t *testing.T) {
	for arg, want := range map[string]string{strings.Repeat("x", 4<<20): "from a file or a database", "a\x00b": "has a NUL"} {
		for _, spec := range []executor.ProgramSpec{{Run: []string{"true", arg}}, {Run: []string{"true"}, Env: map[string]string{"A": arg}}} {
			if _, err := execute(t.Context(), t, anything, "exec", spec); !errors.Is(err, executor.ErrFinal) || !strings.Contains(err.Error(), want) {
				t.Errorf("%d bytes: %.300v, want %s", len(arg), err, want)
			}
		}
	}
}

// A program gets only the variables of the tick's environment that are allowed.
func TestExecEnvironment(t *testing.T) {
	t.Setenv("DBJOBS_DATABASE_URL", "postgres://ann:geheimnis@h/d")
	t.Setenv("PLANTED", "geheimnis")
	t.Setenv("PATH", "/planted:"+os.Getenv("PATH"))
	res, err := execute(t.Context(), t, anything, "exec", executor.ProgramSpec{Run: []string{"env"}, Env: map[string]string{"MINE": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(res.Output) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"HOME", "USER", "LOGNAME", "LANG", "TZ", "PWD"}, name) {
			names = append(names, name)
		}
	}
	want := "DBJOBS_ARGS_DAY DBJOBS_ARGS_N DBJOBS_ATTEMPT DBJOBS_FENCE DBJOBS_JOB DBJOBS_OWNER DBJOBS_RUN_ID DBJOBS_SCHEDULED_FOR MINE PATH"
	slices.Sort(names)
	if got := strings.Join(names, " "); got != want || strings.Contains(res.Output, "planted") || strings.Contains(res.Output, "geheimnis") {
		t.Errorf("a program has %s; want %s\n%s", got, want, res.Output)
	}
}

// A step's own variables replace inherited ones.
func TestExecEnvironmentOfTheStep(t *testing.T) {
	t.Setenv("TZ", "UTC")
	t.Setenv("LANG", "en_US.UTF-8")
	res, err := execute(t.Context(), t, anything, "shell", executor.ProgramSpec{Run: []string{"echo $TZ $LANG"}, Env: map[string]string{"TZ": "Europe/Berlin", "LANG": "C"}})
	if err != nil || res.Output != "Europe/Berlin C\n" {
		t.Errorf("%q, %v", res.Output, err)
	}
}

// No part of a secret is in an error, however long the secret is.
func TestExecErrorHidesSecrets(t *testing.T) {
	value := strings.Repeat("geheim", 100)
	h := &executor.Host{Own: true, Known: &secret.Known{}, Secrets: map[string]executor.Secret{"KEY": {Value: func(context.Context) (string, error) { return value, nil }}}}
	res, err := execute(t.Context(), t, h, "shell", executor.ProgramSpec{Run: []string{"echo no access with $KEY; exit 1"}, Env: map[string]string{"KEY": "${secret:KEY}"}})
	if err == nil || strings.Contains(err.Error()+res.Output, "geheim") || !strings.Contains(err.Error(), "no access with [hidden]") {
		t.Errorf("%v\n%s", err, res.Output)
	}
}

// Without permission, no program is executed, and the refusal has the line that gives the permission.
func TestExecNotAllowed(t *testing.T) {
	for _, c := range []struct {
		kind, line string
		spec       executor.ProgramSpec
	}{
		{"exec", "programs: [/usr/bin/env]", executor.ProgramSpec{Run: []string{"/usr/bin/env"}}},
		{"shell", "programs: [/bin/sh]", sh("true")},
	} {
		_, err := execute(t.Context(), t, nil, c.kind, c.spec)
		if err == nil || !strings.HasSuffix(err.Error(), c.line) {
			t.Errorf("%s: %v, want a refusal with %s", c.kind, err, c.line)
		}
		path := strings.TrimSuffix(strings.TrimPrefix(c.line, "programs: ["), "]")
		h := &executor.Host{Programs: []executor.Program{{Path: path, Owners: executor.Owners{"ann"}}}}
		if _, err := execute(t.Context(), t, h, c.kind, c.spec); err != nil {
			t.Errorf("%s with a permission for %s: %v", c.kind, path, err)
		}
	}
}

func TestExecExitCodes(t *testing.T) {
	spec := func(code int) executor.ProgramSpec {
		return executor.ProgramSpec{Run: []string{fmt.Sprintf("exit %d", code)}, RetryExit: []int{75}, SkipExit: []int{99}}
	}
	for code, want := range map[int]string{0: "succeeded", 75: "failed", 99: "skipped", 1: "final"} {
		res, err := execute(t.Context(), t, anything, "shell", spec(code))
		got := "succeeded"
		detail, _ := errors.AsType[*executor.Error](err)
		switch {
		case errors.Is(err, executor.ErrFinal):
			got = "final"
		case err != nil:
			got = "failed"
		case res.Skip:
			got = "skipped"
		}
		if said := strings.HasSuffix(res.Output, "exit code 99 is among skip_exit: there was nothing to do, and the run ends here"); said != res.Skip {
			t.Errorf("exit code %d: the output is %q", code, res.Output)
		}
		if got != want || err != nil && (detail == nil || detail.Code != strconv.Itoa(code)) {
			t.Errorf("exit code %d: %s, %v; want %s", code, got, err, want)
		}
	}
}

// lives reports whether a process lives: it is neither gone nor a zombie.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// stopped runs a text of the shell that writes process ids into the file $PIDS, one a line. It stops the text when
// there are the wanted number of ids, and returns them.
func stopped(t *testing.T, many int, text string, grace, most time.Duration) (pids []int, res executor.Result) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for ctx.Err() == nil {
			b, _ := os.ReadFile(file) // not there yet
			if strings.Count(string(b), "\n") >= many {
				cancel(errStop)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	g := store.Duration(grace)
	res, err := executeWithin(ctx, t, anything, "shell", executor.ProgramSpec{Run: []string{text}, Env: map[string]string{"PIDS": file}, Grace: &g}, most)
	if !errors.Is(err, errStop) {
		t.Fatalf("a program that was stopped: %v", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids, res
}

// A step that is stopped leaves no process behind, whatever its program has started and however it handles SIGTERM. A
// process that is just being forked may miss SIGTERM, and then needs the whole grace.
func TestExecStopsTheGroup(t *testing.T) {
	for name, c := range map[string]struct {
		many  int
		text  string
		grace time.Duration
		out   string
	}{
		"a program":                {1, `echo $$ >> $PIDS; exec sleep 1000`, time.Minute, ""},
		"with children":            {3, `sleep 1000 & echo $! >> $PIDS; sleep 1000 & echo $! >> $PIDS; echo $$ >> $PIDS; wait`, time.Minute, ""},
		"children without it":      {2, `(sh -c 'echo $$ >> $PIDS; sleep 1000' &) ; echo $$ >> $PIDS; exec sleep 1000`, time.Minute, ""},
		"deaf to SIGTERM":          {2, `trap "" TERM; sleep 1000 & echo $! >> $PIDS; echo $$ >> $PIDS; while :; do sleep 1000; done`, 50 * time.Millisecond, ""},
		"a deaf child":             {2, `sh -c 'trap "" TERM; echo $$ >> $PIDS; while :; do sleep 1000; done' & echo $$ >> $PIDS; sleep 1000`, 50 * time.Millisecond, ""},
		"with something to say":    {1, `trap "echo tidied; exit 0" TERM; sleep 1000 & echo $$ >> $PIDS; wait`, 5 * time.Second, "tidied\n"},
		"in another group":         {1, `exec perl -e 'setpgrp(0, getpgrp(getppid)) or die; open(F, ">>", $ENV{PIDS}); print F "$$\n"; close F; sleep 1000'`, 50 * time.Millisecond, ""},
		"a child that tidies late": {2, `sh -c 'trap "sleep 0.2; echo tidied; exit 0" TERM; sleep 1000 & echo $$ >> $PIDS; wait' & echo $$ >> $PIDS; exec sleep 1000`, 5 * time.Second, "tidied\n"},
		"a child that tidies longer than output is waited for": {2, `sh -c 'trap "sleep 3; echo tidied; exit 0" TERM; sleep 1000 & echo $$ >> $PIDS; wait' & echo $$ >> $PIDS; exec sleep 1000`, time.Minute, "tidied\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids, res := stopped(t, c.many, c.text, c.grace, 0)
			if len(pids) < c.many || res.Output != c.out {
				t.Errorf("%d processes, output %q; want %d, %q", len(pids), res.Output, c.many, c.out)
			}
			for _, pid := range pids {
				for end := time.Now().Add(20 * time.Second); lives(pid); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) { // a killed process needs a moment to disappear
						t.Fatalf("process %d is still there", pid)
					}
				}
			}
		})
	}
}

// beforeTheGrace does something that must not take the grace, which is longer than any test.
func beforeTheGrace(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the attempt goes on until the grace is over")
	}
}

// SIGKILL comes before the end of the grace where the attempt would take too long.
func TestExecKillsInTime(t *testing.T) {
	t.Parallel()
	beforeTheGrace(t, func() {
		pids, _ := stopped(t, 1, `trap "" TERM; echo $$ >> $PIDS; while :; do sleep 0.1; done`, time.Hour, 500*time.Millisecond)
		if len(pids) != 1 || lives(pids[0]) {
			t.Errorf("processes that still live: %d", pids)
		}
	})
}

// Output of any length is kept in bounded memory, also of several programs at once, on both streams.
func TestExecOutputIsBounded(t *testing.T) {
	size, programs := int64(16<<20), 4
	if prove.Whole() {
		size = 1 << 30
	}
	flood := "head -c %d /dev/zero | tr '\\0' x"
	text := sh(fmt.Sprintf("echo first; ("+flood+") & ("+flood+") >&2 & wait; echo; echo last", size/2, size/2))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var group sync.WaitGroup
	for range programs {
		group.Go(func() {
			res, err := execute(t.Context(), t, anything, "shell", text)
			if err != nil || len(res.Output) > store.MostOutput || !strings.HasPrefix(res.Output, "first\n") || !strings.HasSuffix(res.Output, "last\n") {
				t.Errorf("%d bytes are kept, %v", len(res.Output), err)
			}
		})
	}
	group.Wait()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(programs)<<21 { // everything that was allocated, also if it was freed
		t.Errorf("%d times %d bytes of output took %d bytes of memory", programs, size, got)
	} else {
		t.Logf("%d times %d bytes of output took %d bytes of memory", programs, size, got)
	}
}

// A program that is being written cannot start yet. That is no failed attempt, and neither is a machine that has no more
// processes, memory or open files. What will not pass says what to look for.
func TestExecThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy, bare, gone := file("busy", "#!/bin/sh\n"), file("bare", "echo x\n"), file("gone", "#!/no/interpreter\n")
	writer, err := os.OpenFile(busy, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for path, want := range map[string]string{busy: "text file busy", bare: "needs a first line such as #!/bin/sh", gone: "what its first line names"} {
		_, err := execute(t.Context(), t, anything, "exec", executor.ProgramSpec{Run: []string{path}})
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, executor.ErrNothingDone) != (path == busy) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestExecNamesItsFolder: where the folder is at fault, the error does not name the program.
func TestExecNamesItsFolder(t *testing.T) {
	for dir, want := range map[string]string{"/nowhere": "no such file", "/etc/passwd": "not a directory"} {
		_, err := execute(t.Context(), t, &executor.Host{Own: true}, "exec", executor.ProgramSpec{Run: []string{"true"}, Dir: dir})
		if err == nil || !strings.HasPrefix(err.Error(), "dir: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want dir: … %s", dir, err, want)
		}
	}
}

func TestExecRefusesWhatNoRunCouldDo(t *testing.T) {
	for spec, want := range map[string]string{
		`{"run": []}`:                                     "names nothing to run",
		`{"run": ["./tool"]}`:                             "want an absolute path",
		`{"run": ["/opt/../tool"]}`:                       "want an absolute path",
		`{"run": ["C:\\x\\..\\tool.exe"]}`:                "want an absolute path",
		`{"run": ["x\\tool.exe"]}`:                        "want an absolute path",
		`{"run": ["ls"], "env": {"PSModulePath": "/x"}}`:  "not a step's to set",
		`{"run": ["${args.tool}"]}`:                       "has no references",
		`{"run": ["ls", "${interval_stat}"]}`:             "is not known",
		`{"run": ["ls"], "dir": "x"}`:                     "want an absolute path",
		`{"run": ["ls"], "env": {"LD_PRELOAD": "/x.so"}}`: "not a step's to set",
		`{"run": ["ls"], "env": {"PATH": "/x"}}`:          "not a step's to set",
		`{"run": ["ls"], "env": {"Tar_Options": "/x"}}`:   "not a step's to set",
		`{"run": ["ls"], "env": {"SSH_ASKPASS": "/x"}}`:   "not a step's to set",
		`{"run": ["ls"], "env": {"DBJOBS_RUN_ID": "1"}}`:  "not a step's to set",
		`{"run": ["ls"], "env": {"a b": "1"}}`:            "a variable's name",
		`{"run": ["ls"], "env": {"A": "${nothing}"}}`:     "is not known",
		`{"run": ["ls"], "what": 1}`:                      "unknown field",

		`{"run": ["ls"], "retry_exit": [1, 75], "skip_exit": [99, 75]}`: "the code 75 is in retry_exit, too",
	} {
		if err := executor.KindOf("exec").Check(json.RawMessage(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
	for _, spec := range []string{ // a definition may be written on another system than that of its host
		`{"run": ["/usr/bin/tool"], "dir": "/srv"}`, `{"run": ["C:\\Program Files\\x\\tool.exe"], "dir": "d:/jobs"}`, `{"run": ["\\\\nas\\tools\\t.exe"]}`,
	} {
		if err := executor.KindOf("exec").Check(json.RawMessage(spec)); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	for text, want := range map[string]string{
		"echo ${run_id}":                         `"$DBJOBS_RUN_ID"`,
		"echo ${args.day} >> file":               `"$DBJOBS_ARGS_DAY"`,
		"curl -H ${secret:KEY}":                  "give it to env",
		"echo ${run_id:-x} ${mine} ${a#b} $HOME": "",
	} {
		raw, err := json.Marshal(sh(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := executor.KindOf("shell").Check(raw); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
