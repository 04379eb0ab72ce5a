//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// nobody is a user who is not root, with the program and a home folder.
type nobody struct {
	t    *testing.T
	path string
	home string
	env  []string
}

// asNobody returns the user that the tests have for a program that must not be root.
func asNobody(t *testing.T) *nobody {
	t.Helper()
	dir, err := os.MkdirTemp("", "nobody") // the folders of a test are only for the test's own user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &nobody{t: t, path: filepath.Join(dir, "dbjobs"), home: filepath.Join(dir, "home")}
	n.env = []string{"HOME=" + n.home, "DBJOBS_DATABASE_URL=sqlite:" + n.home + "/jobs.db", "GORACE=" + os.Getenv("GORACE")}
	// Another process copies it. A program that this one has open for writing may stay open in a child that another test
	// starts at that moment, and then it cannot be started.
	if out, err := exec.CommandContext(t.Context(), "cp", program(t), n.path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(n.path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(n.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if n.isRoot() {
		if err := os.Chown(n.home, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *nobody) isRoot() bool { return os.Geteuid() == 0 }

// command is the program, started by that user.
func (n *nobody) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(n.t.Context(), n.path, args...)
	cmd.Env, cmd.Dir = n.env, n.home
	if n.isRoot() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return cmd
}

func (n *nobody) dbjobs(args ...string) string {
	n.t.Helper()
	var talk bytes.Buffer
	cmd := n.command(args...)
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("%q: %v: %s", args, err, talk.String())
	}
	return strings.TrimSpace(string(out))
}

// apply makes these definitions for the user.
func (n *nobody) apply(manifest string) {
	n.t.Helper()
	file := filepath.Join(n.home, "jobs.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(manifest, "\t", " ")), 0o644); err != nil {
		n.t.Fatal(err)
	}
	n.dbjobs("apply", "-f", file)
}

// A reader of a file does not notice that nobody lets it write. The doctor says so of the user of the passes.
func TestDoctorNamesAFileThatPassesCannotWrite(t *testing.T) {
	t.Parallel()
	n := asNobody(t)
	n.dbjobs("migrate")
	n.dbjobs("tick")
	if out := n.dbjobs("doctor"); strings.Contains(out, "cannot write") {
		t.Errorf("it is writable: %s", out)
	}
	file := filepath.Join(n.home, "jobs.db")
	if err := os.Chmod(file, 0o444); err != nil {
		t.Fatal(err)
	}
	out, err := n.command("doctor").Output()
	if err == nil || !strings.Contains(string(out), "passes of this user cannot write: the file "+file+" (-r--r--r--)") {
		t.Errorf("%v: %s", err, out)
	}
}

// A program that a step runs has the tick's own user. Still, the tick's secrets are hidden from it.
func TestProgramsSeeNothingOfTheTick(t *testing.T) {
	t.Parallel()
	n := asNobody(t)
	n.env = append(n.env, "DBJOBS_SECRET_OTHER=geheimnis")
	n.dbjobs("migrate")
	n.dbjobs("job", "create", "look", "--shell", `cd /proc/$PPID; cat environ; ls -l fd; head -c 1 mem; cat maps; readlink exe; echo end of /status`)
	id := n.dbjobs("job", "run-now", "look")
	n.dbjobs("tick")
	out := n.dbjobs("run", "show", id)
	if strings.Contains(out, "geheimnis") || strings.Contains(out, "jobs.db") || strings.Count(out, "Permission denied") < 4 || !strings.Contains(out, "/status") {
		t.Errorf("a program saw\n%s", out)
	}
}

// A program of another user, such as one with sudo, cannot be killed. A tick does not wait for ever until it ends.
func TestProgramThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	n := asNobody(t)
	if !n.isRoot() {
		t.Skip("only root can start a program of root's")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		storetest.Skip(t, "a program of root's is started by setpriv of util-linux: %v", err)
	}
	sh, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	rooted := filepath.Join(filepath.Dir(n.home), "sh")
	if err := errors.Join(os.WriteFile(rooted, sh, 0o755), os.Chmod(rooted, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(n.home, "pid")
	n.dbjobs("migrate")
	n.apply(`jobs: {stays: {timeout: 1s, shell: {grace: 0s,
		run: "echo $$ > ` + pid + `; exec ` + rooted + ` -p -c 'exec ` + setpriv + ` --reuid 0 --regid 0 --clear-groups sleep 1000'"}}}`)
	id := n.dbjobs("job", "run-now", "stays")
	tick := n.command("tick")
	if err := tick.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tick.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		_ = tick.Process.Kill()
		t.Error("a minute later the tick still waits")
	}
	text, unread := os.ReadFile(pid)
	number, malformed := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := errors.Join(err, unread, malformed); err != nil {
		t.Fatal(err)
	}
	out := n.dbjobs("run", "show", id)
	if killed := syscall.Kill(number, syscall.SIGKILL); killed != nil || !strings.Contains(out, "timeout of 1s") || !strings.Contains(out, "could not be killed") {
		t.Errorf("%v\n%s", killed, out)
	}
}
