// Package lint warns of definitions that work, but that their author may not mean. Of does all of this, without a
// database: it examines the definitions, and the values that its caller passes. Codes lists the warnings by their
// names.
package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Options is what Of examines.
type Options struct {
	Manifest *manifest.Manifest
	// Changes are the changes that the manifest makes. Of warns only about definitions that they create or change:
	// a definition that stays as it is had its warning earlier.
	Changes   []store.Change
	New       bool                       // there is no database yet, so everything is created
	Calendars map[string]*store.Calendar // the calendars that schedules use
	Starved   []string                   // the jobs to which the manifest leaves no time, by a change of their calendar
	Env       func(string) (string, bool)
	Host      *executor.Host // what this host allows to steps; nil: its owner has set nothing
	Now       time.Time
}

// Of lists the warnings about what changes. The work for each definition is limited.
func Of(o Options) []report.DefinitionWarning {
	l := linter{Options: o, changes: map[string][]store.Change{}, swallowed: map[string][]manifest.Swallowed{},
		schedules: map[string]*store.Schedule{}, jobs: map[string]*store.Job{}, anchors: map[*store.Job]anchored{}, used: map[string]bool{}, hooks: map[string]bool{}}
	l.index()
	for _, c := range o.Changes {
		key := c.Kind + " " + c.PlainSubject()
		l.changes[key] = append(l.changes[key], c)
	}
	for _, s := range o.Manifest.Swallowed {
		l.swallowed[s.Job] = append(l.swallowed[s.Job], s)
	}
	l.variables()
	for i := range o.Manifest.Calendars {
		if cal := &o.Manifest.Calendars[i]; l.New || len(l.changes["calendar "+cal.Name]) > 0 {
			l.list = append(l.list, Calendar(cal, o.Now)...)
		}
	}
	l.list = append(l.list, Starved(o.Starved)...)
	for i := range o.Manifest.Schedules {
		l.schedule(&o.Manifest.Schedules[i])
	}
	for i := range o.Manifest.Jobs {
		l.job(&o.Manifest.Jobs[i])
	}
	return l.list
}

type linter struct {
	Options
	changes   map[string][]store.Change       // by kind and name
	swallowed map[string][]manifest.Swallowed // by job
	schedules map[string]*store.Schedule      // of the manifest, by name
	jobs      map[string]*store.Job           // of the manifest, by name and by owner/name
	anchors   map[*store.Job]anchored         // of the jobs that others run after
	used      map[string]bool                 // names of schedules that a job of the manifest uses
	hooks     map[string]bool                 // names of jobs that a job of the manifest has as a hook
	list      []report.DefinitionWarning
}

// index makes it quick to find what one definition has to do with others: there may be thousands.
func (l *linter) index() {
	for i := range l.Manifest.Schedules {
		l.schedules[l.Manifest.Schedules[i].Name] = &l.Manifest.Schedules[i]
	}
	for i := range l.Manifest.Jobs {
		j := &l.Manifest.Jobs[i]
		l.jobs[j.Name], l.jobs[j.FullName()] = j, j
		for _, name := range j.Schedules {
			l.used[name] = true
		}
		for _, hook := range j.On.All() {
			l.hooks[*hook] = true
		}
	}
}

// warn adds a warning. The advice is that of the code, unless the text already says what to do.
func (l *linter) warn(kind, subject, code, format string, args ...any) {
	l.list = append(l.list, report.DefinitionWarning{Kind: kind, Subject: subject, Code: code, Text: fmt.Sprintf(format, args...), Do: advice[code]})
}

// Calendar lists the warnings of a calendar.
func Calendar(c *store.Calendar, now time.Time) []report.DefinitionWarning {
	l := linter{}
	if why := report.Outdated(c, now); why != "" {
		l.warn("calendar", c.Name, CalendarEnds, "%s", why)
	}
	return l.list
}

// Starved lists the warnings about jobs that have no times left after a change of a calendar.
func Starved(jobs []string) []report.DefinitionWarning {
	l := linter{}
	for _, name := range jobs {
		l.warn("job", name, LeavesNone, "has no time left with the new days of its calendar")
	}
	return l.list
}

// broughtIn reports whether a change creates the definition, or changes one of the fields.
func (l *linter) broughtIn(kind, name string, fields ...string) bool {
	return l.New || slices.ContainsFunc(l.changes[kind+" "+name], func(c store.Change) bool {
		return c.Action == "create" || c.Action == "change" && slices.ContainsFunc(c.Fields, func(f store.FieldChange) bool {
			top, _, _ := strings.Cut(f.Field, ".")
			return slices.Contains(fields, top)
		})
	})
}

// variables warns of variables whose values look like secrets.
func (l *linter) variables() {
	if len(l.Changes) == 0 && !l.New {
		return
	}
	for _, v := range l.Manifest.Exposed(l.Env) {
		l.warn("variable", v.Name, SecretInVariable, "what %s:%d gets from it looks like a secret; everybody who may read the database can see it", v.Place.File, v.Place.Line)
	}
}

func (l *linter) schedule(s *store.Schedule) {
	if !l.broughtIn("schedule", s.Name, "rule", "zone", "nonexistent", "ambiguous", "calendar", "on_holiday") {
		return
	}
	l.unused(s)
	if l.broughtIn("schedule", s.Name, "rule") {
		l.zoneless("schedule", s.Name, s.Name)
	}
	l.rule("schedule", s.Name, s.Name, s.Name, s)
}

func (l *linter) job(j *store.Job) {
	if j.Own != nil && l.broughtIn("job", j.Name, "own") {
		l.zoneless("job", j.FullName(), j.Name)
		l.rule("job", j.FullName(), j.Name, j.FullName(), j.Own)
	}
	if j.Overlap == store.OverlapAllow && j.MaxRunning <= 1 && l.broughtIn("job", j.Name, "overlap", "max_running") {
		l.warn("job", j.FullName(), AllowsOne, "its runs execute one at a time, in order, as max_running is 1")
	}
	if l.broughtIn("job", j.Name, "steps") {
		for i := range j.Steps {
			l.step(j, &j.Steps[i])
			l.allowed(j, &j.Steps[i])
		}
		l.comments(j)
	}
	if l.broughtIn("job", j.Name, "steps", "after") || slices.ContainsFunc(j.After, l.renamed) {
		l.arguments(j)
	}
	l.times(j)
}

// renamed reports whether the change gives a job the name that it has.
func (l *linter) renamed(a store.After) bool {
	return slices.ContainsFunc(l.changes["job "+plainName(a.Job)], func(c store.Change) bool {
		return c.Action == "rename" && slices.ContainsFunc(c.Fields, func(f store.FieldChange) bool { return f.Field == "name" })
	})
}

// plainName returns the name of a job without its owner.
func plainName(name string) string { return name[strings.Index(name, "/")+1:] }

// Arguments lists the warnings about arguments of other jobs that the steps of a job name.
func Arguments(j *store.Job) []report.DefinitionWarning {
	l := linter{}
	l.arguments(j)
	return l.list
}

func (l *linter) arguments(j *store.Job) {
	if len(j.After) < 2 {
		return // the only job before it gives its arguments as they are
	}
	names := make([]string, len(j.After))
	for i, a := range j.After {
		names[i] = plainName(a.Job)
	}
	for i := range j.Steps {
		for _, arg := range j.Steps[i].Arguments() {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(arg, name+".") }) {
				l.warn("job", j.FullName(), LostArgument, "step %s names ${args.%s}, and the job runs after %s", j.Steps[i].Name, arg, strings.Join(names, " and "))
			}
		}
	}
}

// zoneless warns of a rule without a zone.
func (l *linter) zoneless(kind, subject, name string) {
	if slices.Contains(l.Manifest.Zoneless, kind+" "+name) {
		l.warn(kind, subject, Zoneless, "its rule is read in UTC")
	}
}

// rule warns about the same things as rule lint.
func (l *linter) rule(kind, subject, name, seed string, s *store.Schedule) {
	is := rules.Defaults{Zone: s.Zone, Start: s.Made(), Seed: seed, Nonexistent: s.Nonexistent, Ambiguous: s.Ambiguous}
	if is.Start.IsZero() { // it is made now
		is.Start = l.Now
	}
	if cal := l.Calendars[s.Calendar]; cal != nil {
		is.OnHoliday = s.OnHoliday
		is.Calendar, _ = rules.ParseCalendar(cal.Name, cal.WorkingDays, cal.Text()) // if the calendar cannot be read, calendar-ends says so
		if why := report.Outdated(cal, l.Now); why != "" && len(l.changes["calendar "+cal.Name]) == 0 {
			l.warn(kind, subject, CalendarEnds, "of its calendar %s: %s", cal.Name, why)
		}
	}
	r, err := rules.Parse(s.Rule, is)
	if err != nil {
		return // a rule that cannot be read was refused before
	}
	list, err := rules.Lint(r, rules.LintOptions{
		Now:               l.Now,
		NonexistentChosen: slices.Contains(l.Manifest.Chosen, kind+" "+name+" nonexistent"),
		AmbiguousChosen:   slices.Contains(l.Manifest.Chosen, kind+" "+name+" ambiguous"),
	})
	if err != nil {
		return
	}
	for i, w := range list {
		if i > 0 && list[i-1].Code == w.Code { // both clock changes of a year are one warning
			last := &l.list[len(l.list)-1]
			head, _, _ := strings.Cut(last.Text, "; other schedulers ")
			last.Text = head + "; " + w.Message
			continue
		}
		l.warn(kind, subject, w.Code, "%s", w.Message)
	}
}
