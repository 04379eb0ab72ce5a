package crontab

import (
	"errors"
	"fmt"
	"net/mail"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// cronsOwn are settings that cron itself reads.
var cronsOwn = map[string]bool{
	"SHELL": true, "MAILTO": true, "MAILFROM": true, "CRON_TZ": true, "RANDOM_DELAY": true, "LOGNAME": true, "USER": true, "HOME": true,
	"CONTENT_TYPE": true, "CONTENT_TRANSFER_ENCODING": true, "CRON_DISABLE_MAIL": true,
}

// step makes the step of a command.
func (r *reader) step(command string, note func(string, ...any)) (store.Step, error) {
	script, input, piped := unescaped(command)
	v := executor.ProgramSpec{Env: map[string]string{}}
	var before []string // variables that the shell sets itself
	early := false      // one of them has to be there when the shell starts
	for _, variable := range r.variables {
		name, value := variable.name, variable.value
		switch {
		case name == "HOME":
			if !filepath.IsAbs(value) || filepath.Clean(value) != value {
				note("HOME is %.80q, which is no absolute path, and is left out.", value)
				continue
			}
			v.Env[name], v.Dir = value, value
		case cronsOwn[name]:
		case !shellName.MatchString(name):
			note("The variable %.40q is left out: no shell has one of that name.", name)
		case executor.CheckVariable(name) != nil || strings.Contains(value, "${"): // env would read it as a fact
			if strings.HasPrefix(name, "DBJOBS_") {
				note("The variable %s is left out: those that begin with DBJOBS_ are dbjobs' own.", name)
				continue
			}
			if strings.Contains(value, "$") {
				note("Cron does not expand the $ in %s=%s, and neither does this.", name, value)
			}
			before, early = append(before, name+"="+intake.Verbatim(value), "export "+name), early || readAtStart[name]
		default:
			if strings.Contains(value, "$") {
				note("Cron does not expand the $ in %s=%s, and neither does this.", name, value)
			}
			v.Env[name] = value
		}
	}
	if _, given := r.value("TZ"); given {
		note("TZ is a variable of the program; it does not move the times of the line, here as with cron of Debian and cronie.")
	}
	if piped {
		note("The text after %% was the input of the command, with a new line for each %%; it is a here-document now.")
		before = append(fed(input), before...)
	} else if script != command {
		note("A %% was written as \\%%, as cron demands; here it is plain.")
	}
	if strings.Contains(script, `\\`) {
		note(`Cron of Debian and Ubuntu makes one backslash of two, other crons do not. Here they stay two, as the line has them.`)
	}
	text := strings.Join(append(slices.Clone(before), script), "\n")
	shell, _ := r.value("SHELL")
	switch {
	case shell == "" || shell == "/bin/sh":
	case !filepath.IsAbs(shell) || filepath.Clean(shell) != shell:
		return store.Step{}, fmt.Errorf("SHELL is %.80q, and no absolute path; correct it in the crontab", shell)
	case len(before) > 0 && (early || !likeSh[filepath.Base(shell)]): // /bin/sh prepares what that shell needs before it starts, or writes in another way
		text = strings.Join(append(before, "exec "+intake.Verbatim(shell)+" -c "+intake.Verbatim(script)), "\n")
	case strings.Contains(text, "${"): // exec would read it as a fact
		text = "exec " + intake.Verbatim(shell) + " -c " + intake.Verbatim(text)
	default:
		v.Run = []string{shell, "-c", text}
		return intake.Program("exec", v), nil
	}
	text, remark := intake.WithoutFacts(text)
	if remark != "" {
		note("%s", remark)
	}
	v.Run = []string{text}
	return intake.Program("shell", v), nil
}

// likeSh has the shells that read variables and here-documents as /bin/sh does.
var likeSh = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "ksh": true, "mksh": true, "zsh": true}

// readAtStart has variables that a shell reads when it starts: for it, they are too late in its own text.
var readAtStart = map[string]bool{"BASH_ENV": true, "ENV": true, "ZDOTDIR": true, "SHELLOPTS": true, "BASHOPTS": true}

var shellName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// unescaped divides a command at the first % without a backslash. The text after it is the input of the command, in
// which each further % is a line end. In the command, a backslash that itself follows a backslash leaves a % as it is; in
// the input, each backslash before a % escapes it.
func unescaped(command string) (script, input string, piped bool) {
	var b strings.Builder
	for i := 0; i < len(command); i++ {
		c, next := command[i], byte(0)
		if i+1 < len(command) {
			next = command[i+1]
		}
		switch {
		case c == '\\' && next == '%':
			b.WriteByte('%')
			i++
		case c == '\\' && next == '\\' && !piped:
			b.WriteString(`\\`)
			i++
		case c == '%' && !piped:
			script, piped = b.String(), true
			b.Reset()
		case c == '%':
			b.WriteByte('\n')
		default:
			b.WriteByte(c)
		}
	}
	if !piped {
		return b.String(), "", false
	}
	return script, b.String(), true
}

// fed returns the lines of a script that give the lines after them a text as their input.
func fed(input string) []string {
	if input == "" {
		return []string{"exec </dev/null"}
	}
	end := "INPUT"
	for strings.Contains("\n"+input+"\n", "\n"+end+"\n") {
		end += "_"
	}
	return []string{"exec <<'" + end + "'", strings.TrimSuffix(input, "\n"), end}
}

// mail gives the job the hook for MAILTO, and says what differs.
func (r *reader) mail(j *store.Job, note func(string, ...any)) {
	to, given := r.value("MAILTO")
	switch to = strings.TrimSpace(to); {
	case !given:
		return
	case to == "":
		note("MAILTO was empty: nobody got a mail, and nobody gets one here.")
		return
	}
	var list []string
	for one := range strings.FieldsFuncSeq(to, func(r rune) bool { return r == ',' || r == ' ' }) {
		if _, err := mail.ParseAddress(one); err != nil || strings.Contains(one, "${") {
			note("MAILTO was %s, and %s is no address with a domain: dbjobs mails it nothing.", to, one)
			continue
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		note("Give the job a hook: on: {failed: JOB}.")
		return
	}
	all := strings.Join(list, ", ")
	note("MAILTO: %s gets a mail when a run has failed, not of each output.", all)
	j.On.Failed = r.hook(all, list)
}

// hook returns the job that sends mail to a list of addresses.
func (r *reader) hook(key string, list []string) string {
	if name := r.mails[key]; name != "" {
		return name
	}
	name := intake.Slug("mail " + strings.Join(list, " "))
	for n, first := 2, name; taken(r.mails, name); n++ {
		name = first + "-" + strconv.Itoa(n)
	}
	r.mails[key] = name
	v := executor.MailSpec{To: list, Subject: "${args.job}: ${args.event}", Text: "${args.error}\nrun ${args.run_id} of ${args.scheduled_for}"}
	r.result.Hooks = append(r.result.Hooks, store.Job{Name: name, Steps: []store.Step{intake.Mail(v)}})
	return name
}

func taken(names map[string]string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

var thrownAway = lazyregexp.New(`(&>|>&|>>?)\s*/dev/null`)

// remarks says what works differently here, in the command and in its settings.
func (r *reader) remarks(command string, note func(string, ...any)) {
	if thrownAway.MatchString(command) && (strings.Contains(command, "2>") || strings.Contains(command, "&>") || strings.Contains(command, ">&")) {
		note("It throws its output away, so a failed run has no more than its exit code.")
	}
	if strings.Contains(command, "flock") {
		note("dbjobs starts no two runs of this job at a time; flock is needed only against others, and a lock that it cannot get is a failed run.")
	}
	if strings.Contains(command, "anacron") {
		note("Where anacron is installed the line does nothing; anacron's own jobs are not in this file.")
	} else if strings.Contains(command, "run-parts") {
		note("The scripts of that folder stay one job; the first that fails fails the run.")
	}
	for _, name := range []string{"LOGNAME", "USER"} {
		if _, given := r.value(name); given {
			note("%s cannot be set, here as with cron: it is the user of the tick.", name)
		}
	}
}

// delay gives the job the jitter that RANDOM_DELAY asks for.
func (r *reader) delay(j *store.Job, note func(string, ...any)) error {
	text, given := r.value("RANDOM_DELAY")
	if !given {
		return nil
	}
	minutes, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || minutes < 0 || minutes > 60*24 {
		return errors.New("RANDOM_DELAY is no number of minutes")
	}
	if minutes > 0 {
		j.Jitter = store.Duration(time.Duration(minutes) * time.Minute)
		note("RANDOM_DELAY=%d: jitter is the same for one time on all hosts; cronie draws it when it reads the file. Debian's cron ignores it.", minutes)
	}
	return nil
}
