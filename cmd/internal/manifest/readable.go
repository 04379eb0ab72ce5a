package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// Unreadable is a definition that plain SQL has left so that it cannot be part of a file.
type Unreadable struct {
	Kind, Name, Problem string
	Follows             bool // nothing is wrong with it but that it needs another one that is left out
}

// examined is a definition read back from its own entry of a file.
type examined struct {
	problem string
	follows bool // the problem is that another definition is left out
	uses    []use
	job     store.Job       // its names: a rule needs no more of it
	rule    *store.Schedule // the schedule, or the rule of the job's own; nil: it has none
	now     time.Time
}

// use is a name that a definition uses, and the key that has it.
type use struct {
	store.Reference
	key string
}

// TakeUnreadable removes from the definitions those that Encode could not write, or would write with other values than
// the database has, and those that no apply would accept, because of a value, because they name something that is
// gone or removed here, or because their calendar leaves them no time. It returns them. So one of them does not keep the
// others out of a file, nor out of a database. find finds the definitions that references name.
func TakeUnreadable(d *store.Definitions, find func([]store.Reference) (*store.Known, error)) (list []Unreadable, err error) {
	now := time.Now()
	schedules, jobs := make([]examined, len(d.Schedules)), make([]examined, len(d.Jobs))
	var names []store.Reference
	for i := range d.Schedules {
		schedules[i] = examineSchedule(&d.Schedules[i], now)
		names = append(names, named(schedules[i])...)
	}
	for i := range d.Jobs {
		jobs[i] = examineJob(&d.Jobs[i], now)
		names = append(names, named(jobs[i])...)
	}
	known, err := find(names)
	if err != nil {
		return nil, err
	}
	out := map[store.Reference]bool{} // what is removed, by kind and name
	taken := func(kind, name, problem string, follows bool) bool {
		if problem != "" {
			list = append(list, Unreadable{kind, name, problem, follows})
			out[store.Reference{Kind: kind, Name: name}] = true
		}
		return problem != ""
	}
	d.Groups = slices.DeleteFunc(d.Groups, func(g store.Group) bool {
		return taken("group", g.Name, cmp.Or(ofRow(g.Fault), said(g.Validate())), false)
	})
	d.Calendars = slices.DeleteFunc(d.Calendars, func(c store.Calendar) bool {
		return taken("calendar", c.Name, cmp.Or(ofRow(c.Fault), ofDays(&c)), false)
	})
	i := 0
	d.Schedules = slices.DeleteFunc(d.Schedules, func(s store.Schedule) bool {
		i++
		x := &schedules[i-1]
		problem := x.wrong(known, out)
		return taken("schedule", s.Name, problem, x.follows)
	})
	for n := -1; n < len(out); { // a job may name one that comes later
		n, i = len(out), 0
		d.Jobs = slices.DeleteFunc(d.Jobs, func(j store.Job) bool {
			i++
			x := &jobs[i-1]
			problem := x.wrong(known, out)
			return taken("job", j.FullName(), problem, x.follows)
		})
		jobs = slices.DeleteFunc(jobs, func(x examined) bool { return x.problem != "" })
	}
	return list, nil
}

// wrong returns why the definition cannot be part of a file without the definitions that are out; empty if it can.
func (x *examined) wrong(known *store.Known, out map[store.Reference]bool) string {
	for _, r := range x.uses {
		if x.problem != "" {
			break
		}
		full := r.Name
		if r.Kind == store.KindJob && !strings.Contains(full, "/") {
			full = store.FullName(r.Owner, full)
		}
		if x.problem = known.Missing(r.Reference); x.problem == "" && out[store.Reference{Kind: r.Kind, Name: full}] {
			x.problem, x.follows = fmt.Sprintf("%s %q is left out, too", r.Kind, full), true
		}
		if x.problem != "" {
			x.problem = r.key + ": " + x.problem
		}
	}
	if x.problem != "" || x.rule == nil {
		return x.problem
	}
	if _, err := decide.First(x.job, *x.rule, known.Calendar(x.rule.Calendar), x.now); err != nil { // it has no time, or its calendar leaves it none
		x.problem = "rule: " + err.Error()
	}
	return x.problem
}

func named(x examined) (list []store.Reference) {
	for _, r := range x.uses {
		list = append(list, r.Reference)
	}
	return list
}

func ofRow(fault string) string {
	if fault != "" {
		fault = "its row cannot be read: " + fault
	}
	return fault
}

func said(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func ofDays(c *store.Calendar) string {
	if err := c.Validate(); err != nil {
		return err.Error()
	}
	_, err := rules.ParseCalendar(c.Name, c.WorkingDays, c.Text())
	return said(err)
}

func examineSchedule(s *store.Schedule, now time.Time) examined {
	if s.Fault != "" {
		return examined{problem: ofRow(s.Fault)}
	}
	x := examine("schedules", s.Name, scheduleNode(*s, ""), now, (*file).readSchedules)
	x.rule = s
	return x
}

func examineJob(j *store.Job, now time.Time) examined {
	problem := ofRow(j.Fault())
	if problem == "" && j.LostSchedule() {
		problem = "a schedule that it uses is gone"
	}
	if problem == "" && len(j.Steps) == 0 {
		problem = "it has no steps"
	}
	if problem != "" {
		return examined{problem: problem}
	}
	node, err := jobNode(*j, "", "")
	if err != nil {
		return examined{problem: err.Error()}
	}
	x := examine("jobs", j.Name, node, now, func(f *file, all *yaml.Node) { f.readJob(pair{all.Content[0], all.Content[1]}) })
	x.job, x.rule = store.Job{Owner: j.Owner, Name: j.Name}, j.Own
	return x
}

// examine reads the entry of one definition.
func examine(section, name string, node *yaml.Node, now time.Time, read func(*file, *yaml.Node)) (x examined) {
	x.now = now
	f := &file{decoder: &decoder{}, m: &Manifest{}, now: now, names: map[string]bool{}}
	path, all := join(section, name), &object{}
	all.put(name, node)
	if entry := f.reread(nil, all); entry != nil {
		read(f, entry)
	}
	key := func(p Problem) string { return strings.TrimPrefix(strings.TrimPrefix(p.Path, path), ".") }
	if len(f.problems) > 0 {
		p := f.problems[0]
		if x.problem = p.Text; key(p) != "" {
			x.problem = key(p) + ": " + p.Text
		}
	}
	for _, r := range f.references {
		if r.Kind != kindTarget {
			x.uses = append(x.uses, use{r.Reference, key(r.at)})
		}
	}
	return x
}
