package wake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// run runs a program with a text as its input, and returns its output.
func (s *settings) run(ctx context.Context, environ []string, input, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, complaint head
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, s.dir, strings.NewReader(input), &out, &complaint
	cmd.WaitDelay = time.Second // a process that it leaves in the background may hold the output open
	executor.KeepFiles()        // nor may it hold the lock of a flock around the tick, until the instant of the alarm
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		said := strings.Join(strings.Fields(complaint.String()), " ")
		if said != "" {
			said = fmt.Sprintf(": %.200s", said)
		}
		return "", fmt.Errorf("run %s: %w%s", filepath.Base(program), err, said)
	}
	return out.String(), nil
}

// head keeps the first megabyte of what a program prints: the list of atq is far shorter.
type head struct{ text bytes.Buffer }

func (h *head) Write(b []byte) (int, error) {
	h.text.Write(b[:min(len(b), 1<<20-h.text.Len())])
	return len(b), nil
}

func (h *head) String() string { return h.text.String() }

// others returns the variables of this process without those of dbjobs: some of them are secret, and the process
// that starts later has its own.
func (s *settings) others() []string {
	return slices.DeleteFunc(slices.Clone(s.Environ), func(entry string) bool { return strings.HasPrefix(entry, "DBJOBS_") })
}

// places returns the variables of this process that say where the files of its user are: the tick that an alarm starts reads the
// same settings of the host, and has the same embedded database.
func (s *settings) places() []string {
	return slices.DeleteFunc(slices.Clone(s.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains([]string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}, name)
	})
}

// command returns the command that an alarm starts on this host, in the form that a shell reads. The default is a
// tick of this program, and of then says which databases those are. It sets the next alarm, and learns that from its flags, because it gets none of the variables. There is
// no flag for the name.
func (s *settings) command() (string, error) {
	if s.of = s.target; s.target != "" {
		return s.target, nil
	}
	self, err := itself()
	if err != nil {
		return "", fmt.Errorf("%s is not set, and this program does not know its path: %w", targetVariable, err)
	}
	var variables, args []string
	if s.Tick != nil {
		if variables, args, err = s.Tick(); err != nil {
			return "", err
		}
	}
	line := quote(self) + " tick --quiet --wake " + s.kind
	if s.name != defaultName { // its letters need no quotes
		line = nameVariable + "=" + s.name + " " + line
	}
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		line = name + "=" + quote(value) + " " + line
		s.of += variable + "\n"
	}
	if s.Lead > 0 {
		line += " --wake-lead " + s.Lead.String()
	}
	for _, word := range args {
		line += " " + quote(word)
		if strings.HasPrefix(word, "--database=") {
			s.of += word + "\n"
		}
	}
	return line, nil
}

// itself returns the path of this program, with the links by which it was called: the system resolves them. An alarm rings after as
// much as a week. By then, a link may lead to another release, and the folder of this one may be gone.
func itself() (string, error) {
	real, err := os.Executable()
	if err != nil {
		return "", err
	}
	if called := asCalled(); isSame(real, called) { // the caller may have given it any name
		return called, nil
	}
	return real, nil
}

// asCalled returns the path by which this program was called, if there is one.
func asCalled() string {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return ""
	}
	return path
}

// isSame reports whether two paths lead to one file.
func isSame(one, other string) bool {
	a, err := os.Stat(one)
	b, missing := os.Stat(other)
	return err == nil && missing == nil && os.SameFile(a, b)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// program is a program of the user that sets the alarm. It gets the instant as its argument. Each pass calls it,
// so it has to remember which alarms it has set.
type program struct {
	*settings
	path string
}

func newProgram(s *settings, path string) (tick.Alarm, error) {
	if path == "" {
		return nil, errors.New("want exec:PROGRAM, with the path of the program that sets an alarm")
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	return &program{s, found}, nil
}

func (a *program) Set(ctx context.Context, at time.Time) (time.Time, error) {
	at = a.up(at, time.Second, 0)
	_, err := a.run(ctx, a.others(), "", a.path, at.Format(time.RFC3339))
	return at, err
}

// systemd sets transient timers, each with its own name. A timer is gone after it has started its command, and
// after a restart of the machine; then the safety trigger comes.
type systemd struct {
	*settings
	uid int // of the user whose manager keeps the timers; 0: that of the system does
}

func newSystemd(s *settings, argument string) (tick.Alarm, error) {
	err := noArgument(argument)
	if err == nil {
		s.starts, err = s.command()
	}
	return &systemd{s, os.Geteuid()}, err
}

func (a *systemd) args(at time.Time) []string {
	literal := strings.ReplaceAll(a.starts, "$", "$$") // the shell expands variables; systemd would do so first, and differently
	list := []string{"--quiet", "--collect", "--unit=" + a.alarm(at), "--description=A tick of dbjobs, for what is due then",
		"--on-calendar=" + at.Format("2006-01-02 15:04:05 UTC"), "--timer-property=AccuracySec=1s", "--timer-property=RemainAfterElapse=no"}
	for _, entry := range a.places() {
		list = append(list, "--setenv="+entry)
	}
	list = append(list, "/bin/sh", "-c", literal)
	if a.uid != 0 {
		list = slices.Insert(list, 0, "--user")
	}
	return list
}

// environ returns the variables for systemd-run. A crontab has none by which it finds the manager of the user: it then looks in the
// folder that systemd makes for each user.
func (a *systemd) environ() []string {
	environ := append(a.others(), "LC_ALL=C")
	set := func(name string) bool {
		return slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, name+"=") && entry != name+"=" })
	}
	if a.uid != 0 && !set("XDG_RUNTIME_DIR") && !set("DBUS_SESSION_BUS_ADDRESS") {
		environ = append(environ, fmt.Sprintf("XDG_RUNTIME_DIR=/run/user/%d", a.uid))
	}
	return environ
}

// loaded matches the message of systemd-run about a timer that already exists.
var loaded = lazyregexp.New(`already (loaded|exists)|was already`)

func (a *systemd) Set(ctx context.Context, at time.Time) (time.Time, error) {
	at = a.up(at, time.Second, time.Second) // a timer with a past time would never start
	_, err := a.run(ctx, a.environ(), "", "systemd-run", a.args(at)...)
	if err != nil && loaded.MatchString(err.Error()) {
		err = nil
	}
	return at, err
}

// atJobs sets jobs of at(1), in a queue of their own. They start at whole minutes.
type atJobs struct {
	*settings
	queue string
}

// atQueue is the queue if none is given. Jobs in queues with a small letter start at their time; those with a
// capital letter wait until the load falls.
const atQueue = "d"

var validLetter = lazyregexp.New(`^[a-z]$`)

func newAt(s *settings, queue string) (alarm tick.Alarm, err error) {
	if queue == "" {
		queue = atQueue
	}
	if !validLetter.MatchString(queue) {
		return nil, fmt.Errorf("found the queue %.20q, want a small letter", queue)
	}
	s.dir = s.home()
	s.starts, err = s.command()
	return &atJobs{s, queue}, err
}

// home returns the folder in which jobs of at begin: that of the user, as for the jobs of a crontab, or / if that cannot be entered. at
// takes the one in which it is called, and a job fails if that is gone then, as that of an old release.
func (s *settings) home() string {
	for _, entry := range s.Environ {
		dir, found := strings.CutPrefix(entry, "HOME=")
		if !found || !filepath.IsAbs(dir) {
			continue
		}
		if _, err := os.Stat(dir + "/."); err == nil { // a folder that this user may enter
			return dir
		}
	}
	return "/"
}

// Set adds a job, if this alarm has none. Two processes that look at the same time both add a job: then one tick finds nothing
// to do.
func (a *atJobs) Set(ctx context.Context, at time.Time) (time.Time, error) {
	at = a.up(at, time.Minute, 0)
	// at keeps the variables of its caller in a file. TZ is for the time on its command line.
	environ, zone := append(a.places(), "TZ=UTC", "LC_ALL=C"), "unset TZ"
	for _, entry := range a.others() {
		switch name, value, _ := strings.Cut(entry, "="); name {
		case "PATH", "USER", "LOGNAME", "SHELL":
			environ = append(environ, entry)
		case "TZ":
			zone = "TZ=" + quote(value)
		}
	}
	if set, err := a.isSet(ctx, environ, at); set || err != nil {
		return at, err
	}
	_, err := a.run(ctx, environ, a.mark(at)+zone+"\nunset LC_ALL\n"+a.starts+"\n", "at", "-q", a.queue, "-t", at.Format(atMinute))
	return at, err
}

const atMinute = "200601021504"

// mark is the line by which the job of an alarm is known. To the shell it does nothing.
func (a *atJobs) mark(at time.Time) string { return ": " + a.alarm(at) + "\n" }

// isSet reports whether the queue has the job of an alarm. Others may have jobs in the same minute; root sees those of all
// users, who may write into them what they like. A job that cannot be shown has begun, or is none of ours.
func (a *atJobs) isSet(ctx context.Context, environ []string, at time.Time) (bool, error) {
	list, err := a.run(ctx, environ, "", "atq", "-q", a.queue, "-o", "%Y%m%d%H%M")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(list) {
		f := strings.Fields(line) // its number, minute, queue and user
		if len(f) < 2 || f[1] != at.Format(atMinute) || os.Geteuid() == 0 && f[len(f)-1] != "root" {
			continue
		}
		if text, err := a.run(ctx, environ, "", "at", "-c", f[0]); err == nil && strings.Contains(text, "\n"+a.mark(at)) {
			return true, nil
		}
	}
	return false, nil
}
