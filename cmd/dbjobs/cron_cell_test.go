//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A cronCell is a root folder that has a cron, a shell, dbjobs, the files that these need, and nothing else. So cron
// finds only the crontabs of the cell, and its mails stay inside. It needs root: a cron that is root only in a user
// namespace may not set the groups of its jobs, and starts none.
type cronCell struct {
	t         *testing.T
	root      string
	installed string // the root folder below which cron is installed
	program   string // dbjobs
	uid       int    // the user of the crontab
}

func newCronCell(t *testing.T, installed string) *cronCell {
	if os.Geteuid() != 0 {
		t.Fatal("cron starts jobs as root only: run make cron as root, or in a container whose user is root")
	}
	c := &cronCell{t: t, installed: installed, uid: 65534}
	var err error
	// It is not t.TempDir, because the crontab's user cannot enter the parents of that folder.
	if c.root, err = os.MkdirTemp("", "dbjobs-cron-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(c.root) })
	c.program = filepath.Join(c.root, "usr/local/bin/dbjobs")
	for dir, mode := range map[string]os.FileMode{
		"": 0o755, "bin": 0o755, "lib": 0o755, "lib64": 0o755, "dev": 0o755, "etc/pam.d": 0o755, "proc/sys/kernel/random": 0o755, "run": 0o755, "usr/sbin": 0o755,
		"usr/local/bin": 0o755, "var/spool/cron/crontabs": 0o755, "var/run": 0o755, "data": 0o755, "tmp": 0o777, "mail": 0o777, "home": 0o777,
	} {
		c.must(os.MkdirAll(filepath.Join(c.root, dir), 0o755))
		c.must(os.Chmod(filepath.Join(c.root, dir), mode))
	}
	build := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", c.program, ".") // as make build does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.take(filepath.Join(installed, "usr/sbin/cron"), "usr/sbin/cron")
	c.take("/bin/sh", "bin/sh")
	c.take("/bin/cat", "bin/cat")
	var permit []string
	for _, pattern := range []string{"lib/*/security/pam_permit.so", "usr/lib/*/security/pam_permit.so", "lib/security/pam_permit.so"} {
		found, _ := filepath.Glob(filepath.Join(installed, pattern)) // the patterns are well-formed
		permit = append(permit, found...)
	}
	if len(permit) > 0 { // a cron without PAM needs none
		c.take(permit[0], "lib/pam_permit.so")
	}
	allow := ""
	for _, kind := range []string{"auth", "account", "session"} {
		allow += kind + " required /lib/pam_permit.so\n"
	}
	c.write("etc/pam.d/cron", allow, 0o644)
	c.write("etc/passwd", "root:x:0:0::/home:/bin/sh\njobs:x:65534:65534::/home:/bin/sh\n", 0o644)
	c.write("etc/group", "root:x:0:\njobs:x:65534:\n", 0o644)
	c.write("usr/sbin/sendmail", "#!/bin/sh\nexec /bin/cat >/mail/$$\n", 0o755)
	c.write("proc/sys/kernel/random/boot_id", c.text("/proc/sys/kernel/random/boot_id"), 0o644)
	null := filepath.Join(c.root, "dev/null")
	if syscall.Mknod(null, syscall.S_IFCHR|0o666, 1<<8|3) != nil { // not possible in every container: a file works as well
		c.write("dev/null", "", 0o666)
	}
	c.must(os.Chmod(null, 0o666))
	return c
}

func (c *cronCell) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cronCell) text(file string) string {
	c.t.Helper()
	text, err := os.ReadFile(file)
	c.must(err)
	return string(text)
}

func (c *cronCell) write(name, text string, mode os.FileMode) {
	c.t.Helper()
	file := filepath.Join(c.root, name)
	c.must(os.WriteFile(file, []byte(text), mode))
	c.must(os.Chmod(file, mode))
}

// secret puts a URL into a file that the crontab's user alone can read.
func (c *cronCell) secret(name, url string) string {
	c.t.Helper()
	file := "/etc/database-url-" + name
	c.write(file, url+"\n", 0o600)
	c.own(file)
	return file
}

// own gives the content of a folder to the crontab's user.
func (c *cronCell) own(dir string) {
	c.t.Helper()
	c.must(filepath.WalkDir(filepath.Join(c.root, dir), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, c.uid, c.uid)
	}))
}

var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// take copies a program, and the libraries that it needs, to the places where the loader looks for them.
func (c *cronCell) take(file, name string) {
	c.t.Helper()
	c.write(name, c.text(file), 0o755)
	var folders []string
	for _, pattern := range []string{"lib/*-linux-gnu", "usr/lib/*-linux-gnu"} {
		found, _ := filepath.Glob(filepath.Join(c.installed, pattern)) // the patterns are well-formed
		folders = append(folders, found...)
	}
	ldd := exec.Command("ldd", file)
	ldd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(folders, ":"))
	out, err := ldd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("ldd %s: %v\n%s", file, err, out)
	}
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		to := filepath.Join("lib", filepath.Base(m[1]))
		if strings.HasPrefix(filepath.Base(m[1]), "ld-linux") {
			to = m[1] // the loader is named by its path
			c.must(os.MkdirAll(filepath.Join(c.root, filepath.Dir(to)), 0o755))
		}
		c.write(to, c.text(m[1]), 0o755)
	}
}

// run runs a cron until a few seconds after the last of the minutes. The first minute begins with the next full one.
// run waits for the programs that cron has started by then.
func (c *cronCell) run(crontab string) {
	c.t.Helper()
	attr := &syscall.SysProcAttr{Chroot: c.root, Setsid: true, Pdeathsig: syscall.SIGKILL}
	const file = "var/spool/cron/crontabs/jobs"
	c.write(file, crontab, 0o600)
	c.own(file)
	var out bytes.Buffer
	cron := &exec.Cmd{Path: "/usr/sbin/cron", Args: []string{"cron", "-f"}, Dir: "/", Env: []string{}, Stdout: &out, Stderr: &out, SysProcAttr: attr}
	if err := cron.Start(); err != nil {
		c.t.Fatalf("cron does not start: %v", err)
	}
	now := time.Now()
	ctx, cancel := context.WithDeadline(c.t.Context(), now.Truncate(time.Minute).Add(cronMinutes*time.Minute+15*time.Second))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- cron.Wait() }()
	select {
	case err := <-ended:
		c.t.Fatalf("cron ended by itself: %v\n%s", err, out.String())
	case <-ctx.Done():
	}
	c.must(cron.Process.Kill())
	if err := <-ended; err == nil {
		c.t.Error("cron ended by itself, at the last moment")
	}
	// The end of cron does not end its jobs. A tick that began may finish, so that its work is on record.
	for range 100 {
		if !c.busy() {
			return
		}
		time.Sleep(time.Second)
	}
	c.t.Fatalf("what cron started still runs\n%s", out.String())
}

// busy reports whether a process runs the cell's dbjobs.
func (c *cronCell) busy() bool {
	found, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is well-formed
	return slices.ContainsFunc(found, func(link string) bool {
		program, err := os.Readlink(link)
		return err == nil && program == c.program
	})
}

// mails returns the mails that cron sent, by recipient.
func (c *cronCell) mails() map[string][]string {
	c.t.Helper()
	files, err := os.ReadDir(filepath.Join(c.root, "mail"))
	c.must(err)
	to := map[string][]string{}
	for _, f := range files {
		text := c.text(filepath.Join(c.root, "mail", f.Name()))
		m := regexp.MustCompile(`(?m)^To: (.*)$`).FindStringSubmatch(text)
		if m == nil {
			c.t.Fatalf("a mail for nobody:\n%s", text)
		}
		to[m[1]] = append(to[m[1]], text)
	}
	return to
}
