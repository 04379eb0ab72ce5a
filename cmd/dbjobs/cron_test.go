//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

const (
	cronMinutes = 3
	cronURLFile = "/etc/dbjobs/database-url" // of scripts/triggers/crontab
	cronLine    = "* * * * * /usr/local/bin/dbjobs tick --quiet\n"
)

const cronJobs = `
jobs:
  minutely: {rule: "* * * * *", missed: all, sql: INSERT INTO effects VALUES ('minutely'), retry: {attempts: 3, backoff: 1s}}
  often: {rule: every 10s, missed: all, sql: INSERT INTO effects VALUES ('often'), retry: {attempts: 3, backoff: 1s}}
  newest: {rule: every 15s, sql: SELECT 1}
  boot: {on_startup: true, sql: INSERT INTO effects VALUES ('boot')}
`

// cronLong outlasts the minute, so that its pass overlaps the next ones; SQLite has nothing that waits. It is due every
// other minute, or its pass would never find that nothing is left to do.
const cronLong = `
  long: {rule: "*/2 * * * *", sql: SELECT pg_sleep(70)}
`

// A crontabPart is the crontab of scripts/triggers for one database.
type crontabPart struct {
	name    string
	url     string // as cron's jobs reach it
	outside string // as this test reaches it
	lines   int    // that start at once each minute
	from    map[string]time.Time
}

// TestCron: a real cron, with the crontab of scripts/triggers, starts real ticks for three minutes. Each nominal time is
// decided, once, also where several passes start at once and one outlasts the minute; and there is a mail where
// something is wrong, and none elsewhere. It takes four minutes, so `make cron` runs it, which comes by a cron.
func TestCron(t *testing.T) {
	installed := os.Getenv("DBJOBS_TEST_CRON")
	if installed == "" {
		t.Skip("takes four minutes; run make cron")
	}
	t.Parallel()
	cell := newCronCell(t, installed)
	parts := []*crontabPart{
		{name: "sqlite", url: "sqlite:/data/one.db", lines: 1},
		{name: "sqlite-overlapping", url: "sqlite:/data/many.db", lines: 4},
		{name: "postgres", url: storetest.URL(t, "postgres"), lines: 1},
		{name: "postgres-overlapping", url: storetest.URL(t, "postgres"), lines: 4},
	}
	lines := cell.text("../../scripts/triggers/crontab")
	var crontab strings.Builder
	for _, p := range parts {
		p.outside = strings.Replace(p.url, "sqlite:/data", "sqlite:"+cell.root+"/data", 1)
		p.prepare(t, cell)
		part := strings.Replace(lines, cronURLFile, cell.secret(p.name, p.url), 1)
		crontab.WriteString(strings.Replace(part, cronLine, strings.Repeat(cronLine, p.lines), 1))
	}
	if n := strings.Count(crontab.String(), cronLine); n != 10 {
		t.Fatalf("scripts/triggers/crontab does not have the line %q: %d of it, want 10", cronLine, n)
	}
	// One that cannot reach its database.
	crontab.WriteString(strings.NewReplacer(cronURLFile, cell.secret("wrong", "postgres://jobs:geheim@127.0.0.1:9/app"), "ops@", "wrong@").Replace(lines))
	cell.run(crontab.String())

	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.check(t, cell) })
	}
	mails := cell.mails()
	if n := len(mails["ops@example.org"]); n != 0 {
		t.Errorf("%d mails though nothing was wrong; the first:\n%s", n, mails["ops@example.org"][0])
	}
	wrong := mails["wrong@example.org"]
	if len(wrong) < cronMinutes {
		t.Errorf("%d mails about a database that is out of reach, in %d minutes: %q", len(wrong), cronMinutes, mails)
	}
	for _, m := range wrong {
		if !strings.Contains(m, "127.0.0.1:9") || strings.Contains(m, "geheim") {
			t.Errorf("a mail that does not say what is wrong, or says the password:\n%s", m)
		}
	}
}

func (p *crontabPart) command(t *testing.T, cell *cronCell, args ...string) []byte {
	t.Helper()
	c := exec.Command(cell.program, args...)
	c.Env = []string{"DBJOBS_DATABASE_URL=" + p.outside}
	out, err := c.Output()
	if err != nil {
		t.Fatalf("dbjobs %q: %v\n%s", args, err, out)
	}
	return out
}

func (p *crontabPart) prepare(t *testing.T, cell *cronCell) {
	p.command(t, cell, "migrate")
	s, err := store.Open(t.Context(), p.outside, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := s.JobDB(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE effects (job text)"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	jobs := cronJobs
	if p.name == "postgres-overlapping" {
		jobs += cronLong
	}
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	p.command(t, cell, "apply", "-f", file)
	p.command(t, cell, "tick", "--quiet") // from here on there is something to decide
	p.from = map[string]time.Time{}
	for _, job := range []string{"minutely", "often", "newest"} {
		p.from[job] = p.job(t, cell, job).DecidedThrough
	}
	cell.own("data")
}

type cronJob struct {
	DecidedThrough time.Time `json:"decided_through"`
	Gaps           []struct {
		From, Through time.Time
		Reason        string
	}
}

func (p *crontabPart) job(t *testing.T, cell *cronCell, name string) (j cronJob) {
	t.Helper()
	if err := json.Unmarshal(p.command(t, cell, "job", "show", name, "--json"), &j); err != nil {
		t.Fatal(err)
	}
	return j
}

// check holds what was decided against the clock: all nominal times of these rules are known without the rule.
func (p *crontabPart) check(t *testing.T, cell *cronCell) {
	for name, every := range map[string]time.Duration{"minutely": time.Minute, "often": 10 * time.Second, "newest": 15 * time.Second} {
		j := p.job(t, cell, name)
		if d := j.DecidedThrough.Sub(p.from[name]); d < (cronMinutes-1)*time.Minute {
			t.Errorf("%s: decided for %s only: cron started too few ticks", name, d)
		}
		runs := p.runs(t, cell, name)
		times := 0
		for at := p.from[name].Truncate(every).Add(every); !at.After(j.DecidedThrough); at = at.Add(every) {
			times++
			n := 0
			for _, r := range runs {
				if r.ScheduledFor.Equal(at) {
					n++
				}
			}
			for _, g := range j.Gaps {
				if at.After(g.From) && !at.After(g.Through) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: %s was decided %d times, want once", name, at.Format(time.RFC3339), n)
			}
		}
		if name != "newest" && (len(runs) != times || len(j.Gaps) != 0) {
			t.Errorf("%s: %d runs and %d gaps for %d nominal times, of which all are to run", name, len(runs), len(j.Gaps), times)
		}
		for _, r := range runs {
			if r.State != store.Succeeded {
				t.Errorf("%s of %s: %s %s", name, r.ScheduledFor, r.State, r.Error)
			}
		}
		t.Logf("%s: %d nominal times, %d runs, %d gaps, decided through %s", name, times, len(runs), len(j.Gaps), j.DecidedThrough.Format(time.TimeOnly))
	}
	if n := len(p.runs(t, cell, "boot")); n != 1 {
		t.Errorf("the job of a start ran %d times, want once", n)
	}
	if p.name == "postgres-overlapping" {
		p.overlapped(t, cell)
	}
}

// overlapped: while the long job ran, other passes than its own went on.
func (p *crontabPart) overlapped(t *testing.T, cell *cronCell) {
	beside := 0
	for _, long := range p.runs(t, cell, "long") {
		for _, r := range p.runs(t, cell, "minutely") {
			if r.Holder != long.Holder && r.StartedAt.After(long.StartedAt) && r.StartedAt.Before(long.FinishedAt) {
				beside++
			}
		}
	}
	if beside == 0 {
		t.Error("no pass went on beside the one with the long job")
	}
}

func (p *crontabPart) runs(t *testing.T, cell *cronCell, job string) (runs []store.Run) {
	t.Helper()
	if err := json.Unmarshal(p.command(t, cell, "run", "list", "--job", job, "--limit", "1000", "--json"), &runs); err != nil {
		t.Fatal(err)
	}
	return runs
}

// A cronCell is a root folder that holds a cron, a shell, dbjobs, what these need, and nothing else: cron finds its own
// crontabs there only, and its mails stay inside. It needs root, or a kernel that lets users be root among themselves.
type cronCell struct {
	t         *testing.T
	root      string
	installed string // the root folder that cron is installed below
	program   string // dbjobs
	uid       int    // whose crontab it is
}

func newCronCell(t *testing.T, installed string) *cronCell {
	c := &cronCell{t: t, installed: installed, uid: 65534}
	if os.Geteuid() != 0 {
		c.uid = os.Geteuid() // is 0 inside
	}
	var err error
	// Not t.TempDir, whose parents are closed to the crontab's user.
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
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", c.program, ".") // as make build does
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
	user := "jobs:x:65534:65534::/home:/bin/sh\n"
	if os.Geteuid() != 0 {
		user = ""
	}
	c.write("etc/pam.d/cron", allow, 0o644)
	c.write("etc/passwd", "root:x:0:0::/home:/bin/sh\n"+user, 0o644)
	c.write("etc/group", "root:x:0:\njobs:x:65534:\n", 0o644)
	c.write("usr/sbin/sendmail", "#!/bin/sh\nexec /bin/cat >/mail/$$\n", 0o755)
	c.write("proc/sys/kernel/random/boot_id", c.text("/proc/sys/kernel/random/boot_id"), 0o644)
	null := filepath.Join(c.root, "dev/null")
	if syscall.Mknod(null, syscall.S_IFCHR|0o666, 1<<8|3) != nil { // not for everybody: a file serves as well
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

// own gives what is below a folder to the crontab's user.
func (c *cronCell) own(dir string) {
	c.t.Helper()
	if os.Geteuid() == 0 {
		c.must(filepath.WalkDir(filepath.Join(c.root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(path, c.uid, c.uid)
		}))
	}
}

var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// take copies a program, and the libraries that it needs, to where the loader looks for them.
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

// run has a cron until a few seconds after the last of the minutes, the first of which begins with the next one. What
// it has started by then is waited for.
func (c *cronCell) run(crontab string) {
	c.t.Helper()
	name := "jobs"
	attr := &syscall.SysProcAttr{Chroot: c.root, Setsid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		name = "root"
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	file := filepath.Join("var/spool/cron/crontabs", name)
	c.write(file, crontab, 0o600)
	c.own(file)
	var out bytes.Buffer
	cron := &exec.Cmd{Path: "/usr/sbin/cron", Args: []string{"cron", "-f"}, Dir: "/", Env: []string{}, Stdout: &out, Stderr: &out, SysProcAttr: attr}
	if err := cron.Start(); err != nil {
		c.t.Fatalf("cron does not start (it needs root, or user namespaces, which this kernel or container does not let have): %v", err)
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
	<-ended
	// Its jobs are not its children's end: a tick that began is let finish, so that what it did is on record.
	for range 100 {
		if !c.busy() {
			return
		}
		time.Sleep(time.Second)
	}
	c.t.Fatalf("what cron started still runs\n%s", out.String())
}

// busy tells whether a process runs the cell's dbjobs.
func (c *cronCell) busy() bool {
	found, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is well-formed
	return slices.ContainsFunc(found, func(link string) bool {
		program, err := os.Readlink(link)
		return err == nil && program == c.program
	})
}

// mails are those that cron sent, by whom they are for.
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
