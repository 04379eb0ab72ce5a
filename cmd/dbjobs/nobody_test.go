//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user who is not root, with the program and a home folder.
type nobody struct {
	t    *testing.T
	path string
	home string
	env  []string
}

// asNobody is the user that the tests have where that is not root.
func asNobody(t *testing.T) *nobody {
	t.Helper()
	dir, err := os.MkdirTemp("", "nobody") // those of a test are for its own user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &nobody{t: t, path: filepath.Join(dir, "dbjobs"), home: filepath.Join(dir, "home")}
	n.env = []string{"HOME=" + n.home, "DBJOBS_DATABASE_URL=sqlite:" + n.home + "/jobs.db", "GORACE=" + os.Getenv("GORACE")}
	from, err := os.Open(program(t))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(n.path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
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

// command is the program as that user starts it.
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

// A program that a step runs is of the tick's own user. What the tick knows is hidden from it all the same.
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
