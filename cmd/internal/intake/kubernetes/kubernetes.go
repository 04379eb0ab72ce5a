// Package kubernetes reads CronJobs. The input is YAML or JSON of one or several documents, with or without lists,
// as kubectl get cronjobs -o yaml writes it.
package kubernetes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// header has what each object has, and the objects of a list.
type header struct {
	Kind  string      `yaml:"kind"`
	Items []yaml.Node `yaml:"items"`
}

// object is a CronJob.
type object struct {
	header   `yaml:",inline"`
	Metadata struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Spec struct {
		Schedule    string `yaml:"schedule"`
		TimeZone    string `yaml:"timeZone"`
		Concurrency string `yaml:"concurrencyPolicy"`
		Suspend     bool   `yaml:"suspend"`
		Deadline    *int64 `yaml:"startingDeadlineSeconds"`
		Succeeded   *int64 `yaml:"successfulJobsHistoryLimit"`
		Failed      *int64 `yaml:"failedJobsHistoryLimit"`
		JobTemplate struct {
			Spec jobSpec `yaml:"spec"`
		} `yaml:"jobTemplate"`
	} `yaml:"spec"`
}

type jobSpec struct {
	BackoffLimit *int64 `yaml:"backoffLimit"`
	Deadline     *int64 `yaml:"activeDeadlineSeconds"`
	Parallelism  *int64 `yaml:"parallelism"`
	Completions  *int64 `yaml:"completions"`
	TTL          *int64 `yaml:"ttlSecondsAfterFinished"`
	Template     struct {
		Spec struct {
			Init       []container `yaml:"initContainers"`
			Containers []container `yaml:"containers"`
			Account    string      `yaml:"serviceAccountName"`
			Volumes    []yaml.Node `yaml:"volumes"`
		} `yaml:"spec"`
	} `yaml:"template"`
}

type container struct {
	Name    string   `yaml:"name"`
	Image   string   `yaml:"image"`
	Command []string `yaml:"command"`
	Args    []string `yaml:"args"`
	Dir     string   `yaml:"workingDir"`
	Env     []struct {
		Name  string     `yaml:"name"`
		Value string     `yaml:"value"`
		From  *yaml.Node `yaml:"valueFrom"`
	} `yaml:"env"`
	EnvFrom []yaml.Node `yaml:"envFrom"`
	Mounts  []yaml.Node `yaml:"volumeMounts"`
}

// Options has what the objects do not say.
type Options struct {
	Source  string
	Zone    string    // of the controller, for CronJobs without a timeZone
	Command bool      // the jobs run the command of the container, and make no Job
	From    time.Time // clock changes are examined for a year from here
}

// Read reads objects. An error means that the text is no YAML.
func Read(text string, o Options) (*intake.Result, error) {
	if o.Zone == "" {
		o.Zone = "UTC"
	}
	r := &intake.Result{Source: o.Source, Zone: o.Zone}
	loader, err := yaml.NewLoader(bytes.NewReader(manifest.Paired([]byte(text))))
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		var node yaml.Node
		if err := loader.Load(&node); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if node.Kind == yaml.DocumentNode && len(node.Content) > 0 && node.Content[0].ShortTag() == "!!null" {
			continue // nothing between two lines ---
		}
		r.Items = append(r.Items, objects(&node, "", n, o)...)
	}
	if r.Imported() > 0 {
		r.Head = head(o)
	}
	return r, nil
}

func head(o Options) []string {
	list := []string{"All jobs are disabled. To move one: kubectl patch cronjob NAME -p '{\"spec\":{\"suspend\":true}}', delete disabled: true here, and apply."}
	if o.Command {
		list = append(list, "The commands run where the tick runs, as its user, and not in their images: programs, files, mounts and "+
			"secrets of the pod have to be there, and the settings of the host have to allow the programs.")
	} else {
		list = append(list, "Each run makes a Job from the CronJob, and waits for its end: so image, volumes, backoffLimit, "+
			"activeDeadlineSeconds and parallelism stay as they are. Suspend the CronJob, and do not delete it. The tick needs kubectl with "+
			"the right to get cronjobs and to create, get, list, watch and delete jobs: a run that is tried again replaces its failed Job. "+
			"The settings of the host have to allow /bin/sh. --command writes the command of the container instead.",
			"A run that is stopped (cancel, timeout, the end of a pass) leaves its Job; only with overlap: replace it is deleted. Programs get a "+
				"clean environment: where the tick runs in a pod, kubectl needs env: {KUBERNETES_SERVICE_HOST: kubernetes.default.svc, KUBERNETES_SERVICE_PORT: 443}.")
	}
	return append(list, "Zone: a CronJob without timeZone has that of the controller, taken as "+o.Zone+" (--zone).",
		"Missed: as in Kubernetes, the latest time that was missed runs afterwards.")
}

// objects makes items from an object, or from the objects of a list. kind is that of an object of a list which does not
// say its own. An object that cannot be read leaves the others of its list as they are.
func objects(node *yaml.Node, kind string, n int, o Options) (items []intake.Item) {
	var head header
	err := node.Decode(&head)
	if head.Kind == "" {
		head.Kind = kind
	}
	if list, is := strings.CutSuffix(head.Kind, "List"); is && err == nil {
		for i := range head.Items {
			items = append(items, objects(&head.Items[i], list, n, o)...)
		}
		return items
	}
	var doc object
	if err == nil {
		err = node.Decode(&doc)
	}
	name := strings.TrimPrefix(doc.Metadata.Namespace+"/"+doc.Metadata.Name, "/")
	it := intake.Item{Place: strings.TrimSpace(strings.ToLower(head.Kind) + " " + name)}
	switch {
	case head.Kind == "":
		it.Place = fmt.Sprintf("document %d", n)
		it.Reason = "It has no kind, so it is no object of Kubernetes."
		if err != nil {
			it.Reason = fmt.Sprintf("It is no object of Kubernetes: %s.", misplaced(err))
		}
	case head.Kind != "CronJob":
		it.Reason = "It is no CronJob; it stays in Kubernetes."
	case err != nil:
		it.Reason = fmt.Sprintf("It is not of the form of a CronJob: %s.", misplaced(err))
	case doc.Metadata.Name == "":
		it.Reason = "It has no name."
	default:
		cronJob(&it, &doc, o)
	}
	return append(items, it)
}

// misplaced names the values of an object that are of a wrong kind. The YAML library names the types of Go that it fills.
func misplaced(err error) string {
	failures, ok := errors.AsType[*yaml.LoadErrors](err)
	if !ok {
		return err.Error()
	}
	var list []string
	for _, e := range failures.Errors {
		text := e.Message
		found, is := strings.CutPrefix(text, "cannot construct ")
		if end := strings.LastIndex(found, " into "); is && end >= 0 { // a value may have this word, too
			into := found[end+len(" into "):]
			switch tag, value, _ := strings.Cut(found[:end], " "); tag {
			case "!!seq":
				found = "a list"
			case "!!map":
				found = "a mapping"
			default:
				found = value
			}
			text = fmt.Sprintf("%s stands in the place of %s", found, kindOf(into))
		}
		list = append(list, fmt.Sprintf("line %d: %s", e.Mark.Line, text))
	}
	return strings.Join(list, "; ")
}

// kindOf returns what YAML has for a type of Go.
func kindOf(into string) string {
	switch {
	case strings.HasPrefix(into, "[]"):
		return "a list"
	case strings.HasSuffix(into, "int64"):
		return "a whole number"
	case into == "bool":
		return "true or false"
	case into == "string":
		return "a text"
	}
	return "a mapping"
}

// cronJob makes a job from a CronJob, or says why it cannot.
func cronJob(it *intake.Item, doc *object, o Options) {
	s := &doc.Spec
	it.Source = s.Schedule
	for _, c := range s.JobTemplate.Spec.Template.Spec.Containers {
		it.Source += fmt.Sprintf(" %s: %s", c.Image, strings.Join(append(append([]string{}, c.Command...), c.Args...), " "))
	}
	note := func(format string, args ...any) { it.Notes = append(it.Notes, fmt.Sprintf(format, args...)) }
	j := &store.Job{Name: intake.Kept(doc.Metadata.Name)}
	var err error
	if j.Own, err = when(s.Schedule, cmp.Or(s.TimeZone, o.Zone), o.From, note); err != nil {
		it.Reason = err.Error() + "; write the job by hand."
		return
	}
	switch s.Concurrency {
	case "Forbid":
		forbid(j, s.Deadline, note)
	case "Replace":
		j.Overlap = store.OverlapReplace
		note("concurrencyPolicy: Replace is overlap: replace.")
	default:
		j.Overlap, j.MaxRunning = store.OverlapAllow, 10
		note("concurrencyPolicy: Allow has no bound; here max_running is one.")
	}
	if s.Deadline != nil && *s.Deadline > 0 {
		j.MissedWithin = store.Duration(time.Duration(*s.Deadline) * time.Second)
		note("startingDeadlineSeconds: %d is missed_within.", *s.Deadline)
	}
	if s.Suspend {
		note("It is suspended in Kubernetes, too.")
	}
	if s.Succeeded != nil || s.Failed != nil {
		note("The history limits hold for Jobs in Kubernetes only; here keep says how many runs stay.")
	}
	if o.Command {
		err = command(j, &s.JobTemplate.Spec, note)
	} else {
		gone(j, s.Succeeded, s.JobTemplate.Spec.TTL, note)
		create(j, doc.Metadata.Namespace, doc.Metadata.Name, note)
	}
	if err != nil {
		it.Reason = err.Error() + "."
		return
	}
	it.Definition = j
}

// forbid gives the job the policy of Forbid. Kubernetes makes no Job while another one is active, but does not count the
// time as done. So when that Job ends, it makes one for the latest time, unless that is older than the deadline.
func forbid(j *store.Job, deadline *int64, note func(string, ...any)) {
	if deadline == nil {
		j.Overlap = store.OverlapWait
		note("concurrencyPolicy: Forbid without startingDeadlineSeconds is overlap: wait: when a run ends, what became due meanwhile " +
			"runs once, as in Kubernetes. To leave it out: overlap: skip.")
		return
	}
	j.Overlap = store.OverlapSkip
	note("concurrencyPolicy: Forbid is overlap: skip. When a run ends, Kubernetes still runs the latest time if it is at most %d "+
		"seconds old; overlap: wait runs it however old it is.", *deadline)
}

// every writes a length as Kubernetes reads it: in whole seconds, and at least one.
func every(length time.Duration) string {
	seconds := max(1, int64(length/time.Second))
	switch {
	case seconds%3600 == 0:
		return fmt.Sprintf("every %dh", seconds/3600)
	case seconds%60 == 0:
		return fmt.Sprintf("every %dm", seconds/60)
	}
	return fmt.Sprintf("every %ds", seconds)
}

var ends = [5]string{"59", "23", "31", "12", "6"}
var begins = [5]string{"0", "0", "1", "1", "0"}

// when reads a schedule as Kubernetes does: 7 is not Sunday, 5/10 means 5-59/10, a day field with a step counts as
// restricted, and a zone before the fields, as in TZ=Asia/Tokyo, precedes that of the CronJob.
func when(schedule, zone string, from time.Time, note func(string, ...any)) (*store.Schedule, error) {
	schedule = strings.TrimSpace(schedule)
	if first, rest, found := strings.Cut(schedule, " "); found {
		if name, found := strings.CutPrefix(strings.TrimPrefix(first, "CRON_"), "TZ="); found {
			zone, schedule = cmp.Or(name, "UTC"), strings.TrimSpace(rest)
			note("The zone %s stood in its schedule.", zone)
		}
	}
	if zone == "Etc/UTC" {
		zone = "UTC"
	}
	own := &store.Schedule{Zone: zone}
	if _, err := rules.Parse("every 1h", rules.Defaults{Zone: zone}); err != nil {
		return nil, fmt.Errorf("its zone cannot be used: %w", err)
	}
	text := schedule
	if length, found := strings.CutPrefix(schedule, "@every "); found {
		each, err := time.ParseDuration(length)
		if err != nil || each <= 0 {
			return nil, fmt.Errorf("the schedule is %.60q, which is no length of time", schedule)
		}
		own.Rule = every(each)
		if _, err := rules.Parse(own.Rule, rules.Defaults{Zone: zone}); err != nil {
			return nil, fmt.Errorf("the schedule is %.60q: %w", schedule, err)
		}
		note("Kubernetes counts %s from its last start; here it is counted from midnight UTC of 1970.", schedule)
		return own, nil
	}
	if five, found := map[string]string{"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *"}[strings.ToLower(schedule)]; found {
		text = five
	}
	list := strings.Fields(text)
	if len(list) != 5 {
		return nil, fmt.Errorf("the schedule is %.60q, which has not five fields", schedule)
	}
	fields := [5]string(list)
	for i := range fields {
		items := strings.Split(fields[i], ",")
		for k, item := range items {
			head, step, stepped := strings.Cut(item, "/")
			if head == "?" {
				head = "*"
			}
			switch {
			case stepped && step != "1" && head == "*" && (i == 2 || i == 4):
				head = begins[i] + "-" + ends[i]
			case stepped && head != "*" && !strings.Contains(head, "-"):
				head += "-" + ends[i]
			}
			if i == 4 && strings.Contains(head, "7") {
				return nil, fmt.Errorf("the schedule is %.60q: to Kubernetes, days of the week are 0 to 6", schedule)
			}
			if items[k] = head; stepped {
				items[k] += "/" + step
			}
		}
		fields[i] = strings.Join(items, ",")
		if (i == 2 || i == 4) && (slices.Contains(items, "*") || slices.Contains(items, "*/1")) {
			fields[i] = "*" // a star counts anywhere in the list, and not at its beginning only
		}
	}
	c, err := intake.ReadCron(fields)
	if err == nil {
		own.Rule, err = c.Rule(fields)
	}
	if err != nil {
		return nil, err
	}
	if text != schedule {
		own.Rule = strings.ToLower(schedule)
	} else if own.Rule != schedule {
		note("The schedule was %s; here the same is %s.", schedule, own.Rule)
	}
	if !c.DayStar && !c.WeekdayStar {
		note("It runs on days that match %s, and on days that match %s, here as in Kubernetes: either is enough.", list[2], list[4])
	}
	nights, err := c.Nights(own, intake.Plain, "Kubernetes", from)
	for _, night := range nights {
		note("%s", night)
	}
	return own, err
}
