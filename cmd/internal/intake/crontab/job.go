package crontab

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// macros are the words for times. The flags of cron's own table are kept: @hourly follows the clock like a line
// with a star.
var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *", "@every_minute": "* * * * *",
}

// job reads a line that is no setting. It sets Definition or Reason.
func (r *reader) job(item *intake.Item, text string) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		item.Reason = "The line is not UTF-8 text; correct its encoding, or write the job by hand."
		return
	}
	note := func(format string, args ...any) { item.Notes = append(item.Notes, fmt.Sprintf(format, args...)) }
	if rest, quiet := strings.CutPrefix(text, "-"); quiet && rest != "" && strings.ContainsAny(rest[:1], "*0123456789") {
		note("The - before the line, which stops some crons from logging it, is left out.")
		text = rest
	}
	j := &store.Job{}
	rest, ok := r.when(j, item, text)
	if !ok {
		return
	}
	if rest, ok = r.user(j, item, rest); !ok {
		return
	}
	rest = r.flags(j, rest, note)
	if strings.TrimSpace(rest) == "" {
		item.Reason = "There is no command; nothing is lost."
		return
	}
	step, err := r.step(rest, note)
	if err != nil {
		item.Reason = err.Error()
		return
	}
	r.seen.program = true
	j.Steps = []store.Step{step}
	j.Name = r.name(rest)
	if err := r.delay(j, note); err != nil {
		note("%v, and is left out.", err)
	}
	r.mail(j, note)
	r.remarks(rest, note)
	item.Definition = j
}

// user gives the job the queue of the user that the line or its file names, and returns the command.
func (r *reader) user(j *store.Job, item *intake.Item, rest string) (command string, ok bool) {
	note := func(format string, args ...any) { item.Notes = append(item.Notes, fmt.Sprintf(format, args...)) }
	user, command := r.owner, rest
	if r.users {
		if user, command = cut(rest); command == "" {
			item.Reason = "Cron of a system expects a user and a command after the times, and there are not both; correct the line."
			return "", false
		}
		if name, class, more := strings.Cut(strings.ReplaceAll(user, "/", ":"), ":"); more {
			if name == "" {
				item.Reason = "Cron of a system expects a user after the times, and there is a path; correct the line, or import a user's crontab with --user-column=false."
				return "", false
			}
			note("It ran with the group or login class %s, which dbjobs cannot set.", class)
			user = name
		}
	}
	if user == "" {
		if first, _ := cut(rest); first == "root" {
			note("If root is the user, and no command, import again with --user-column.")
		}
		return rest, true
	}
	note("It ran as %s; see Users above.", user)
	j.Queue, r.seen.user, r.seen.owner = user, true, r.seen.owner || !r.users
	return command, true
}

// when reads the times that a line begins with, and returns the rest of the line.
func (r *reader) when(j *store.Job, item *intake.Item, text string) (rest string, ok bool) {
	zone := r.zoneOfLine(item)
	if text[0] == '@' {
		word, rest := cut(text)
		switch every, isEvery := macros[strings.ToLower(word)]; {
		case strings.EqualFold(word, "@reboot"):
			j.OnStartup, r.seen.reboot = true, true
			item.Notes = append(item.Notes, "Cron runs it when cron starts; here it runs once for each start that a tick reports, see @reboot above. Once a tick has seen it disabled, it runs at the next start after it is enabled.")
			return rest, true
		case strings.EqualFold(word, "@every_second"):
			j.Own = &store.Schedule{Rule: "every 1s", Zone: zone}
			item.Notes = append(item.Notes, "Each second needs dbjobs tick --for 55s.")
			return rest, true
		case isEvery:
			return rest, r.rule(j, item, [5]string(strings.Fields(every)), strings.ToLower(word), zone)
		case everySeconds.MatchString(word):
			if err := j.RepeatAfter.UnmarshalText([]byte(word[1:] + "s")); err == nil {
				return rest, true
			}
		}
		item.Reason = fmt.Sprintf("Cron knows no %.40q; write the job by hand, with a rule of its own.", word)
		return "", false
	}
	var fields [5]string
	rest = text
	for i := range fields {
		fields[i], rest = cut(rest)
		if fields[i] == "" {
			item.Reason = "Cron expects five times and a command, or NAME=value; this line has less. Correct it, or write the job by hand."
			return "", false
		}
	}
	return rest, r.rule(j, item, fields, "", zone)
}

// zoneOfLine returns the zone of a line.
func (r *reader) zoneOfLine(item *intake.Item) string {
	zone, given := r.value("CRON_TZ")
	if !given || zone == "" {
		return r.Zone
	}
	if zone == "Etc/UTC" {
		zone = "UTC"
	}
	if _, err := rules.Parse("every 1h", rules.Defaults{Zone: zone}); err != nil {
		item.Notes = append(item.Notes, fmt.Sprintf("CRON_TZ is %.60q, which is no zone (%v); the zone is that of the machine, as cron would take it.", zone, err))
		return r.Zone
	}
	if zone != r.Zone {
		item.Notes = append(item.Notes, fmt.Sprintf("CRON_TZ: the zone is %s. Cron of Debian and Ubuntu ignores CRON_TZ and has run it in %s; cronie heeds it.", zone, r.Zone))
	}
	return zone
}

// rule gives the job the rule of five fields. word is the macro that stood in place of them.
func (r *reader) rule(j *store.Job, item *intake.Item, fields [5]string, word, zone string) bool {
	c, err := intake.ReadCron(fields)
	if err != nil {
		item.Reason = sentence(err.Error()) + ". Most crons refuse such a line. Correct it, or write the job by hand."
		return false
	}
	own := &store.Schedule{Zone: zone}
	if own.Rule, err = c.Rule(fields); err != nil {
		item.Reason = sentence(err.Error()) + "; write the job by hand, with another rule."
		return false
	}
	note := func(format string, args ...any) { item.Notes = append(item.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case word == "@hourly":
		c.HourStar = true // by cron's own table
	case word == "@every_minute":
	case word != "":
	case own.Rule != strings.Join(fields[:], " "):
		note("The times are written as %s, which is the same.", own.Rule)
	}
	if word != "" && word != "@every_minute" {
		own.Rule = word
	}
	if c.Any {
		note("Cron picks the value for ~ anew each time that it reads the file; here it follows from the name of the job, and stays.")
	}
	day, week := fields[2], fields[4]
	switch restricted := day != "*" && week != "*"; {
	case restricted && (c.DayStar || c.WeekdayStar):
		note("It runs on days that match both %s and %s, here as with cron, since one of them begins with a star.", day, week)
	case restricted:
		note("It runs on days that match %s, and on days that match %s, here as with cron: either is enough.", day, week)
	}
	if overSunday.MatchString(week) {
		note("To cron of Debian and Ubuntu, a range such as %s has no day; here it ends with Sunday, as for cronie.", week)
	}
	model := intake.Vixie
	if zone != r.Zone {
		model = intake.Plain
	}
	nights, err := c.Nights(own, model, "cron", r.From)
	if err != nil {
		item.Reason = sentence(err.Error()) + "; write the job by hand, with another rule."
		return false
	}
	for _, night := range nights {
		note("%s", night)
	}
	j.Own = own
	return true
}

// overSunday matches a range of weekdays that ends with Sunday as the first day of the week.
var overSunday = lazyregexp.New(`(?i)\b([1-7]|mon|tue|wed|thu|fri|sat)-(0|sun)\b`)

// flags removes the flags that the crons of OpenBSD and FreeBSD read before the command.
func (r *reader) flags(j *store.Job, command string, note func(string, ...any)) string {
	for {
		word, rest := cut(command)
		switch word {
		case "-n":
			note("-n, no mail where it succeeds, is left out: here a mail tells failures only.")
		case "-q":
			note("-q, no log line, is left out.")
		case "-s":
			j.Overlap = store.OverlapSkip
			note("-s, one at a time, is overlap: skip.")
		default:
			return command
		}
		command = rest
	}
}

var (
	heading      = lazyregexp.New(`(?i)\bdow\b|day of (the )?(week|month)|^[-=*_. |+]+$|^m\s+h\b|minute.*hour`)
	oldLine      = lazyregexp.New(`^(@[a-z]+|[-*\d,/]+\s+[-*\d,/]+\s+[-*\d,/]+\s+\S+\s+\S+)\s`)
	everySeconds = lazyregexp.New(`^@[1-9][0-9]{0,6}$`)
	wrappers     = map[string]bool{"sudo": true, "nice": true, "ionice": true, "env": true, "test": true, "[": true, "command": true, "exec": true,
		"chronic": true, "cronic": true, "flock": true, "timeout": true, "nohup": true, "time": true, "sh": true, "bash": true, "/bin/sh": true, "/bin/bash": true,
		"perl": true, "python": true, "python3": true, "php": true, "ruby": true, "cd": true, "if": true, "then": true, "run-parts": true, "sleep": true, "true": true, "root": true}
)

// name makes a name for a job, from the comment directly above the line, or from the program.
func (r *reader) name(command string) string {
	if n := len(r.above); n > 0 && n <= 3 {
		text := r.above[0]
		if !heading.MatchString(text) && !oldLine.MatchString(text) && !assignment.MatchString(text) && len(strings.Fields(text)) <= 10 {
			if name := intake.Slug(text); name != "" {
				return name
			}
		}
	}
	return programName(command)
}

// guard is a test, or a wait, that comes before the work: "test -x PROGRAM &&".
var guard = lazyregexp.New(`^\s*(if\s+)?(test|\[|command|sleep|perl -e|python3? -c)\s('[^']*'|"[^"]*"|[^;&|'"])*(&&|\|\||;\s*then|;)\s*`)

// programName makes a name from the program of a command, without wrappers in front of it.
func programName(command string) string {
	for whole := command; ; {
		at := guard.FindStringIndex(command)
		if at == nil {
			break
		}
		if command = command[at[1]:]; strings.TrimSpace(command) == "" {
			command = whole
			break
		}
	}
	first := ""
	for _, word := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t;&|()<>\"'`$", r) }) {
		base := strings.TrimSuffix(strings.TrimSuffix(path.Base(word), ".sh"), ".py")
		if first == "" {
			first = base
		}
		if wrappers[word] || wrappers[base] || strings.HasPrefix(word, "-") || strings.ContainsAny(word, "=%") ||
			strings.HasSuffix(word, "/") || strings.Trim(base, "0123456789.") == "" || strings.Contains(word, ".lock") {
			if base == "run-parts" {
				first = base
			}
			continue
		}
		if name := intake.Slug(base); name != "" {
			return name
		}
	}
	return intake.Slug(first)
}

// cut returns the first word of a text, and what follows it.
func cut(text string) (word, rest string) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimLeft(text[i:], " \t")
}

// sentence returns the text with a capital letter at its beginning.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
