package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/nearest"
	"github.com/dbjobs/dbjobs/tick"
)

// The exit codes, which scripts and monitors rely on.
const (
	exitDone        = 0
	exitFailed      = 1 // the command failed, or the pass of a tick
	exitUsage       = 2 // usage or bad input
	exitDiffers     = 2 // the answer of diff, for which a mistake is exitFailed; check has the codes of report.Level
	exitJobFailed   = 3 // done, but a job failed (tick --fail-on-job-error, run-now --wait), or import or export left something out
	exitSchema      = 4 // this program cannot use the version of the schema
	exitDatabase    = 5 // the database is unreachable, not writable, or gives the login too few rights
	exitInterrupted = 130
)

// usageError is bad input: what is wrong, and what to do about it.
type usageError struct{ problem, hint string }

func (e *usageError) Error() string {
	if e.hint == "" {
		return e.problem
	}
	return e.problem + "; " + e.hint
}

func badInput(format string, args ...any) error {
	return &usageError{problem: fmt.Sprintf(format, args...)}
}

var errJobFailed = errors.New("a job failed")

// errInDoubt is said beside an error after which nobody knows whether the change of a command is done.
var errInDoubt = errors.New("the change was sent, and no answer came: it may be done, or not; look before you repeat the command")

// exitCode is the only place that turns errors into exit codes.
func exitCode(ctx context.Context, err error) int {
	is := func(targets ...error) bool { return isOf(err, targets) }
	if v, ok := errors.AsType[verdict](err); ok {
		return int(v)
	}
	if s, ok := errors.AsType[*severalError](err); ok {
		return s.code
	}
	_, badUsage := errors.AsType[*usageError](err)
	_, badManifest := errors.AsType[*manifest.Error](err)
	_, badField := errors.AsType[*store.FieldError](err)
	_, badURL := errors.AsType[*store.URLError](err)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(ctx.Err(), context.Canceled): // the deadline of an invocation is no interruption
		return exitInterrupted
	case badUsage, badManifest, badField, badURL, is(store.ErrNotFound, store.ErrExists, store.ErrSeveral):
		return exitUsage
	case is(errDiffers):
		return exitDiffers
	case only(err, errJobFailed, errLeftOut): // what comes beside it, such as a full disk, is worse
		return exitJobFailed
	case is(store.ErrSchema):
		return exitSchema
	case is(store.ErrUnreachable, store.ErrReadOnly, store.ErrDenied):
		return exitDatabase
	}
	return exitFailed
}

func isOf(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}

// only reports whether an error says one of these, and nothing else.
func only(err error, targets ...error) bool {
	return !slices.ContainsFunc(each(err), func(e error) bool { return !isOf(e, targets) })
}

// exitCode returns the exit code of the command line. If 2 is an answer of the command, a mistake has another code, and so has a
// failure: a script must be able to tell them from an answer. For diff it is 1, as for the program diff and the plans of other
// tools; for check it is 3, as for other plugins of monitors.
func (c *cli) exitCode(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	if c.ran == nil || code != exitUsage && code != exitFailed {
		return code
	}
	_, judged := errors.AsType[verdict](err)
	if other, marked := strconv.Atoi(c.ran.Annotations[mistakeCode]); marked == nil && !judged && !errors.Is(err, errDiffers) {
		return other
	}
	return code
}

// complain prints the error, one line for each problem. No line holds a password.
func (c *cli) complain(code int, err error) {
	if c.told || code == exitDone {
		return
	}
	for _, line := range c.explain(code, err) {
		c.tell(slog.LevelError, "%s", line)
	}
}

// explain returns the lines of an error, one for each problem.
func (c *cli) explain(code int, err error) []string {
	doubt := errors.Is(err, store.ErrInDoubt) && c.ran != nil && rings(c.ran)           // a pass that is repeated does no harm
	if _, told := errors.AsType[*severalError](err); code == exitInterrupted && !told { // each pass of several has said this of itself
		err = errors.Join(errInterrupted, leftOpen(err))
	}
	if doubt {
		err = errors.Join(err, errInDoubt)
	}
	where := ""
	if c.db.URL != "" && (code == exitDatabase || code == exitSchema) && (c.chosen == nil || c.chosen.name != c.db.Display()) {
		where = c.db.Display() + ": "
	}
	var lines []string
	for _, e := range each(err) {
		if m, ok := errors.AsType[*manifest.Error](e); ok {
			for _, p := range m.Problems {
				lines = append(lines, p.String())
			}
			continue
		}
		if line := report.Line(c.scrub(where + e.Error())); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// leftOpen returns those of the errors that say what an interrupted pass has left, the runs that still show as running and the
// alarm that is not set, or that the change of an interrupted command is done.
func leftOpen(err error) error {
	return errors.Join(slices.DeleteFunc(each(err), func(e error) bool {
		_, running := errors.AsType[*tick.UnendedError](e)
		_, unset := errors.AsType[*tick.UnsetAlarmError](e)
		return !running && !unset && !errors.Is(e, errChanged)
	})...)
}

// each returns the errors that were joined. An error that wraps several errors, but has a text of its own,
// counts as one.
func each(err error) (list []error) {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(several.Unwrap()...).Error() {
		return []error{err}
	}
	for _, e := range several.Unwrap() {
		list = append(list, each(e)...)
	}
	return list
}

// say writes one message to standard error.
func (c *cli) say(format string, args ...any) { c.tell(slog.LevelInfo, format, args...) }

// tell writes one message to standard error. The level shows only where the log format has levels.
func (c *cli) tell(level slog.Level, format string, args ...any) {
	text := report.Line(c.scrub(fmt.Sprintf(format, args...)))
	if c.chosen != nil {
		text = c.chosen.name + ": " + text
	}
	if c.logFormat == logs.Text {
		fmt.Fprintf(c.stderr, "dbjobs: %s\n", text)
		return
	}
	c.logger(c.logFormat, slog.LevelInfo).LogAttrs(context.Background(), level, text, c.invocation...)
}

// misused explains a command line that led to no command.
func (c *cli) misused(root *cobra.Command, args []string, err error) error {
	if _, ok := errors.AsType[*usageError](err); !ok {
		err = &usageError{problem: err.Error()}
	}
	e, _ := errors.AsType[*usageError](err)
	c.logFormat = c.formatAnyway(root.PersistentFlags().Lookup("log-format"))
	cmd, rest, findErr := root.Find(args)
	if findErr != nil {
		cmd, rest = root, args
	}
	if cmd.HasSubCommands() { // a flag of a command that does not exist is not the problem
		if names := words(cmd, rest); len(names) > 0 {
			return unknownCommand(cmd, names)
		}
	}
	if e.hint == "" {
		e.hint = unknownFlagHint(cmd, e.problem)
	}
	return e
}

// formatAnyway is the log format of a command line whose flags and variables were not all read: what the flag or the
// variable says, if there is such a format.
func (c *cli) formatAnyway(f *pflag.Flag) string {
	format := c.logFormat
	if value, _ := c.env(flagVariables[f.Name]); value != "" && !f.Changed {
		format = value
	}
	if logs.Check(format) != nil {
		return logs.Text
	}
	return format
}

// words returns the arguments that are neither flags nor values of flags. What follows a flag that
// does not exist counts as its value only if it is a URL.
func words(cmd *cobra.Command, args []string) (list []string) {
	flagOf := func(arg string) *pflag.Flag {
		if name, long := strings.CutPrefix(arg, "--"); long {
			return cmd.Flag(name)
		}
		f := cmd.Flags().ShorthandLookup(arg[len(arg)-1:])
		if f == nil {
			f = cmd.InheritedFlags().ShorthandLookup(arg[len(arg)-1:])
		}
		return f
	}
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return append(list, args[i+1:]...)
		case len(arg) < 2 || arg[0] != '-':
			list = append(list, arg)
		case strings.Contains(arg, "="):
		default:
			f := flagOf(arg)
			takes := f != nil && f.NoOptDefVal == "" || f == nil && i+1 < len(args) && strings.Contains(args[i+1], "://")
			if takes {
				i++
			}
		}
	}
	return list
}

// unknownCommand is the error for a group g with a command that it does not have, or with none.
func unknownCommand(g *cobra.Command, args []string) error {
	var names []string
	for _, sub := range g.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	e := &usageError{problem: g.CommandPath() + " needs a command", hint: "one of " + strings.Join(names, ", ")}
	if len(args) > 0 {
		e.problem = fmt.Sprintf("unknown command %s for %s", shown(args[0]), g.CommandPath())
		if own, all := commandsMeant(g, args[0]); own != "" {
			e.hint = "did you mean " + own + "?"
		} else if all := append(commandsNamed(args[0]), all...); len(all) > 0 {
			e.hint = "did you mean " + strings.Join(all, " or ") + "?"
		} else if n := nearest.To(args[0], names); n != "" {
			e.hint = "did you mean " + n + "?"
		}
	}
	return e
}

// otherCommands has the words of other programs, each with the commands here that do the same.
var otherCommands = []struct{ words, commands []string }{
	{[]string{"run", "start", "trigger", "execute"}, []string{"job run-now"}},
	{[]string{"delete", "del", "rm", "drop", "unschedule"}, []string{"job remove", "schedule remove", "calendar remove"}},
	{[]string{"remove", "delete", "del", "rm"}, []string{"job step drop", "job schedule drop"}},
	{[]string{"edit", "update", "modify", "change", "set"}, []string{"job alter", "schedule alter", "job step alter"}},
	{[]string{"add", "new"}, []string{"job create", "schedule create", "calendar import"}},
	{[]string{"create", "new"}, []string{"job step add", "job schedule add"}},
	{[]string{"stop", "kill", "terminate"}, []string{"run cancel", "job abort"}},
	{[]string{"skip"}, []string{"job skip-next"}},
	{[]string{"rerun", "restart"}, []string{"run retry"}},
	{[]string{"unpause"}, []string{"job resume", "schedule resume"}},
	{[]string{"logs", "log", "output"}, []string{"run show"}},
	{[]string{"ls"}, []string{"job list", "run list", "schedule list", "calendar list"}},
	{[]string{"describe", "info"}, []string{"job show", "run show", "schedule show", "calendar show"}},
	{[]string{"validate", "plan"}, []string{"diff"}},
	{[]string{"preview", "forecast"}, []string{"simulate"}},
	{[]string{"init"}, []string{"migrate"}},
}

// commandsMeant returns the command of a group that does what another program, or another group, calls by a word. If the
// group has none, it returns the commands of others, but not those for a part of a job.
func commandsMeant(g *cobra.Command, word string) (own string, others []string) {
	for _, o := range otherCommands {
		if !slices.Contains(o.words, word) {
			continue
		}
		for _, command := range o.commands {
			path := g.Root().Name() + " " + command
			if name, found := strings.CutPrefix(path, g.CommandPath()+" "); found && !strings.Contains(name, " ") {
				return name, nil
			}
			if strings.Count(command, " ") < 2 {
				others = append(others, path)
			}
		}
	}
	return "", others
}

// commandsNamed returns the commands with a name, whatever group they are in. They are made for that: a command line makes
// only the commands that its words name.
func commandsNamed(name string) (list []string) {
	all := newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false }).root()
	commands := all.Commands()
	for _, group := range all.Commands() {
		commands = append(commands, group.Commands()...)
	}
	for _, c := range commands {
		if c.Name() == name && !c.Hidden {
			list = append(list, c.CommandPath())
		}
	}
	return list
}

// severalFlags are keys of a file of jobs that are several flags of a command.
var severalFlags = map[string][]string{"retry": {"attempts", "backoff", "max-backoff"}, "keep": {"keep-runs", "keep-age"}}

// otherFlags has the words of other schedulers, each with the flags here that take the same.
var otherFlags = map[string][]string{
	"cron": {"rule"}, "crontab": {"rule"}, "rrule": {"rule"}, "every": {"rule"}, "interval": {"rule"}, "at": {"rule"}, "when": {"rule"},
	"timezone": {"zone"}, "time-zone": {"zone"}, "tz": {"zone"},
	"query": {"sql"}, "statement": {"sql"}, "command": {"sql", "shell"}, "cmd": {"sql", "shell"}, "script": {"sql", "shell"},
	"url": {"http"}, "webhook": {"http"},
	"retries": {"attempts"}, "depends-on": {"after"}, "concurrency": {"overlap"},
}

func unknownFlagHint(cmd *cobra.Command, problem string) string {
	hint := "see " + cmd.CommandPath() + " --help"
	name, ok := strings.CutPrefix(problem, "unknown flag: --")
	if !ok {
		return hint
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if flags := severalFlags[name]; flags != nil && slices.Contains(names, flags[0]) {
		last := len(flags) - 1
		return "the flags are --" + strings.Join(flags[:last], ", --") + " and --" + flags[last] + "; " + hint
	}
	if flags := otherFlags[name]; flags != nil && slices.Contains(names, flags[0]) {
		return "did you mean --" + strings.Join(flags, " or --") + "? " + hint
	}
	if n := nearest.To(name, names); n != "" {
		return "did you mean --" + n + "? " + hint
	}
	return hint
}

// positional demands exactly the named arguments. An argument whose name ends with ? is optional. None is empty, as that of a
// shell's variable that is not set: it would name all of a kind where it may be left out, or any one of them.
func positional(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		least := 0
		for _, n := range names {
			if !strings.HasSuffix(n, "?") {
				least++
			}
		}
		switch {
		case len(args) < least:
			return badInput("%s: %s is missing", cmd.CommandPath(), names[len(args)])
		case len(args) > len(names):
			e := &usageError{problem: fmt.Sprintf("%s: unexpected argument %s", cmd.CommandPath(), shown(args[len(names)]))}
			switch { // a value of several words that is not in quotes is several arguments
			case cmd.Flags().Lookup("file") != nil:
				e.hint = "a file is named with -f"
			case slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "RULE") }):
				e.hint = `put a rule that has blanks in quotes, as in "every 5m"`
			case cmd.Flags().Lookup("rule") != nil:
				e.hint = `a rule is given with --rule, and a value that has blanks in quotes, as in --rule "every 5m"`
			}
			return e
		}
		if i := slices.Index(args, ""); i >= 0 {
			return badInput("%s: %s is empty", cmd.CommandPath(), strings.TrimSuffix(names[i], "?"))
		}
		return nil
	}
}
