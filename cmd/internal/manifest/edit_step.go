package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
)

// StepFlags describe a step of a job.
func StepFlags() []Flag {
	flags := []Flag{{"name", "name", Text, "name of the step"}}
	flags = append(flags, executorFlags()...)
	for _, fl := range policyFlags() {
		if strings.HasPrefix(fl.Path, "retry.") {
			usual, _, _ := strings.Cut(fl.Help, " (")
			fl.Help = usual + " (that of the job)"
			flags = append(flags, fl)
		}
	}
	return append(flags,
		Flag{"timeout", "timeout", Literal, "of one attempt of the step"},
		Flag{"on-success", "on_success", Text, "next, succeed, fail or step:NAME (next)"},
		Flag{"on-failure", "on_failure", Text, "fail, next, succeed or step:NAME (fail)"})
}

// stepKeys sets the fields of a step to the values of the flags.
func (e Edit) stepKeys(d *draft, i int) {
	e.does(d, i)
	entry := d.at(i)
	for _, fl := range StepFlags() {
		if values := e.Given[fl.Name]; len(values) > 0 && ofStep(fl.Path) == nil {
			entry.set(fl.Path, fl.node(values))
		}
	}
	d.keep(i, entry)
}

// AddStep adds a step: before another one, or at the end. Without a name, it gets the first "step N" that is free: other steps
// keep theirs, wherever they are.
func (e Edit) AddStep(j store.Job, before string) (*Manifest, error) {
	return e.job(j, func(d *draft) error {
		at := len(d.steps.Content)
		if before != "" {
			var err error
			if at, err = d.find(before); err != nil {
				return err
			}
		}
		entry := &object{}
		for n := len(j.Steps); len(e.Given["name"]) == 0; n++ {
			if free := stepName(n); !slices.ContainsFunc(j.Steps, func(s store.Step) bool { return s.Name == free }) {
				entry.set("name", quoted(free))
				break
			}
		}
		d.steps.Content = slices.Insert(d.steps.Content, at, entry.node())
		d.job = &store.Job{} // its steps have other indexes now
		e.stepKeys(d, at)
		return nil
	})
}

// AlterStep sets the fields of a step to the values of the flags, and removes the fields that are reset.
func (e Edit) AlterStep(j store.Job, name string) (*Manifest, error) {
	return e.job(j, func(d *draft) error {
		i, err := d.find(name)
		if err != nil {
			return err
		}
		entry := d.at(i)
		for _, name := range e.Reset {
			fl, err := e.flag(name, StepFlags())
			if err != nil {
				return err
			}
			entry.drop(fl.Path)
		}
		d.keep(i, entry)
		e.stepKeys(d, i)
		return nil
	})
}

// DropStep removes a step.
func (e Edit) DropStep(j store.Job, name string) (*Manifest, error) {
	return e.job(j, func(d *draft) error {
		i, err := d.find(name)
		if err != nil {
			return err
		}
		if len(d.steps.Content) == 1 {
			return &store.FieldError{Subject: "job " + j.FullName(), Field: "steps",
				Problem: "this is the only step, and a job needs one; remove the job, or change the step with dbjobs job step alter"}
		}
		d.steps.Content = slices.Delete(d.steps.Content, i, i+1)
		return nil
	})
}

// AddSchedule adds a shared schedule to a job, by its name, or adds a rule of the job's own. known has the
// names of the shared schedules: a text among them is a name.
func (e Edit) AddSchedule(j store.Job, text string, known []string) (*Manifest, error) {
	refuse := func(problem string) error {
		return &store.FieldError{Subject: "job " + j.FullName(), Field: "schedules", Problem: problem}
	}
	return e.job(j, func(d *draft) error {
		switch rule := asRule(text, "UTC", e.Now); {
		case slices.Contains(j.Schedules, text):
			return refuse("it uses schedule " + text + " already")
		case slices.Contains(known, text) || rule != nil:
			if len(e.Given) > 0 {
				return refuse("a schedule has a zone of its own; change it with dbjobs schedule alter")
			}
			d.drop("schedule")
			d.set("schedules", list(append(slices.Clone(j.Schedules), text)))
			return nil
		case j.Own != nil:
			return refuse("it has a rule of its own already (" + j.Own.Rule + "); change that with dbjobs job alter --rule, or create a schedule and add its name")
		}
		d.set("rule.rule", quoted(text))
		return e.when(d)
	})
}

// DropSchedule removes a shared schedule from a job, by its name, or the job's own rule, by its text.
func (e Edit) DropSchedule(j store.Job, text string) (*Manifest, error) {
	return e.job(j, func(d *draft) error {
		if i := slices.Index(j.Schedules, text); i >= 0 {
			d.drop("schedule")
			if d.drop("schedules"); len(j.Schedules) > 1 {
				d.set("schedules", list(slices.Delete(slices.Clone(j.Schedules), i, i+1)))
			}
			return nil
		}
		if j.Own != nil && j.Own.Rule == text {
			d.drop("rule")
			return nil
		}
		has := slices.Clone(j.Schedules)
		if j.Own != nil {
			has = append(has, j.Own.Rule)
		}
		problem := "it has none"
		if len(has) > 0 {
			problem = excerpt(text) + " is not among them; " + oneOf(text, has)
		}
		return &store.FieldError{Subject: "job " + j.FullName(), Field: "schedules", Problem: problem}
	})
}

// Schedule sets the fields of a schedule to the values of the flags, and removes the fields that are reset.
func (e Edit) Schedule(s store.Schedule) (*Manifest, error) {
	entry := &object{}
	if is := scheduleNode(s, ""); is.Kind == yaml.MappingNode {
		entry = &object{*is}
	} else {
		entry.put("rule", is)
	}
	for _, name := range e.Reset {
		fl, err := e.flag(name, RuleFlags)
		if err != nil {
			return nil, err
		}
		entry.drop(fl.Path)
	}
	for _, fl := range RuleFlags {
		if values := e.Given[fl.Name]; len(values) > 0 {
			entry.set(fl.Path, fl.node(values))
		}
	}
	f := &file{decoder: &decoder{file: e.Command}, m: &Manifest{}, now: e.Now, names: map[string]bool{}}
	if node := f.reread(e.Given, entry); node != nil {
		all := &object{}
		all.put(s.Name, node)
		f.readSchedules(all.node())
	}
	if err := f.flagError("schedules", s.Name, RuleFlags); err != nil {
		return nil, err
	}
	to := &f.m.Schedules[0]
	to.ID, to.Manifest, to.CreatedAt = s.ID, s.Manifest, s.CreatedAt
	return f.m, nil
}
