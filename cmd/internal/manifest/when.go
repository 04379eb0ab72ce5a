package manifest

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// whenNodes are the keys of a job that say when it runs. A key that is not given is nil.
type whenNodes struct{ schedule, schedules, rule, zone *yaml.Node }

// holds keeps the value of a key for later.
func holds(into **yaml.Node) reading {
	return func(_ *decoder, n *yaml.Node, _ string) { *into = n }
}

// readWhen reads when the job runs: by shared schedules, by a rule of its own, or both. It returns the zone for
// a rule that names none.
func (f *file) readWhen(j *store.Job, when whenNodes, path string) (zone string) {
	zone = f.zone
	if when.zone != nil {
		f.readZone(&zone, when.zone, join(path, "zone"))
	}
	if when.schedule != nil && when.schedules != nil {
		f.problem(when.schedules, join(path, "schedules"), "write schedule or schedules, not both")
	}
	if when.schedules != nil {
		f.scheduleNames(j, when.schedules, join(path, "schedules"))
	}
	ruleNode, rulePath := when.rule, join(path, "rule")
	if when.schedule != nil && f.isRule(when.schedule, zone) {
		if ruleNode != nil {
			f.problem(when.schedule, join(path, "schedule"), "a job has one rule of its own; it is in line %d", ruleNode.Line)
		}
		ruleNode, rulePath = when.schedule, join(path, "schedule")
	} else if when.schedule != nil {
		f.scheduleName(j, when.schedule, join(path, "schedule"))
	}
	if ruleNode != nil {
		own, places := &store.Schedule{}, f.places
		if f.readRule(own, ruleNode, rulePath, "job "+j.Name, j.Name, zone) {
			j.Own = own
		}
		f.places = places
	} else if when.zone != nil && j.Start == "" {
		f.problem(when.zone, join(path, "zone"), "is for a rule of the job's own, and there is none; a schedule has its own zone")
	}
	return zone
}

// isRule reports whether the value of schedule is a rule: a mapping, or a text that can be read as a rule and
// is not the name of a schedule of the file.
func (f *file) isRule(n *yaml.Node, zone string) bool {
	switch n = followed(n); n.Kind {
	case yaml.MappingNode:
		return true
	case yaml.ScalarNode:
		return n.ShortTag() == "!!str" && !f.names[n.Value] && asRule(n.Value, zone, f.now) == nil
	}
	return false
}

// asRule returns why a text is no rule. One that has no time from now on is a rule.
func asRule(text, zone string, now time.Time) error {
	_, err := rules.Parse(text, rules.Defaults{Zone: zone, Start: now, Seed: "seed"})
	if onlyNow(err, text) {
		return nil
	}
	return err
}

// scheduleName reads the name of a shared schedule.
func (f *file) scheduleName(j *store.Job, n *yaml.Node, path string) {
	if followed(n).Kind == yaml.SequenceNode {
		f.problem(n, path, "found a list, want the name of one schedule, or a rule; for several names write schedules")
		return
	}
	name, before := "", len(f.problems)
	if text(&name)(f.decoder, n, path); len(f.problems) == before {
		j.Schedules = []string{name}
		f.useSchedule(name, n, path)
	}
}

// scheduleNames reads the names of shared schedules.
func (f *file) scheduleNames(j *store.Job, n *yaml.Node, path string) {
	texts(&j.Schedules)(f.decoder, n, path)
	for i, name := range j.Schedules {
		f.useSchedule(name, n, fmt.Sprintf("%s[%d]", path, i))
	}
}
