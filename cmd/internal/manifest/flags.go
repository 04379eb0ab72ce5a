package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/tick/executor"
)

// Flag is a key of a job or schedule that "job create" and "schedule create" take as a flag. The file
// and the command line share the grammar and the messages.
type Flag struct {
	Name string
	Path string // of the key in a manifest, below the job or schedule
	Kind Kind
	Help string
}

// Kind is the kind of value that a flag takes.
type Kind int

// The kinds of flags.
const (
	Text    Kind = iota // a text, also one that looks like a number
	Texts               // the same, given several times
	Literal             // a number, a duration, an instant: read as a manifest reads it
	Switch              // present or not
	Entries             // texts, or mappings in braces, given several times
)

// RuleFlags describe a schedule.
var RuleFlags = []Flag{
	{"rule", "rule", Text, "when: an RRULE text, a cron line, every 5m, at 2026-12-01T17:30:00, ..."},
	{"zone", "zone", Text, "time zone of the rule (UTC)"},
	{"nonexistent", "nonexistent", Text, "a wall time that a clock change leaves out: forward or skip (forward)"},
	{"ambiguous", "ambiguous", Text, "a wall time that a clock change repeats: first, last or both (first)"},
	{"calendar", "calendar", Text, "calendar whose holidays count"},
	{"on-holiday", "on_holiday", Text, "a time on a holiday: skip, next or previous working day (skip)"},
	{"description", "description", Text, "what it is for"},
}

// JobFlags describe a job, besides RuleFlags for its own rule.
var JobFlags = slices.Concat([]Flag{{"schedule", "schedules", Texts, "name of a schedule, or a rule; names may be given several times"}}, executorFlags(), policyFlags())

// executorFlags returns the keys of executors as flags. For a mapping, the flag sets its first key. Of the
// other keys, those are flags to which the executor gives a flag name.
func executorFlags() (flags []Flag) {
	kinds := map[executor.Type]Kind{executor.Switch: Switch, executor.Text: Text, executor.TargetName: Text, executor.Arguments: Texts, executor.Statements: Texts, executor.List: Texts}
	for _, k := range executor.Kinds {
		for _, key := range k.Keys {
			name := cmp.Or(key.Flag, key.Name)
			if key.Type != executor.Mapping {
				flags = append(flags, Flag{name, key.Name, kinds[key.Type], key.Help})
				continue
			}
			for i, sub := range key.Keys {
				if i == 0 && key.Short {
					flags = append(flags, Flag{name, join(key.Name, sub.Name), kinds[sub.Type], key.Help})
				} else if sub.Flag != "" {
					flags = append(flags, Flag{sub.Flag, join(key.Name, sub.Name), kinds[sub.Type], sub.Help})
				}
			}
		}
	}
	return flags
}

// Given are the values of the flags that were given, by the names of the flags.
type Given map[string][]string

// JobFromFlags builds a job as if its keys were in a manifest. If a value is wrong, it returns an *Error that
// names the flag.
func JobFromFlags(name string, given Given, now time.Time) (*Manifest, error) {
	entry, rule := &object{}, &object{}
	for _, fl := range RuleFlags {
		if values := given[fl.Name]; len(values) > 0 && (fl.Name == "description" || fl.Name == "zone") {
			entry.put(fl.Name, fl.node(values))
		} else if len(values) > 0 {
			rule.put(fl.Path, fl.node(values))
		}
	}
	entry.section("rule", rule)
	for _, fl := range JobFlags {
		if values := given[fl.Name]; len(values) == 1 && fl.Name == "schedule" {
			entry.put("schedule", quoted(values[0])) // the text may be a rule
		} else if len(values) > 0 {
			entry.at(fl.Path, fl.node(values))
		}
	}
	f := &file{decoder: &decoder{file: "job create"}, m: &Manifest{}, now: now, names: map[string]bool{}}
	if node := f.reread(given, entry); node != nil {
		f.readJob(pair{quoted(name), node})
	}
	return f.m, f.flagError("jobs", name, slices.Concat(RuleFlags, JobFlags))
}

// ScheduleFromFlags does for a schedule what JobFromFlags does for a job.
func ScheduleFromFlags(name string, given Given, now time.Time) (*Manifest, error) {
	entry := &object{}
	for _, fl := range RuleFlags {
		if values := given[fl.Name]; len(values) > 0 {
			entry.put(fl.Path, fl.node(values))
		}
	}
	f := &file{decoder: &decoder{file: "schedule create"}, m: &Manifest{}, now: now, names: map[string]bool{}}
	if node := f.reread(given, entry); node != nil {
		all := &object{}
		all.put(name, node)
		f.readSchedules(all.node())
	}
	return f.m, f.flagError("schedules", name, RuleFlags)
}

// reread writes the values of the flags as YAML and reads that YAML, so that numbers become numbers. A value
// that YAML cannot represent is a problem of its flag.
func (f *file) reread(given Given, o *object) *yaml.Node {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		for _, v := range given[name] {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				f.problems = append(f.problems, Problem{File: f.file, Path: "--" + name, Text: fmt.Sprintf("%q is not UTF-8 text", v)})
			}
		}
	}
	if len(f.problems) > 0 {
		return nil
	}
	var doc yaml.Node
	text, err := yaml.Marshal(o.node())
	if err == nil {
		err = yaml.Unmarshal(text, &doc)
	}
	if err != nil {
		f.problems = append(f.problems, Problem{File: f.file, Text: err.Error()})
		return nil
	}
	return doc.Content[0]
}

// node returns the value of the flag in the form of a manifest.
func (fl Flag) node(values []string) *yaml.Node {
	switch last := values[len(values)-1]; fl.Kind {
	case Texts:
		return list(values)
	case Text:
		return quoted(last)
	case Entries:
		return entryList(values)
	default:
		return plain(last)
	}
}

// flagError replaces the paths in the problems, and of the names that are used, by the flags that stand for them.
func (f *file) flagError(section, name string, flags []Flag) error {
	for i := range f.references {
		ofFlag(&f.references[i].at, section, name, flags)
	}
	f.m.references, f.m.flags = f.references, flags
	f.m.places = map[string]Problem{join(section, name): {File: f.file}}
	for i := range f.problems {
		ofFlag(&f.problems[i], section, name, flags)
	}
	if len(f.problems) == 0 {
		return nil
	}
	return &Error{f.problems}
}

func ofFlag(p *Problem, section, name string, flags []Flag) {
	p.Line, p.Column = 0, 0
	if strings.HasPrefix(p.Path, "--") {
		return
	}
	path := strings.TrimPrefix(strings.TrimPrefix(p.Path, join(section, name)), ".")
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "rule."), "[")
	p.Path = fmt.Sprintf("%q", name)
	for _, fl := range flags {
		if fl.Path == path || fl.Name == path {
			p.Path = "--" + fl.Name
		}
	}
}
