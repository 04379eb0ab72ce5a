// Package crontab reads crontabs: those of users, and those of the system, whose lines name a user.
package crontab

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Options has what a crontab does not say.
type Options struct {
	Name  string    // what is read: a path, or "standard input"
	Zone  string    // the zone in which cron reads times
	Users string    // UsersYes, UsersNo, or UsersGuess
	From  time.Time // clock changes are examined for a year from here
}

// Whether lines have a sixth field, which names a user.
const (
	UsersGuess = "guess"
	UsersYes   = "yes"
	UsersNo    = "no"
)

// reader is a crontab that is being read.
type reader struct {
	Options
	result    *intake.Result
	users     bool       // each line names a user
	owner     string     // whose crontab it is, if the lines do not say it; empty: not known
	variables []variable // as cron passes them to the lines below
	above     []string   // comments directly above
	mails     map[string]string
	settings  int
	prose     int
	seen      traits
}

// traits are properties of at least one line, each of which needs a remark for all jobs.
type traits struct{ program, reboot, user, owner bool }

func (t *traits) add(more traits) {
	t.program, t.reboot = t.program || more.program, t.reboot || more.reboot
	t.user, t.owner = t.user || more.user, t.owner || more.owner
}

type variable struct{ name, value string }

var assignment = lazyregexp.New(`^(?:"([^"]*)"|'([^']*)'|([^\s="'#]+))\s*=\s*(.*)$`)

// Read reads a crontab. It does not fail: an item that it cannot use is in the result, with the reason.
func Read(text string, o Options) *intake.Result {
	r := newReader(o, map[string]string{})
	if ofUser(o.Name) {
		r.owner = filepath.Base(o.Name)
	}
	r.read(text)
	r.close()
	return r.result
}

func newReader(o Options, mails map[string]string) *reader {
	if o.Zone == "" {
		o.Zone = "UTC"
	}
	return &reader{Options: o, mails: mails, result: &intake.Result{Source: o.Name, Zone: o.Zone}}
}

// read reads all lines of a file.
func (r *reader) read(text string) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if r.users = r.Users == UsersYes || r.Users != UsersNo && hasUsers(r.Name, lines); r.users {
		r.owner = ""
	}
	for i, line := range lines {
		r.line(i+1, line)
	}
}

// close adds the remarks about the whole crontab.
func (r *reader) close() {
	r.result.Rest = fmt.Sprintf("%s, %s", counted(r.settings, "setting"), counted(r.prose, "comment and blank line"))
	r.head()
}

func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + strings.Replace(what, "comment and blank line", "comment or blank line", 1)
	case what == "comment and blank line":
		return fmt.Sprintf("%d comments and blank lines", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

var namesColumn = lazyregexp.New(`(?i)^#.*\b(dow|week)\b.*\buser(-?name)?\b\s+command`)

// usual are commands with which lines of a user often begin. Names that users have, too, are not among them.
var usual = []string{"bash", "cd", "curl", "echo", "env", "export", "find", "flock", "nice", "perl", "php", "python", "python3", "rm", "rsync",
	"ruby", "sh", "sleep", "sudo", "tar", "test", "timeout", "wget"}

// ofUser reports whether a file is the crontab of the user whose name it has. Cron keeps them in /var/spool/cron,
// /var/spool/cron/crontabs, /var/spool/cron/tabs, /var/cron/tabs or /etc/crontabs.
func ofUser(path string) bool {
	folder := filepath.Dir(path)
	switch filepath.Base(folder) {
	case "crontabs", "tabs":
		return true
	case "cron":
		return filepath.Base(filepath.Dir(folder)) == "spool"
	}
	return false
}

// hasUsers guesses whether lines name a user: by the path of the file, by the comment with which all of these
// files begin, or because root is no command. One line that names root in the crontab of a user is a mistake: if as
// many lines have a command there, no line names a user, or each command would lose its first word.
func hasUsers(name string, lines []string) bool {
	switch {
	case filepath.Base(filepath.Dir(name)) == "cron.d" || name == "/etc/crontab":
		return true
	case ofUser(name):
		return false
	}
	roots, commands := 0, 0
	for _, line := range lines {
		if namesColumn.MatchString(line) {
			return true
		}
		f, times := strings.Fields(line), 5
		if len(f) > 0 && f[0][0] == '@' {
			times = 1
		}
		switch {
		case len(f) <= times || !strings.ContainsAny(f[0][:1], "@*0123456789"):
		case f[times] == "root" && len(f) > times+1:
			roots++
		case strings.ContainsAny(f[times][:1], "/.~[{($\"'") || strings.Contains(f[times], "=") || slices.Contains(usual, f[times]):
			commands++
		}
	}
	return roots > commands
}

// line reads one line. It is exactly one of: blank, a comment, a setting, an item.
func (r *reader) line(n int, line string) {
	text, ended := strings.CutSuffix(line, "\n")
	text, carriage := strings.CutSuffix(text, "\r")
	text = strings.TrimLeft(text, " \t")
	switch {
	case strings.Trim(text, " \t\r") == "":
		r.prose++
		r.above = nil
		return
	case text[0] == '#':
		r.prose++
		r.above = append(r.above, strings.TrimSpace(strings.TrimLeft(text, "#")))
		return
	}
	if m := assignment.FindStringSubmatch(text); m != nil && !isTime(m[3]) {
		if value, ok := unquoted(m[4]); ok {
			r.settings++
			r.above = nil
			r.set(m[1]+m[2]+m[3], value)
			return
		}
	}
	item := intake.Item{Place: fmt.Sprintf("line %d", n), Source: text}
	if carriage {
		item.Notes = append(item.Notes, "The line ended with a carriage return, which cron takes for a part of the command; it is left out.")
	}
	if !ended {
		item.Notes = append(item.Notes, "The line has no line end: most crons refuse such a file, or leave out the line, so it may never have run.")
	}
	r.job(&item, text)
	r.result.Items = append(r.result.Items, item)
	r.above = nil
}

// isTime reports whether the first word of a line is more likely a minute than a name.
func isTime(word string) bool {
	return word != "" && strings.ContainsAny(word[:1], "*@~-0123456789")
}

// unquoted returns the value of a setting. A text with a quote that is not closed is no value.
func unquoted(text string) (string, bool) {
	text = strings.TrimRight(text, " \t\r")
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return text, true
	}
	if len(text) < 2 || text[len(text)-1] != text[0] || strings.IndexByte(text[1:], text[0]) != len(text)-2 {
		return "", false
	}
	return text[1 : len(text)-1], true
}

// set records a setting for the lines below.
func (r *reader) set(name, value string) {
	for i := range r.variables {
		if r.variables[i].name == name {
			r.variables[i].value = value
			return
		}
	}
	r.variables = append(r.variables, variable{name, value})
}

// value returns the value of a setting for this line.
func (r *reader) value(name string) (string, bool) {
	for _, v := range r.variables {
		if v.name == name {
			return v.value, true
		}
	}
	return "", false
}

// head adds the remarks that concern all jobs.
func (r *reader) head() {
	say := func(format string, args ...any) { r.result.Head = append(r.result.Head, fmt.Sprintf(format, args...)) }
	if r.result.Imported() == 0 {
		return
	}
	say("All jobs are disabled. To move one: take its line out of the crontab, delete disabled: true here, and apply. " +
		"(dbjobs job enable NAME does it until the next apply.)")
	if len(r.mails) > 0 {
		say("MAILTO: a job for each list of addresses sends the mails, by the mail server that the settings of the host name.")
	}
	say("Zone: cron reads times on the clock of its machine, taken as %s. If that is wrong, import again with --zone.", r.result.Zone)
	if r.seen.program {
		say("Overlap: cron starts a line also while its last run goes on. Here one run waits for the one before, and later " +
			"times are a recorded gap. As with cron: overlap: allow, with max_running.")
		say("Missed: cron forgets the times at which its machine was down. Here the latest one runs afterwards. As with cron: missed: skip.")
		say("Exit code: cron ignores it. Here any but 0 is a failed run.")
		say("Output: cron mails it. Here it is kept with the run (dbjobs run show), up to 16 KiB, and on: {failed: JOB} tells somebody.")
		say("Environment: as with cron, few variables. PATH is /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin where the " +
			"crontab sets none (cron: /usr/bin:/bin).")
		say("The settings of the host have to allow the programs that stand after shell and exec: /bin/sh for shell.")
	}
	if r.seen.user {
		say("Users: a program runs as the user of its tick. Each job here waits in a queue named after its user. Delete queue where the " +
			"tick is that user's. For each other user, start a worker by a line in /etc/crontab:")
		say("* * * * * USER dbjobs work --quiet --queue USER") // a line of its own, which can be copied
	}
	if r.seen.owner {
		say("A file whose lines name no user is taken as the crontab of the user whose name the file has. If it is not, delete queue.")
	}
	if r.seen.reboot {
		say("@reboot: the first tick that reports a start runs it. So that each tick reports it, write into the crontab:")
		say(`* * * * * dbjobs tick --startup-id "$(cat /proc/sys/kernel/random/boot_id)"`)
	}
}
