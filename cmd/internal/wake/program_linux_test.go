package wake

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAlarmOfAProgramGetsNoFiles: what it leaves in the background would hold the lock of a flock around the tick.
func TestAlarmOfAProgramGetsNoFiles(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	number, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_DUPFD, 100) // a shell may have its own files at the first numbers
	if errno != 0 {
		t.Fatal(errno)
	}
	defer syscall.Close(int(number))
	rings(t, filepath.Join(t.TempDir(), "ring"), fmt.Sprintf("[ ! -e /proc/$$/fd/%d ]", number))
}

// fake puts a program on PATH that keeps its arguments and its variables, sets an alarm of a kind that calls it, and
// returns what it got.
func fake(t *testing.T, program, kind string, uid int, environ ...string) (args, variables []string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >'" + dir + "/args'\nenv >'" + dir + "/variables'\n"
	for name, text := range map[string]string{program: script, "atq": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	a, err := New(kind, Settings{Env: lookup(nil), Environ: append(environ, "PATH="+os.Getenv("PATH")), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := a.(*systemd); ok {
		s.uid = uid
	}
	if _, err := a.Set(t.Context(), noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	return read("args"), read("variables")
}

// The tick that an alarm starts reads the same settings, and has the same embedded database: it gets the variables that say where
// they are. at(1) keeps the others of its caller in a file, which has none of them.
func TestAlarmKeepsWhereTheFilesAre(t *testing.T) {
	environ := []string{"HOME=/h", "XDG_CONFIG_HOME=/c $d", "XDG_DATA_HOME=/d", "SHOP_URL=geheim", "DBJOBS_DATABASE_URL=geheim"}
	_, kept := fake(t, "at", "at", 0, environ...)
	args, _ := fake(t, "systemd-run", "systemd", 0, environ...)
	for _, want := range environ[:3] {
		if !slices.Contains(kept, want) {
			t.Errorf("at gets %q, and no %s", kept, want)
		}
		if !slices.Contains(args, "--setenv="+want) {
			t.Errorf("systemd-run gets %q, and no %s", args, want)
		}
	}
	if text := strings.Join(append(kept, args...), " "); strings.Contains(text, "geheim") {
		t.Error(text)
	}
}

// A relative path in the settings of the host means the same file to the tick of an alarm as to that of a crontab, which begins in
// the home of its user. A user without one has / for it.
func TestAlarmOfAtBeginsInTheHome(t *testing.T) {
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	locked, inLocked := filepath.Join(t.TempDir(), "locked"), "/" // as that of root, where HOME is still that of root
	if err := os.Mkdir(locked, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // who may enter each folder
		inLocked = locked
	}
	for _, c := range []struct{ home, want string }{{home, home}, {"/nonexistent", "/"}, {file, "/"}, {locked, inLocked}, {".", "/"}, {"", "/"}} {
		t.Chdir(t.TempDir())
		if _, variables := fake(t, "at", "at", 0, "HOME="+c.home); !slices.Contains(variables, "PWD="+c.want) {
			t.Errorf("HOME=%s: want a job that begins in %s: %q", c.home, c.want, variables)
		}
	}
}

// A crontab has neither of the variables by which systemd-run finds the manager of the user: it looks where the manager listens. In
// a session, and for root, they are as they were.
func TestAlarmOfAUserFindsItsManager(t *testing.T) {
	for _, c := range []struct {
		uid     int
		environ []string
		want    string // of XDG_RUNTIME_DIR
	}{
		{1000, nil, "XDG_RUNTIME_DIR=/run/user/1000"},
		{1000, []string{"XDG_RUNTIME_DIR="}, "XDG_RUNTIME_DIR=/run/user/1000"},
		{1000, []string{"XDG_RUNTIME_DIR=/tmp/s"}, "XDG_RUNTIME_DIR=/tmp/s"},
		{1000, []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/bus"}, ""},
		{0, nil, ""},
	} {
		args, variables := fake(t, "systemd-run", "systemd", c.uid, c.environ...)
		at := slices.IndexFunc(variables, func(entry string) bool { return strings.HasPrefix(entry, "XDG_RUNTIME_DIR=") })
		if at < 0 && c.want != "" || at >= 0 && variables[at] != c.want || slices.Contains(args, "--user") != (c.uid != 0) {
			t.Errorf("%d with %q: %q with %q, want %s", c.uid, c.environ, args, variables, c.want)
		}
	}
}

// The page says how to take back the alarms of at(1), as before a restore. The command removes those of all databases, and leaves other
// jobs of the same queue.
func TestAlarmsOfAtAreTakenBack(t *testing.T) {
	queueOfItsOwn(t)
	page, err := os.ReadFile("../../dbjobs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var command string
	for line := range strings.Lines(string(page)) {
		if text, is := strings.CutPrefix(line, "$ "); is && strings.Contains(text, "atrm") {
			command = text
		}
	}
	shell := func(text, stdin string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", text)
		cmd.Stdin = strings.NewReader(stdin)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", text, err, said)
		}
		return string(said)
	}
	shell("at -q d now + 300 days", "echo another\n")
	soon := time.Now().Add(300 * 24 * time.Hour).Truncate(time.Minute)
	for i, database := range []string{"a", "b"} {
		a, err := New("at", Settings{Env: lookup(nil), Environ: os.Environ(), Now: time.Now, Tick: ticksOf(database)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Set(t.Context(), soon.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if list := shell("atq -q d", ""); strings.Count(list, "\n") != 3 {
		t.Fatalf("the jobs are %s", list)
	}
	shell(command, "")
	if list := shell("atq -q d", ""); strings.Count(list, "\n") != 1 || !strings.Contains(shell("at -c "+strings.Fields(list)[0], ""), "echo another") {
		t.Errorf("after %q, the jobs are %s", command, list)
	}
}
