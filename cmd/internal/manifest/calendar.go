package manifest

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/cmd/internal/holiday"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// readCalendars reads the calendars: each a list of days, or a mapping with days, a file with days, or
// both.
func (f *file) readCalendars(n *yaml.Node) {
	if n == nil {
		return
	}
	for _, p := range f.pairs(n, "calendars", "a mapping of calendars by name") {
		c := store.Calendar{Name: p.key.Value}
		path := join("calendars", c.Name)
		if !f.once(p.key, path) {
			continue
		}
		before := len(f.problems)
		f.places = map[string]*yaml.Node{}
		if v, ok := f.enter(p.value, path); ok && v.Kind == yaml.SequenceNode {
			f.days(&c)(f.decoder, v, path)
		} else if ok {
			f.mapping(v, path, f.calendarFields(&c))
		}
		if len(f.problems) > before {
			continue
		}
		c.Normalize()
		if err := c.Validate(); err != nil {
			f.invalid(err, p.key, path)
			continue
		}
		read, err := rules.ParseCalendar(c.Name, c.WorkingDays, c.Text())
		if err != nil {
			f.problem(p.key, path, "%v", err)
			continue
		}
		f.calendars[c.Name] = read
		f.m.Calendars = append(f.m.Calendars, c)
	}
}

func (f *file) calendarFields(c *store.Calendar) []field {
	return []field{
		{"working_days", text(&c.WorkingDays)},
		{"days", f.days(c)},
		{"file", f.daysFile(c)},
		{"description", text(&c.Description)},
	}
}

// days reads a list of days. YAML reads 2026-12-25 as a time.
func (f *file) days(c *store.Calendar) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		for i, item := range d.items(n, path) {
			at := fmt.Sprintf("%s[%d]", path, i)
			day, ok := d.scalar(item, at, "a day, such as 2026-12-25 Christmas Day", "!!str", "!!timestamp")
			if !ok {
				continue
			}
			if _, err := rules.ParseCalendar(c.Name, "", day.Value); err != nil {
				d.problem(day, at, "%s", strings.TrimPrefix(err.Error(), "line 1: "))
				continue
			}
			c.Days = append(c.Days, day.Value)
		}
	}
}

// daysFile reads a file of days. A relative path begins in the folder of the manifest.
func (f *file) daysFile(c *store.Calendar) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		name := ""
		if text(&name)(d, n, path); name == "" {
			return
		}
		if f.alone {
			d.problem(n, path, "no file can be read here; put its days under days")
			return
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(f.file), name)
		}
		days, err := holiday.ReadFile(name, f.open, f.now)
		if err != nil {
			d.problem(n, path, "%v", err)
			return
		}
		c.Days = append(c.Days, days...)
	}
}

// calendarNode writes a calendar. If the calendar has only days, it writes the days alone.
func calendarNode(c store.Calendar) *yaml.Node {
	days := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, day := range c.Days {
		days.Content = append(days.Content, quoted(day))
	}
	o := &object{}
	o.text("working_days", c.WorkingDays, "")
	if len(c.Days) > 0 {
		o.put("days", days)
	}
	o.text("description", c.Description, "")
	if len(o.Content) == 2 && len(c.Days) > 0 {
		return days
	}
	return o.node()
}
