package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/nearest"
)

// kindTarget is the kind of a name that the settings of a host define.
const kindTarget = "target"

// reference is a place in the file that names another definition, or a target.
type reference struct {
	store.Reference
	hint string  // what may be meant, if the name looks like a rule or can be read as one
	at   Problem // without a text
}

// refer keeps the use of a name. Whether the name is defined is known when all files are read.
func (d *decoder) refer(to store.Reference, at Problem) {
	if store.CheckHook(to.Name) == nil { // no definition can have any other name: that is a mistake of its own
		d.references = append(d.references, reference{Reference: to, at: at})
	}
}

// useSchedule keeps the name of a schedule that the file does not define.
func (f *file) useSchedule(name string, n *yaml.Node, path string) {
	if f.names[name] {
		return
	}
	hint := ""
	if err := asRule(name, "UTC", f.now); err == nil {
		hint = "; define it under schedules, with a name, and write that name here; a job may also have one rule of its own: rule"
	} else if strings.ContainsAny(name, " \t@=") {
		hint = ", and it is not a valid rule either: " + err.Error()
	}
	at := f.place(cmp.Or(f.places[path], n), path)
	f.references = append(f.references, reference{store.Reference{Kind: store.KindSchedule, Name: name}, hint, at})
}

// useJobs keeps the names of the group, the predecessors and the hooks of a job.
func (f *file) useJobs(j *store.Job, key *yaml.Node, path string) {
	use := func(to store.Reference, below string) {
		at, given := f.usual[below]
		if n := f.places[path+"."+below]; n != nil {
			at = f.place(n, path+"."+below)
		} else if !given {
			at = f.place(key, path)
		}
		f.refer(to, at)
	}
	if j.Group != "" {
		use(store.Reference{Kind: store.KindGroup, Name: j.Group}, "group")
	}
	for i, a := range j.After {
		below := fmt.Sprintf("after[%d]", i)
		if f.places[path+"."+below] == nil {
			below = "after"
		}
		if f.places[path+"."+below+".job"] != nil {
			below += ".job"
		}
		use(store.Reference{Kind: store.KindJob, Name: a.Job, Owner: j.Owner, Done: true}, below)
	}
	for event, hook := range j.On.Jobs() {
		use(store.Reference{Kind: store.KindJob, Name: hook, Owner: j.Owner}, "on."+event)
	}
}

// namesOf returns the names that a job uses.
func namesOf(j *store.Job) map[string]bool {
	has := map[string]bool{j.Group: true}
	for _, name := range j.Schedules {
		has[name] = true
	}
	for _, a := range j.After {
		has[a.Job] = true
	}
	for _, hook := range j.On.All() {
		has[*hook] = true
	}
	if j.Own != nil {
		has[j.Own.Calendar] = true
	}
	return has
}

// defines reports whether the manifest has the definition that a reference names, also one with problems.
func (r *reader) defines(to reference) bool {
	name := to.Name
	if to.Kind == store.KindJob {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	_, ok := r.defined[join(to.Kind+"s", name)]
	return ok
}

// References returns the names that the manifest uses and does not define, each once: those of these kinds, or
// of all kinds.
func (m *Manifest) References(kinds ...string) []store.Reference {
	var list []store.Reference
	seen := map[store.Reference]bool{}
	for _, r := range m.references {
		if r.Kind != kindTarget && !seen[r.Reference] && (len(kinds) == 0 || slices.Contains(kinds, r.Kind)) {
			seen[r.Reference] = true
			list = append(list, r.Reference)
		}
	}
	return list
}

// NamesTargets reports whether a step names a target.
func (m *Manifest) NamesTargets() bool {
	return slices.ContainsFunc(m.references, func(r reference) bool { return r.Kind == kindTarget })
}

// Targets are those of the settings of a host.
type Targets struct {
	From  string // the file of the settings
	Names []string
}

// Resolve checks the names that the manifest uses and does not define: those of these kinds, or of all kinds,
// against the definitions of the database, and the targets of steps against those of the host, if it has any. Its
// error has these problems and all others of the manifest.
func (m *Manifest) Resolve(known *store.Known, host Targets, kinds ...string) error {
	m.Shared = known.Schedules
	problems := slices.Clone(m.problems)
	seen := map[Problem]bool{} // several jobs have a name from the same defaults
	for _, r := range m.references {
		switch {
		case r.Kind == kindTarget:
			r.at.Text = host.missing(r.Name)
		case len(kinds) == 0 || slices.Contains(kinds, r.Kind):
			r.at.Text = m.missing(known, r)
		}
		if r.at.Text = cut(r.at.Text, maxText); r.at.Text != "" && !seen[r.at] {
			seen[r.at] = true
			problems = append(problems, r.at)
		}
	}
	if len(problems) > 0 {
		return bounded(problems)
	}
	return nil
}

// missing says what is wrong with a name, and what may be meant; empty: nothing is wrong.
func (m *Manifest) missing(known *store.Known, r reference) string {
	text := known.Missing(r.Reference)
	if text == "" {
		return ""
	}
	names := slices.Clone(known.Names(r.Kind))
	for _, name := range m.names(r.Kind) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if r.hint != "" || slices.Contains(names, r.Name) { // several owners have it
		return text + r.hint
	}
	if r.Kind == store.KindGroup && nearest.To(r.Name, names) == "" {
		return fmt.Sprintf("%s; add it to a manifest: groups: {%s: 1}", text, r.Name)
	}
	return text + orOneOf(r.Name, r.Kind+"s", names)
}

// Place gives the mistakes that the database found in the manifest's definitions the place that they have in the
// manifest, or the flag. Other errors stay as they are.
func (m *Manifest) Place(err error) error {
	var problems []Problem
	var others []error
	for _, err := range parts(err) {
		if e, ok := errors.AsType[*store.FieldError](err); !ok {
			others = append(others, err)
		} else if p, ok := m.placeOf(e); ok {
			problems = append(problems, p)
		} else {
			others = append(others, err)
		}
	}
	if len(problems) == 0 {
		return err
	}
	if len(others) == 0 {
		return bounded(problems)
	}
	return errors.Join(append([]error{bounded(problems)}, others...)...)
}

// parts returns the errors that errors.Join has joined.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// placeOf returns the place of the field that an error names, or of its definition.
func (m *Manifest) placeOf(e *store.FieldError) (p Problem, ok bool) {
	subject, step, inStep := strings.Cut(e.Subject, ", step ")
	kind, name, _ := strings.Cut(subject, " ")
	section := kind + "s"
	name = name[strings.LastIndexByte(name, '/')+1:]
	path := join(section, name)
	if p, ok = m.places[path]; !ok {
		return p, false
	}
	if inStep {
		p.Path, p.Text = path, "step "+step+": "+e.Field+": "+e.Problem
		return p, true
	}
	if at, given := m.places[path+"."+e.Field]; given {
		p = at
	}
	p.Path, p.Text = path+"."+e.Field, e.Problem
	if m.flags != nil {
		if ofFlag(&p, section, name, m.flags); !strings.HasPrefix(p.Path, "--") {
			p.Text = e.Field + ": " + e.Problem
		}
	}
	return p, true
}

// names returns the names of the manifest's own definitions of a kind.
func (m *Manifest) names(kind string) (names []string) {
	if m.flags != nil { // they define one thing, which is of no use to itself
		return nil
	}
	switch kind {
	case store.KindSchedule:
		for i := range m.Schedules {
			names = append(names, m.Schedules[i].Name)
		}
	case store.KindCalendar:
		for i := range m.Calendars {
			names = append(names, m.Calendars[i].Name)
		}
	case store.KindGroup:
		for i := range m.Groups {
			names = append(names, m.Groups[i].Name)
		}
	case store.KindJob:
		for i := range m.Jobs {
			names = append(names, m.Jobs[i].Name)
		}
	}
	return names
}

func (t *Targets) missing(name string) string {
	if len(t.Names) == 0 || slices.Contains(t.Names, name) {
		return ""
	}
	return fmt.Sprintf("the settings of this host (%s) have no target %s%s", t.From, excerpt(name), orOneOf(name, "targets", t.Names))
}

// orOneOf says which name was probably meant, or which names there are.
func orOneOf(name, kind string, names []string) string {
	if n := nearest.To(name, names); n != "" {
		return fmt.Sprintf("; did you mean %s?", n)
	}
	if len(names) == 0 {
		return ""
	}
	return "; the " + kind + " are " + strings.Join(names[:min(20, len(names))], ", ")
}
