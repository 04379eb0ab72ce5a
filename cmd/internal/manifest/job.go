package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// readJob reads one entry of jobs. Its steps are steps:, or one step written into the job as sql:.
func (f *file) readJob(p pair) {
	before := len(f.problems)
	places := map[string]*yaml.Node{}
	f.places = places
	j := f.defaults
	j.Name = p.key.Value
	path := join("jobs", j.Name)
	var single sqlKeys
	var ruleNode, scheduleNode, stepsNode, schedulesNode *yaml.Node
	fields := []field{
		{"schedule", func(_ *decoder, n *yaml.Node, path string) { scheduleNode = n; f.scheduleNames(&j, n, path, false) }},
		{"schedules", func(_ *decoder, n *yaml.Node, path string) { schedulesNode = n; f.scheduleNames(&j, n, path, true) }},
		{"rule", func(_ *decoder, n *yaml.Node, _ string) { ruleNode = n }},
		{"steps", func(d *decoder, n *yaml.Node, path string) { stepsNode = n; j.Steps = readSteps(d, n, path) }},
	}
	fields = append(append(append(fields, sqlFields(&single)...), policies(&j, false)...), policies(&j, true)...)
	f.mapping(p.value, path, fields)

	if scheduleNode != nil && schedulesNode != nil {
		f.problem(schedulesNode, join(path, "schedules"), "write schedule or schedules, not both")
	}
	if ruleNode != nil {
		own := &store.Schedule{}
		if f.readRule(own, ruleNode, join(path, "rule"), j.Name) {
			j.Own = own
		}
		f.places = places
	}
	if len(f.problems) > before {
		return
	}
	if f.singleStep(&j, single, stepsNode, p.key, path); len(f.problems) > before {
		return
	}
	if f.readStart(&j, path); len(f.problems) > before {
		return
	}
	f.dropDefaults(&j, path)
	j.Normalize()
	if err := j.Validate(); err != nil {
		f.invalid(err, p.key, path)
		return
	}
	f.m.Jobs = append(f.m.Jobs, j)
}

// readStart finds the zone of a start schedule, and tries it: that of the job's own rule, else that of the file.
func (f *file) readStart(j *store.Job, path string) {
	if j.Start == "" {
		return
	}
	j.Start = strings.TrimSpace(j.Start)
	switch {
	case j.StartZone != "":
	case j.Own != nil:
		j.StartZone = j.Own.Zone
	default:
		j.StartZone = f.zone
	}
	if _, err := rules.Parse(j.Start, rules.Defaults{Zone: j.StartZone, Start: f.now}); err != nil {
		f.problem(f.places[join(path, "start")], join(path, "start"), "%s", strings.TrimPrefix(err.Error(), "rule: "))
	}
}

// dropDefaults takes away what a job has from the defaults of the file, and which says nothing beside what the job itself
// says.
func (f *file) dropDefaults(j *store.Job, path string) {
	inherited := func(key string) bool { return f.places[path+"."+key] == nil }
	if j.Overlap != "allow" && inherited("max_running") {
		j.MaxRunning = 0
	}
	if j.Missed != "all" && inherited("missed_limit") {
		j.MissedLimit = 0
	}
	if j.Missed != "skip" && inherited("missed_grace") {
		j.MissedGrace = 0
	}
	if j.OnError == "pause" && inherited("pause_after_failures") {
		j.PauseAfterFailures = 0
	}
	if r := &j.Retry; r.MaxBackoff != nil && r.Backoff != nil && *r.MaxBackoff < *r.Backoff && inherited("retry.max_backoff") {
		r.MaxBackoff = nil
	}
}

// singleStep makes the step of a job that has sql: in place of steps:.
func (f *file) singleStep(j *store.Job, spec sqlKeys, steps, key *yaml.Node, path string) {
	switch written := len(spec.SQL) > 0; {
	case steps == nil && !written && (len(spec.args) > 0 || spec.Atomic):
		f.problem(key, path, "args and atomic belong to sql, which is missing")
	case steps == nil && !written:
		f.problem(key, path, "the job does nothing: sql or steps is missing")
	case steps != nil && (written || len(spec.args) > 0 || spec.Atomic):
		f.problem(steps, join(path, "steps"), "write sql, args and atomic in the steps, or leave steps out")
	case written:
		j.Steps = []store.Step{{Name: stepName(0), Executor: "sql", Spec: encodeSpec(spec.SQLSpec)}}
	}
}

// scheduleNames reads the names of shared schedules; those that the file does not define are kept for Resolve.
func (f *file) scheduleNames(j *store.Job, n *yaml.Node, path string, several bool) {
	if several {
		texts(&j.Schedules)(f.decoder, n, path)
	} else {
		name, before := "", len(f.problems)
		if text(&name)(f.decoder, n, path); len(f.problems) == before {
			j.Schedules = []string{name}
		}
	}
	for i, name := range j.Schedules {
		if f.names[name] {
			continue
		}
		where := path
		if several {
			where = fmt.Sprintf("%s[%d]", path, i)
		}
		at := f.places[where]
		if at == nil {
			at = n
		}
		f.m.elsewhere = append(f.m.elsewhere,
			reference{name, Problem{File: f.file, Line: at.Line, Column: at.Column, Path: where}})
	}
}

// stepName is the name of a step that has none, as package store gives it.
func stepName(i int) string { return fmt.Sprintf("step %d", i+1) }

func encodeSpec(spec store.SQLSpec) json.RawMessage {
	b, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("manifest: a spec of texts and numbers: %v", err)) // a decoder let something else in
	}
	return b
}
