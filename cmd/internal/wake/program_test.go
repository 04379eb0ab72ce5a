package wake

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// A program gets the instant, and of the variables none of dbjobs, because they may be secret.
func TestAlarmOfAProgram(t *testing.T) {
	dir := t.TempDir()
	ring, out := filepath.Join(dir, "ring"), filepath.Join(dir, "out")
	script := "#!/bin/sh\necho \"$@ $DBJOBS_DATABASE_URL$DBJOBS_CONFIG $SHOP\" >> '" + out + "'\ntest ! -e '" + dir + "/fail' || { echo it is full >&2; exit 3; }\n"
	if err := os.WriteFile(ring, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := New("exec:"+ring, Settings{Env: lookup(nil), Environ: append(os.Environ(), "DBJOBS_DATABASE_URL=geheim", "DBJOBS_CONFIG=/etc/it", "SHOP=shop"), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	if rings, err := a.Set(t.Context(), noon.Add(time.Hour)); err != nil || !rings.Equal(noon.Add(time.Hour)) {
		t.Errorf("%v, %v", rings, err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "2026-11-24T13:00:00Z  shop\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Set(t.Context(), noon); err == nil || !strings.Contains(err.Error(), "run ring: exit status 3: it is full") {
		t.Error(err)
	}
}

// A program that prints without an end takes no memory for it, and its alarm is set all the same.
func TestAlarmOfAProgramThatPrintsMuch(t *testing.T) {
	ring := filepath.Join(t.TempDir(), "ring")
	const printed = 64 << 20
	script := fmt.Sprintf("#!/bin/sh\nhead -c %d /dev/zero\nhead -c %[1]d /dev/zero >&2\n", printed)
	if err := os.WriteFile(ring, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := New("exec:"+ring, Settings{Env: lookup(nil), Environ: os.Environ(), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := a.Set(t.Context(), noon); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > printed/4 {
		t.Errorf("it took %d bytes of memory", took)
	}
}

// A program may leave a process in the background, such as one that sleeps until the instant. That process may hold the output
// open: the alarm is set all the same.
func TestAlarmOfAProgramInTheBackground(t *testing.T) {
	ring := filepath.Join(t.TempDir(), "ring")
	rings(t, ring, "while test -e '"+ring+"'; do sleep 0.1; done &")
}

// rings sets an alarm by a program, which is this script.
func rings(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := New("exec:"+path, Settings{Env: lookup(nil), Environ: os.Environ(), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Set(t.Context(), noon); err != nil {
		t.Error(err)
	}
}

// The tick that an alarm starts without a command line of the owner's sets the next alarm, of the same kind and name, as early.
// It gets none of the variables, so its command line says so.
func TestAlarmStartsATickThatSetsAlarms(t *testing.T) {
	for kind, lead := range map[string]time.Duration{"systemd": 0, "at": 90 * time.Second, "at:q": 0} {
		a, err := New(kind, Settings{Env: lookup(nil), Lead: lead, Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		want := " tick --quiet --wake " + kind
		if lead > 0 {
			want += " --wake-lead 1m30s"
		}
		starts := ""
		switch a := a.(type) {
		case *systemd:
			starts = a.starts
		case *atJobs:
			starts = a.starts
		}
		if !strings.HasPrefix(starts, "'/") || !strings.HasSuffix(starts, want) {
			t.Errorf("%s: starts %q, want the end %q", kind, starts, want)
		}
	}
	a, err := New("at", Settings{Env: lookup(map[string]string{nameVariable: "shop-2"}), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	if starts := a.(*atJobs).starts; !strings.HasPrefix(starts, "DBJOBS_WAKE_NAME=shop-2 '/") {
		t.Errorf("starts %q, and the next alarm has another name", starts)
	}
}

// A release is often replaced by moving a link, and the folder of the old one is removed. An alarm that was set before rings after
// that: it starts what the link then leads to, however the program was called by it.
func TestAlarmStartsTheProgramByItsLink(t *testing.T) {
	real, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, called := t.TempDir(), os.Args[0]
	t.Cleanup(func() { os.Args[0] = called })
	link := filepath.Join(dir, "linked-jobs")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for as, want := range map[string]string{link: link, "linked-jobs": link, "./linked-jobs": link, "sh": real, "not-there": real} {
		os.Args[0] = as
		a, err := New("systemd", Settings{Env: lookup(nil), Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		if starts := a.(*systemd).starts; !strings.HasPrefix(starts, "'"+want+"' tick ") {
			t.Errorf("called as %s: starts %s, want %s", as, starts, want)
		}
	}
}

// systemd expands ${NAME} in the arguments of a command, and takes $$ as one $: the shell gets the command line as it is set.
func TestSystemdLeavesVariablesToTheShell(t *testing.T) {
	a, err := New("systemd", Settings{Env: lookup(map[string]string{targetVariable: `n=a; exec dbjobs tick --name "${n:-b}-$$"`}), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	args := a.(*systemd).args(noon)
	if got, want := args[len(args)-1], `n=a; exec dbjobs tick --name "$${n:-b}-$$$$"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// ticksOf makes an alarm start ticks of one database.
func ticksOf(database string) func() (variables, args []string, err error) {
	return func() (variables, args []string, err error) { return nil, []string{"--database=" + database}, nil }
}

// Two databases of one installation may have something due at the same time, and a command line each. The timers of systemd are known
// by their names, so an alarm for one database must not have the name of an alarm for the other. Ticks of one database have one, also
// where they have other flags, as the alarm of a command has.
func TestSystemdHasAnAlarmForEachDatabase(t *testing.T) {
	name := func(database string, more ...string) string {
		tick := func() (variables, args []string, err error) {
			variables, args, err = ticksOf(database)()
			return variables, append(args, more...), err
		}
		a, err := New("systemd", Settings{Env: lookup(nil), Now: func() time.Time { return noon }, Tick: tick})
		if err != nil {
			t.Fatal(err)
		}
		args := a.(*systemd).args(noon)
		return args[slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "--unit=") })]
	}
	elsewhere, err := New("systemd", Settings{Env: lookup(nil), Now: func() time.Time { return noon }, Tick: func() (variables, args []string, err error) {
		return []string{"DBJOBS_CONFIG=/etc/other.yaml"}, []string{"--database=a"}, nil
	}})
	if err != nil || slices.Contains(elsewhere.(*systemd).args(noon), name("a")) {
		t.Errorf("%v: a database of that name in other settings has the same alarm", err)
	}
	if a, b, again := name("a"), name("b"), name("a", "--name=nightly", "--max-clock-skew=5m"); a == b || a != again {
		t.Errorf("the alarms for a, b and a with other flags are %s, %s and %s", a, b, again)
	}
}

// systemd reads the instant that the alarm writes as the same instant.
func TestAlarmOfSystemd(t *testing.T) {
	root := os.Getenv("DBJOBS_TEST_SYSTEMD")
	if root == "" {
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			storetest.Skip(t, "no DBJOBS_TEST_SYSTEMD names the root folder of a systemd-analyze; make test comes by one")
		}
		root = "/"
	}
	a, err := New("systemd", Settings{Env: lookup(map[string]string{targetVariable: "systemctl start --no-block dbjobs.service"}), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	args := a.(*systemd).args(noon.Add(25*time.Hour + 7*time.Second))
	i := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "--on-calendar=") })
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin/systemd-analyze"), "calendar", "--base-time=2026-11-24 12:00:00 UTC", strings.TrimPrefix(args[i], "--on-calendar="))
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	if root != "/" {
		var folders []string
		for _, pattern := range []string{"usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/systemd", "lib/*-linux-gnu"} {
			found, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are well-formed
			folders = append(folders, found...)
		}
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+strings.Join(folders, ":"))
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "2026-11-25 13:00:07 UTC") {
		t.Errorf("%v: %s", err, out)
	}
	if !slices.ContainsFunc(args, func(s string) bool { return strings.HasPrefix(s, "--unit=dbjobs-wake-20261125T130007Z") }) {
		t.Errorf("%q", args)
	}
}

// queueOfItsOwn puts the real at(1) on PATH, for this user and with the test's own queue. The program is built for one
// folder, which belongs to the machine, and which it opens as another user. libfakechroot shows it a folder of the test
// instead, and a copy of the program belongs to no other user. It returns the folder of the jobs.
func queueOfItsOwn(t *testing.T) (spool string) {
	t.Helper()
	root := os.Getenv("DBJOBS_TEST_AT")
	if root == "" {
		storetest.Skip(t, "no DBJOBS_TEST_AT names the root folder of at(1) and libfakechroot; make test comes by them")
	}
	program, err := os.ReadFile(filepath.Join(root, "usr/bin/at"))
	if err != nil {
		t.Fatal(err)
	}
	fake, _ := filepath.Glob(filepath.Join(root, "usr/lib/*/fakechroot/libfakechroot.so")) // the pattern is well-formed
	if len(fake) == 0 {
		t.Fatalf("there is no libfakechroot.so below %s", root)
	}
	dir, bin, users := t.TempDir(), t.TempDir(), ""
	if os.Getuid() == 0 {
		users = "root:x:0:0::/:/bin/sh\n"
	}
	for name, text := range map[string]string{
		"usr/bin/at": string(program), "var/spool/cron/atjobs/.SEQ": "0", "etc/at.deny": "", // no user is denied
		"etc/passwd": users + fmt.Sprintf("daemon:x:%d:%d::/:/bin/sh\n", os.Getuid(), os.Getgid()), // the user as whom it works
		"etc/group":  fmt.Sprintf("daemon:x:%d:\n", os.Getgid()),
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"at", "atq", "atrm"} {
		as := filepath.Join(dir, "usr/bin", name) // the program has the effect of its name
		script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD='%s' FAKECHROOT_BASE='%s' exec '%s' \"$@\"\n", fake[0], dir, as)
		if name != "at" {
			err = os.Symlink("at", as)
		}
		if err := errors.Join(err, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return filepath.Join(dir, "var/spool/cron/atjobs")
}

// jobsOfAt returns the numbers of the jobs of a minute.
func jobsOfAt(t *testing.T, minute time.Time) (list []string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "atq", "-q", "y", "-o", "%s").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[1] == fmt.Sprint(minute.Unix()) {
			list = append(list, f[0])
		}
	}
	return list
}

// An alarm of at(1) is known by its name and by what it starts. Another job of the minute in its queue is none, whatever its user
// says in it.
func TestAlarmOfAtBesideOtherJobs(t *testing.T) {
	spool := queueOfItsOwn(t)
	soon := time.Now().Add(300 * 24 * time.Hour).Truncate(time.Minute)
	set := func(name, database string) {
		t.Helper()
		a, err := New("at:y", Settings{Env: lookup(map[string]string{nameVariable: name}), Environ: os.Environ(), Now: time.Now, Tick: ticksOf(database)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Set(t.Context(), soon); err != nil {
			t.Fatal(err)
		}
	}
	other := exec.CommandContext(t.Context(), "at", "-q", "y", "-t", soon.UTC().Format("200601021504"))
	other.Env, other.Stdin = append(os.Environ(), "TZ=UTC"), strings.NewReader("echo true\n")
	if said, err := other.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for i, c := range []struct {
		name, database string
		jobs           int
	}{{"shop", "a", 2}, {"shop", "a", 2}, {"mail", "a", 3}, {"mail", "a", 3}, {"shop", "a", 3}, {"shop", "b", 4}, {"shop", "a", 4}, {"shop", "b", 4}} {
		set(c.name, c.database)
		if got := len(jobsOfAt(t, soon)); got != c.jobs {
			t.Errorf("%d. alarm: there are %d jobs, want %d", i+1, got, c.jobs)
		}
	}
	if os.Getuid() != 0 { // atq lists the jobs of all users to root only
		return
	}
	files, err := filepath.Glob(filepath.Join(spool, "y*"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if err := os.Chown(file, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	if set("shop", "a"); len(jobsOfAt(t, soon)) != 5 {
		t.Error("the job of another user counts as an alarm of root")
	}
}

// at(1) keeps one job for a minute, which starts the given program, with none of the variables of dbjobs. The folder in which the
// alarm is set may be gone then.
func TestAlarmOfAt(t *testing.T) {
	queueOfItsOwn(t)
	out := filepath.Join(t.TempDir(), "out")
	soon := time.Now().Add(300 * 24 * time.Hour).Truncate(time.Minute)
	a, err := New("at:y", Settings{Env: lookup(map[string]string{targetVariable: `echo "$DBJOBS_DATABASE_URL ${TZ-none}" > '` + out + `'`}),
		Environ: append(os.Environ(), "DBJOBS_DATABASE_URL=geheim", "TZ=Asia/Kathmandu"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	t.Chdir(folder)
	for range 3 {
		rings, err := a.Set(t.Context(), soon.Add(-30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if !rings.Equal(soon) {
			t.Fatalf("%v, want %v", rings, soon)
		}
	}
	list := jobsOfAt(t, soon)
	if len(list) != 1 {
		t.Fatalf("the jobs are %v", list)
	}
	script, err := exec.CommandContext(t.Context(), "at", "-c", list[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh")
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(string(script))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != " Asia/Kathmandu\n" {
		t.Errorf("it printed %q, %v", got, err)
	}
}
