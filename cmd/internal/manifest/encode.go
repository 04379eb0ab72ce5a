package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
)

// Encode writes definitions as a manifest that Decode reads back as the same. What has its default is left out, and so
// is the owner of jobs that belong to login, since they get that owner when that login applies the file.
func Encode(w io.Writer, name string, d store.Definitions, login string) error {
	root := &object{}
	root.put("manifest", quoted(name))
	groups, schedules, jobs := &object{}, &object{}, &object{}
	for _, g := range d.Groups {
		groups.number(g.Name, int64(g.MaxRunning), 0)
	}
	for _, s := range d.Schedules {
		schedules.put(s.Name, scheduleNode(s))
	}
	for _, j := range d.Jobs {
		entry, err := jobNode(j, login)
		if err != nil {
			return fmt.Errorf("job %s: %w", j.Name, err)
		}
		jobs.put(j.Name, entry)
	}
	root.section("groups", groups)
	root.section("schedules", schedules)
	root.section("jobs", jobs)
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(root.node()); err != nil {
		return err
	}
	if err := enc.Close(); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}

func scheduleNode(s store.Schedule) *yaml.Node {
	s.Normalize()
	var usual store.Schedule
	usual.Normalize()
	o := &object{}
	o.put("rule", quoted(s.Rule))
	o.text("zone", s.Zone, usual.Zone)
	o.text("nonexistent", s.Nonexistent, usual.Nonexistent)
	o.text("ambiguous", s.Ambiguous, usual.Ambiguous)
	o.text("description", s.Description, "")
	if len(o.Content) == 2 {
		return o.Content[1]
	}
	return o.node()
}

// scheduleZone is the zone that a schedule has, if only by default.
func scheduleZone(s store.Schedule) string {
	s.Normalize()
	return s.Zone
}

func jobNode(j store.Job, login string) (*yaml.Node, error) {
	j.Normalize()
	var usual store.Job
	usual.Normalize()
	o := &object{}
	o.text("description", j.Description, "")
	o.text("owner", j.Owner, login)
	o.boolean("disabled", j.Disabled)
	switch len(j.Schedules) {
	case 0:
	case 1:
		o.put("schedule", quoted(j.Schedules[0]))
	default:
		o.put("schedules", list(j.Schedules))
	}
	if j.Own != nil {
		o.put("rule", scheduleNode(*j.Own))
	}
	if len(j.Tags) > 0 {
		o.put("tags", list(j.Tags))
	}
	o.text("queue", j.Queue, usual.Queue)
	o.number("priority", int64(j.Priority), int64(usual.Priority))
	o.text("group", j.Group, "")
	o.text("overlap", j.Overlap, usual.Overlap)
	o.number("max_running", int64(j.MaxRunning), int64(usual.MaxRunning))
	o.text("missed", j.Missed, usual.Missed)
	o.number("missed_limit", int64(j.MissedLimit), int64(usual.MissedLimit))
	o.duration("missed_within", j.MissedWithin, usual.MissedWithin)
	o.duration("missed_grace", j.MissedGrace, usual.MissedGrace)
	o.retry(j.Retry, usual.Retry)
	o.number("max_deliveries", int64(j.MaxDeliveries), int64(usual.MaxDeliveries))
	o.text("on_error", j.OnError, usual.OnError)
	o.number("pause_after_failures", int64(j.PauseAfterFailures), int64(usual.PauseAfterFailures))
	o.duration("timeout", j.Timeout, usual.Timeout)
	o.duration("jitter", j.Jitter, usual.Jitter)
	o.number("max_runs", j.MaxRuns, 0)
	if j.Start == "" { // else it is what start was resolved to
		o.instant("not_before", j.NotBefore)
	}
	o.instant("not_after", j.NotAfter)
	o.text("start", j.Start, "")
	zone := "UTC"
	if j.Own != nil {
		zone = scheduleZone(*j.Own)
	}
	o.text("start_zone", j.StartZone, zone)
	o.duration("repeat_after", j.RepeatAfter, 0)
	o.boolean("on_startup", j.OnStartup)
	o.text("after", j.After, "")
	keep := &object{}
	keep.number("runs", int64(j.Keep.Runs), int64(usual.Keep.Runs))
	keep.duration("age", j.Keep.Age, usual.Keep.Age)
	o.section("keep", keep)
	o.boolean("remove_when_done", j.RemoveDone)
	return o.node(), o.steps(j.Steps)
}

// object is a mapping under construction.
type object struct{ yaml.Node }

func (o *object) node() *yaml.Node {
	o.Kind = yaml.MappingNode
	return &o.Node
}

func (o *object) put(key string, value *yaml.Node) {
	o.Content = append(o.Content, quoted(key), value)
}

func (o *object) section(key string, s *object) {
	if len(s.Content) > 0 {
		o.put(key, s.node())
	}
}

func (o *object) text(key, value, usual string) {
	if value != usual && value != "" {
		o.put(key, quoted(value))
	}
}

func (o *object) number(key string, value, usual int64) {
	if value != usual {
		o.put(key, plain(strconv.FormatInt(value, 10)))
	}
}

func (o *object) boolean(key string, value bool) {
	if value {
		o.put(key, plain("true"))
	}
}

func (o *object) duration(key string, value, usual store.Duration) {
	if value != usual {
		o.put(key, plain(value.String()))
	}
}

func (o *object) instant(key string, value time.Time) {
	if !value.IsZero() {
		o.put(key, plain(value.UTC().Format(time.RFC3339Nano)))
	}
}

func (o *object) retry(r, usual store.Retry) {
	s := &object{}
	if r.Attempts != nil && (usual.Attempts == nil || *r.Attempts != *usual.Attempts) {
		text, _ := r.Attempts.MarshalText() // never fails
		s.put("attempts", plain(string(text)))
	}
	length := func(key string, value, usual *store.Duration) {
		if value != nil && (usual == nil || *value != *usual) {
			s.put(key, plain(value.String()))
		}
	}
	length("backoff", r.Backoff, usual.Backoff)
	length("max_backoff", r.MaxBackoff, usual.MaxBackoff)
	if r.Jitter != nil && (usual.Jitter == nil || *r.Jitter != *usual.Jitter) {
		s.put("jitter", plain(strconv.Itoa(*r.Jitter)))
	}
	o.section("retry", s)
}

// steps writes one plain step into the job, as sql:, and anything else as a list.
func (o *object) steps(steps []store.Step) error {
	all := &yaml.Node{Kind: yaml.SequenceNode}
	for i, s := range steps {
		if s.Executor != "sql" {
			return fmt.Errorf("step %s: this version cannot write the executor %s into a manifest", s.Name, s.Executor)
		}
		entry := &object{}
		if s.Name != stepName(i) {
			entry.text("name", s.Name, "")
		}
		if err := entry.spec(s.Spec); err != nil {
			return fmt.Errorf("step %s: %w", s.Name, err)
		}
		entry.duration("timeout", s.Timeout, 0)
		entry.retry(s.Retry, store.Retry{})
		entry.text("on_success", s.OnSuccess, "next")
		entry.text("on_failure", s.OnFailure, "fail")
		all.Content = append(all.Content, entry.node())
	}
	if len(all.Content) == 1 && onlySQL(all.Content[0]) {
		o.Content = append(o.Content, all.Content[0].Content...)
		return nil
	}
	o.put("steps", all)
	return nil
}

func onlySQL(step *yaml.Node) bool {
	for i := 0; i < len(step.Content); i += 2 {
		if !slices.Contains([]string{"sql", "args", "atomic"}, step.Content[i].Value) {
			return false
		}
	}
	return true
}

func (o *object) spec(raw json.RawMessage) error {
	var spec store.SQLSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return fmt.Errorf("its spec in the database: %w", err)
	}
	if len(spec.SQL) == 1 {
		o.put("sql", quoted(spec.SQL[0].Text))
		o.args(spec.SQL[0].Args)
	} else {
		all := &yaml.Node{Kind: yaml.SequenceNode}
		for _, st := range spec.SQL {
			if len(st.Args) == 0 {
				all.Content = append(all.Content, quoted(st.Text))
				continue
			}
			entry := &object{}
			entry.put("text", quoted(st.Text))
			entry.args(st.Args)
			all.Content = append(all.Content, entry.node())
		}
		o.put("sql", all)
	}
	o.boolean("atomic", spec.Atomic)
	return nil
}

func (o *object) args(list []any) {
	if len(list) == 0 {
		return
	}
	args := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, a := range list {
		switch v := a.(type) {
		case nil:
			args.Content = append(args.Content, plain("null"))
		case string:
			args.Content = append(args.Content, quoted(v))
		default:
			args.Content = append(args.Content, plain(fmt.Sprint(v)))
		}
	}
	o.put("args", args)
}

// plain is a scalar that reads as what it looks like.
func plain(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// quoted is a text: in block form if it has several lines, and in quotes where it would read as something else.
func quoted(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.Contains(s, "\n") && !strings.ContainsAny(s, "\r\t") && strings.TrimSpace(s) == s {
		n.Style = yaml.LiteralStyle
	}
	return n
}

func list(values []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		n.Content = append(n.Content, quoted(v))
	}
	return n
}
