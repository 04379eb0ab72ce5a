package manifest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/nearest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Edit changes a definition in place. It writes the definition as an entry of a manifest, changes keys of that
// entry, and reads it back. So the file, the flags of create and the flags of an edit share one grammar.
type Edit struct {
	Command string   // for problems: job alter
	Given   Given    // values of flags
	Reset   []string // flags or keys that get their default again
	Now     time.Time
}

// AlterFlags returns the flags of job alter: all that a job may have, except its owner.
func AlterFlags() []Flag {
	return slices.DeleteFunc(slices.Concat(RuleFlags, JobFlags), func(fl Flag) bool { return fl.Path == "owner" })
}

// draft is a job that is being edited, in the form of a manifest. Each step has its name.
type draft struct {
	object
	job   *store.Job
	steps *yaml.Node
	step  int // the step that the flags are about; -1: none
}

// at returns the entry of a step.
func (d *draft) at(i int) *object { return &object{*d.steps.Content[i]} }

func (d *draft) keep(i int, entry *object) { d.steps.Content[i] = entry.node() }

// find returns the index of a step.
func (d *draft) find(name string) (int, error) {
	if len(d.job.Steps) == 0 {
		return 0, d.hasNone()
	}
	names := make([]string, len(d.job.Steps))
	for i, s := range d.job.Steps {
		if names[i] = s.Name; s.Name == name {
			return i, nil
		}
	}
	return 0, &store.FieldError{Subject: "job " + d.job.FullName(), Field: "steps",
		Problem: fmt.Sprintf("there is no step %s; %s", excerpt(name), oneOf(name, names))}
}

// hasNone is the mistake of a job whose steps plain SQL has deleted.
func (d *draft) hasNone() error {
	return &store.FieldError{Subject: "job " + d.job.FullName(), Field: "steps", Problem: "it has none, and needs one; add it with dbjobs job step add"}
}

// job edits a job. The manifest that it returns has only that job.
func (e Edit) job(j store.Job, change func(d *draft) error) (*Manifest, error) {
	d := &draft{object: *policiesNode(j, j.Owner, ""), job: &j, steps: &yaml.Node{Kind: yaml.SequenceNode}, step: -1}
	if j.Start != "" { // its zone stays when the rule, from which it may have come, gets another one
		d.set("start_zone", quoted(j.StartZone))
	}
	for _, s := range j.Steps {
		entry, err := stepNode(s, true)
		if err != nil {
			return nil, &store.FieldError{Subject: "job " + j.FullName(), Field: "steps", Problem: err.Error()}
		}
		d.steps.Content = append(d.steps.Content, entry)
	}
	f := &file{decoder: &decoder{file: e.Command}, m: &Manifest{}, now: e.Now, names: map[string]bool{}}
	if err := change(d); err != nil {
		return nil, err
	}
	if len(d.steps.Content) == 0 {
		return nil, d.hasNone()
	}
	d.put("steps", d.steps)
	if node := f.reread(e.Given, &d.object); node != nil {
		f.readJob(pair{quoted(j.Name), node})
	}
	f.ofStep(d.step)
	if err := f.flagError("jobs", j.Name, append(AlterFlags(), StepFlags()...)); err != nil {
		return nil, err
	}
	has := namesOf(&j)
	f.m.references = slices.DeleteFunc(f.m.references, func(r reference) bool { return has[r.Name] })
	to := &f.m.Jobs[0]
	to.ID, to.Owner, to.Manifest, to.CreatedAt = j.ID, j.Owner, j.Manifest, j.CreatedAt
	return f.m, nil
}

// ofStep leaves the step that the flags are about out of the paths of problems, and says of problems with other steps
// which step has them.
func (f *file) ofStep(step int) {
	of := fmt.Sprintf(".steps[%d]", step)
	for i := range f.problems {
		p := &f.problems[i]
		if before, key, ok := strings.Cut(p.Path, of); ok {
			p.Path = before + key
		} else if _, other, ok := strings.Cut(p.Path, ".steps["); ok {
			p.Text = "steps[" + other + ": " + p.Text
		}
	}
	for i := range f.references {
		p := &f.references[i].at
		if before, key, ok := strings.Cut(p.Path, of); ok {
			p.Path = before + key
		}
	}
}

// Job sets the fields of a job to the values of the flags, and removes the fields that are reset. A flag that
// collects values replaces all of them.
func (e Edit) Job(j store.Job) (*Manifest, error) {
	return e.job(j, func(d *draft) error {
		if err := e.resetKeys(d); err != nil {
			return err
		}
		if err := e.when(d); err != nil {
			return err
		}
		for _, fl := range JobFlags {
			if values := e.Given[fl.Name]; len(values) > 0 && ofStep(fl.Path) == nil && fl.Name != "schedule" {
				d.set(whole(fl.Path), fl.node(values))
			}
		}
		if text := e.Given["description"]; len(text) > 0 {
			d.set("description", quoted(text[0]))
		}
		if !slices.ContainsFunc(executorFlags(), func(fl Flag) bool { return len(e.Given[fl.Name]) > 0 }) {
			return nil
		}
		if len(d.steps.Content) == 0 { // plain SQL has deleted them: the flags make one
			d.steps.Content = append(d.steps.Content, (&object{}).node())
		}
		if len(d.steps.Content) != 1 {
			names := make([]string, len(j.Steps))
			for i, s := range j.Steps {
				names[i] = s.Name
			}
			return &store.FieldError{Subject: "job " + j.FullName(), Field: "steps",
				Problem: "there are several: " + strings.Join(names, ", ") + "; change one with dbjobs job step alter"}
		}
		e.does(d, 0)
		return nil
	})
}

// when sets the times of the job. --schedule replaces all of them; the other flags change the job's own rule.
func (e Edit) when(d *draft) error {
	names := e.Given["schedule"]
	if len(names) == 1 && asRule(names[0], "UTC", e.Now) == nil && !slices.Contains(d.job.Schedules, names[0]) {
		d.drop("schedule")
		d.drop("schedules")
		d.set("rule.rule", quoted(names[0]))
	} else if len(names) > 0 {
		d.drop("schedule")
		d.drop("rule")
		d.set("schedules", list(names))
	}
	for _, fl := range RuleFlags {
		if values := e.Given[fl.Name]; len(values) > 0 && fl.Name != "description" {
			d.set("rule."+fl.Path, fl.node(values))
		}
	}
	if d.get("rule") != nil && d.get("rule.rule") == nil {
		return &store.FieldError{Subject: "job " + d.job.FullName(), Field: "rule",
			Problem: "the job has no rule of its own; change the rule of its schedules with dbjobs schedule alter, or give --rule"}
	}
	return nil
}

// does sets what a step does. A step that gets another executor loses the keys of the old one.
func (e Edit) does(d *draft, i int) {
	entry := d.at(i)
	d.step = i
	for _, k := range executor.Kinds {
		leads := slices.ContainsFunc(executorFlags(), func(fl Flag) bool {
			outer, _, _ := strings.Cut(fl.Path, ".")
			return outer == k.Keys[0].Name && len(e.Given[fl.Name]) > 0 && (fl.Path == outer || e.first(k, fl.Path))
		})
		if !leads || i < len(d.job.Steps) && d.job.Steps[i].Executor == k.Name {
			continue
		}
		for _, other := range executor.Kinds {
			for _, key := range other.Keys {
				entry.drop(key.Name)
			}
		}
	}
	for _, fl := range executorFlags() {
		if values := e.Given[fl.Name]; len(values) > 0 {
			entry.set(fl.Path, fl.node(values))
		}
	}
	d.keep(i, entry)
}

// first reports whether a flag sets the first key of a mapping, which the mapping needs.
func (e Edit) first(k executor.Kind, path string) bool {
	return len(k.Keys[0].Keys) > 0 && path == join(k.Keys[0].Name, k.Keys[0].Keys[0].Name)
}

// resetKeys removes the keys that are reset.
func (e Edit) resetKeys(d *draft) error {
	for _, name := range e.Reset {
		fl, err := e.flag(name, AlterFlags())
		if err != nil {
			return err
		}
		switch path := fl.Path; {
		case path == "schedules":
			d.drop("schedule")
			d.drop("schedules")
			d.drop("rule")
		case slices.Contains([]string{"zone", "nonexistent", "ambiguous", "calendar", "on_holiday"}, path):
			d.drop("rule." + path)
		case path == "start":
			d.drop("start")
			d.drop("start_zone") // it is the zone of nothing else
		case ofStep(path) != nil && len(d.steps.Content) == 1:
			entry := d.at(0)
			entry.drop(path)
			d.keep(0, entry)
		default:
			d.drop(whole(path))
		}
	}
	return nil
}

// whole returns the path of what a flag of the job sets: of a section that is given as a whole, nothing else stays.
func whole(path string) string {
	outer, _, _ := strings.Cut(path, ".")
	if slices.ContainsFunc(entries, func(e entry) bool { return e.key == outer && e.short() != nil }) {
		return outer
	}
	return path
}

// flag finds a flag by its own name, or by the name of its key.
func (e Edit) flag(name string, flags []Flag) (Flag, error) {
	known := make([]string, len(flags))
	for i, fl := range flags {
		if known[i] = fl.Name; fl.Name == name || fl.Path == name {
			return fl, nil
		}
	}
	p := Problem{File: e.Command, Path: "--reset", Text: "there is no flag " + excerpt(name)}
	if n := nearest.To(name, known); n != "" {
		p.Text += "; did you mean " + n + "?"
	}
	return Flag{}, &Error{[]Problem{p}}
}

// ofStep returns the executor that has the key, or nil for a key of the job.
func ofStep(path string) *executor.Kind {
	outer, _, _ := strings.Cut(path, ".")
	for i := range executor.Kinds {
		if slices.Contains(keyNames(executor.Kinds[i].Keys), outer) {
			return &executor.Kinds[i]
		}
	}
	return nil
}

// shortOf returns the key that the short form of a section sets: there, a single value stands in place of the
// section.
func shortOf(outer string) string {
	for _, e := range entries {
		if e.key == outer && e.short() != nil {
			return e.short().key
		}
	}
	for _, k := range executor.Kinds {
		for _, key := range k.Keys {
			if key.Name == outer && key.Short {
				return key.Keys[0].Name
			}
		}
	}
	if outer == "rule" {
		return "rule"
	}
	return ""
}

// get returns the value at a path. If a section is given in its short form, get returns that value.
func (o *object) get(path string) *yaml.Node {
	outer, key, nested := strings.Cut(path, ".")
	for i := 0; i+1 < len(o.Content); i += 2 {
		switch v := o.Content[i+1]; {
		case o.Content[i].Value != outer:
		case !nested:
			return v
		case v.Kind == yaml.MappingNode:
			return (&object{*v}).get(key)
		case key == shortOf(outer):
			return v
		}
	}
	return nil
}

// set puts a value at its path, and replaces what is there.
func (o *object) set(path string, value *yaml.Node) {
	outer, key, nested := strings.Cut(path, ".")
	if nested {
		inner := &object{}
		if is := o.get(outer); is != nil && is.Kind == yaml.MappingNode {
			inner = &object{*is}
		} else if is != nil {
			inner.put(shortOf(outer), is)
		}
		inner.set(key, value)
		value = inner.node()
	}
	for i := 0; i+1 < len(o.Content); i += 2 {
		if o.Content[i].Value == outer {
			o.Content[i+1] = value
			return
		}
	}
	o.put(outer, value)
}

// drop removes the value at a path.
func (o *object) drop(path string) {
	outer, key, nested := strings.Cut(path, ".")
	for i := 0; i+1 < len(o.Content); i += 2 {
		if o.Content[i].Value != outer {
			continue
		}
		if v := o.Content[i+1]; nested && v.Kind == yaml.MappingNode {
			inner := &object{*v}
			if inner.drop(key); len(inner.Content) > 0 {
				o.Content[i+1] = inner.node()
				return
			}
		} else if nested && key != shortOf(outer) {
			return
		}
		o.Content = slices.Delete(o.Content, i, i+2)
		return
	}
}
