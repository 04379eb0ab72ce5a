package manifest

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// jobReading has the keys of a job, and the values that were read for them. The keys are made once for a file:
// there are about eighty, and a job gives a few.
type jobReading struct {
	fields []field

	job    store.Job
	single given // the step that is written into the job
	when   whenNodes
	former string // renamed_from
	steps  *yaml.Node
}

func newJobReading() *jobReading {
	k := &jobReading{}
	k.fields = []field{
		{"schedule", holds(&k.when.schedule)}, {"schedules", holds(&k.when.schedules)}, {"rule", holds(&k.when.rule)}, {"zone", holds(&k.when.zone)},
		{"steps", func(d *decoder, n *yaml.Node, path string) { k.steps = n; k.job.Steps = readSteps(d, n, path) }},
	}
	k.fields = append(append(append(k.fields, k.single.fields()...), policies(&k.job, false)...), policies(&k.job, true)...)
	k.fields = append(k.fields, field{"renamed_from", text(&k.former)})
	return k
}

// begin forgets the values of the job before.
func (k *jobReading) begin(name string, defaults store.Job) {
	*k = jobReading{fields: k.fields, job: defaults, single: given{values: map[string]any{}}}
	k.job.Name = name
}

// readJob reads one entry of jobs. The job has a list under steps, or a single step whose keys, such as sql,
// stand in the job.
func (f *file) readJob(p pair) {
	before := len(f.problems)
	places := map[string]*yaml.Node{}
	f.places = places
	if f.job == nil {
		f.job = newJobReading()
	}
	k := f.job
	k.begin(p.key.Value, f.defaults)
	f.swallowed = nil
	path := join("jobs", k.job.Name)
	f.mapping(p.value, path, k.fields)
	j := &k.job // begin resets it for the next job

	zone := f.readWhen(j, k.when, path)
	f.useJobs(j, p.key, path)
	if len(f.problems) > before {
		return
	}
	if f.singleStep(j, &k.single, k.steps, p.key, path); len(f.problems) > before {
		return
	}
	if f.readStart(j, path, zone); len(f.problems) > before {
		return
	}
	f.dropDefaults(j, path)
	j.Normalize()
	if f.misnamedStep(j, p.key, path); len(f.problems) > before {
		return
	}
	if err := j.Validate(); err != nil {
		f.invalid(err, p.key, path)
		return
	}
	f.m.Jobs = append(f.m.Jobs, *j)
	f.swallowedOf(j)
	f.renamed("job", k.former, j.Name, path)
}

// renamed records the former name of a definition.
func (f *file) renamed(kind, from, to, path string) {
	switch {
	case from == to && from != "":
		f.problem(f.places[join(path, "renamed_from")], join(path, "renamed_from"), "is the current name; renamed_from needs the former one")
	case from != "":
		f.m.Renames = append(f.m.Renames, store.Rename{Kind: kind, From: from, To: to})
	}
}

// readStart checks the start schedule. Its zone is start_zone, or else the zone of the job's own rule, or else
// the given zone.
func (f *file) readStart(j *store.Job, path, zone string) {
	if j.Start == "" {
		return
	}
	switch {
	case j.StartZone != "":
	case j.Own != nil:
		j.StartZone = j.Own.Zone
	default:
		j.StartZone = zone
	}
	if _, err := rules.Parse(j.Start, rules.Defaults{Zone: j.StartZone, Start: f.now}); err != nil && !onlyNow(err, j.Start) { // a start that stays as it is has its instant already
		f.problem(f.places[join(path, "start")], join(path, "start"), "%v", err)
	}
}

// dropDefaults removes values that the job took from the defaults of the file and that have no meaning together
// with the job's own policies.
func (f *file) dropDefaults(j *store.Job, path string) {
	inherited := func(key string) bool { return f.places[path+"."+key] == nil }
	if j.Overlap != store.OverlapAllow && inherited("max_running") {
		j.MaxRunning = 0
	}
	if j.Missed != store.MissedAll && inherited("missed_limit") {
		j.MissedLimit = 0
	}
	if j.Missed != store.MissedSkip && inherited("missed_grace") {
		j.MissedGrace = 0
	}
	if j.OnError == store.OnErrorPause && inherited("pause_after_failures") {
		j.PauseAfterFailures = 0
	}
	if r := &j.Retry; r.MaxBackoff != nil && r.Backoff != nil && *r.MaxBackoff < *r.Backoff && inherited("retry.max_backoff") {
		r.MaxBackoff = nil
	}
}

// singleStep makes the step of a job that has the keys of an executor instead of a list of steps.
func (f *file) singleStep(j *store.Job, g *given, steps, key *yaml.Node, path string) {
	switch kind, whole := g.kind(); {
	case steps != nil && kind != nil:
		f.problem(steps, join(path, "steps"), "write %s in the steps, or leave steps out", and(keyNames(kind.Keys)))
	case steps != nil:
	case kind == nil:
		f.problem(key, path, "the job does nothing; add %s", or(append(does(), "steps")))
	case !whole:
		f.problem(key, path, "%s: a job with one of these keys needs %s, too", and(keyNames(kind.Keys[1:])), kind.Keys[0].Name)
	default:
		j.Steps = []store.Step{{Name: stepName(0), Executor: kind.Name, Spec: g.spec(f.decoder, key, path, path)}}
	}
}

// and lists names: a, b and c.
func and(names []string) string { return listed(names, " and ") }

// or lists names: a, b or c.
func or(names []string) string { return listed(names, " or ") }

func listed(names []string, word string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + word + names[last]
}

// stepName is the name that package store gives to a step without a name.
func stepName(i int) string { return fmt.Sprintf("step %d", i+1) }
