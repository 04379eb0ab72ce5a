package manifest

import (
	"slices"

	"github.com/dbjobs/dbjobs/store"
)

// Unreadable is a definition that plain SQL has left so that it cannot be written as part of a file.
type Unreadable struct{ Kind, Name, Problem string }

// TakeUnreadable removes from the definitions those that Encode could not write, or would write with other values than
// the database has, and returns them. So one of them does not keep the others out of a file.
func TakeUnreadable(d *store.Definitions) (list []Unreadable) {
	taken := func(kind, name, problem string) bool {
		if problem != "" {
			list = append(list, Unreadable{kind, name, problem})
		}
		return problem != ""
	}
	ofRow := func(fault string) string {
		if fault != "" {
			fault = "its row cannot be read: " + fault
		}
		return fault
	}
	d.Groups = slices.DeleteFunc(d.Groups, func(g store.Group) bool { return taken("group", g.Name, ofRow(g.Fault)) })
	d.Calendars = slices.DeleteFunc(d.Calendars, func(c store.Calendar) bool { return taken("calendar", c.Name, ofRow(c.Fault)) })
	d.Schedules = slices.DeleteFunc(d.Schedules, func(s store.Schedule) bool { return taken("schedule", s.Name, ofRow(s.Fault)) })
	d.Jobs = slices.DeleteFunc(d.Jobs, func(j store.Job) bool {
		problem := ofRow(j.Fault())
		for i := range j.Steps {
			if _, err := stepNode(j.Steps[i], true); err != nil && problem == "" {
				problem = err.Error()
			}
		}
		return taken("job", j.FullName(), problem)
	})
	return list
}
