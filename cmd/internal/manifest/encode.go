package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/cmd/internal/visible"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Encode writes definitions as a manifest from which Decode reads the same definitions. It leaves out values
// that are the default. It also leaves out the owner of jobs that belong to login: they get the same owner
// again when login applies the file.
func Encode(w io.Writer, name string, d store.Definitions, login string) error {
	root := &object{}
	root.put("manifest", quoted(name))
	utc := func(s *store.Schedule) bool { return s != nil && scheduleZone(*s) == "UTC" }
	if slices.ContainsFunc(d.Schedules, func(s store.Schedule) bool { return utc(&s) }) ||
		slices.ContainsFunc(d.Jobs, func(j store.Job) bool { return utc(j.Own) }) {
		root.put("zone", plain("UTC")) // so that each cron text has a zone
	}
	return encode(w, root, d, login, Notes{Zone: "UTC"})
}

// encode writes the definitions after the keys that root already has.
func encode(w io.Writer, root *object, d store.Definitions, login string, n Notes) error {
	groups, schedules, jobs := &object{}, &object{}, &object{}
	for _, g := range d.Groups {
		groups.number(g.Name, int64(g.MaxRunning), 0)
	}
	calendars := &object{}
	for _, c := range d.Calendars {
		calendars.put(c.Name, calendarNode(c))
	}
	for _, s := range d.Schedules {
		schedules.put(s.Name, scheduleNode(s, n.Zone))
	}
	for _, j := range d.Jobs {
		entry, err := jobNode(j, login, n.Zone)
		if err != nil {
			return fmt.Errorf("job %s: %w", j.Name, err)
		}
		jobs.put(j.Name, entry)
		if lines := n.Jobs[j.Name]; len(lines) > 0 {
			jobs.Content[len(jobs.Content)-2].HeadComment = comment(lines)
		}
	}
	root.section("groups", groups)
	root.section("calendars", calendars)
	root.section("schedules", schedules)
	root.section("jobs", jobs)
	text, err := asYAML(root.node())
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// asYAML returns a node as YAML text.
func asYAML(n *yaml.Node) (string, error) {
	literally(n)
	quoteControls(n)
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	err := errors.Join(enc.Encode(n), enc.Close())
	return string(visible.YAML(buf.Bytes())), err
}

// quoteControls puts texts in quotes that contain characters which could control a terminal. In quotes, these
// characters are written as escapes.
func quoteControls(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.IndexFunc(n.Value, visible.Controls) >= 0 {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, below := range n.Content {
		quoteControls(below)
	}
}

// Texts returns a function that writes one definition of the manifest, found by its kind and name, as its entry in a file.
func (m *Manifest) Texts(login string) func(kind, name string) (string, error) {
	entries := map[[2]string]func() (*yaml.Node, error){}
	for _, g := range m.Groups {
		entries[[2]string{store.KindGroup, g.Name}] = func() (*yaml.Node, error) { return plain(strconv.Itoa(g.MaxRunning)), nil }
	}
	for i := range m.Calendars {
		entries[[2]string{store.KindCalendar, m.Calendars[i].Name}] = func() (*yaml.Node, error) { return calendarNode(m.Calendars[i]), nil }
	}
	for i := range m.Schedules {
		entries[[2]string{store.KindSchedule, m.Schedules[i].Name}] = func() (*yaml.Node, error) { return scheduleNode(m.Schedules[i], "UTC"), nil }
	}
	for i := range m.Jobs {
		entries[[2]string{store.KindJob, m.Jobs[i].Name}] = func() (*yaml.Node, error) { return jobNode(m.Jobs[i], login, "UTC") }
	}
	return func(kind, name string) (string, error) {
		entry := entries[[2]string{kind, name}]
		if entry == nil {
			return "", nil
		}
		n, err := entry()
		if err != nil {
			return "", err
		}
		return asYAML(n)
	}
}

// scheduleNode writes a schedule. zone is the zone of the file.
func scheduleNode(s store.Schedule, zone string) *yaml.Node {
	s.Normalize()
	var usual store.Schedule
	usual.Normalize()
	usual.Zone = zone
	o := &object{}
	o.put("rule", quoted(s.Rule))
	o.text("zone", s.Zone, usual.Zone)
	o.text("nonexistent", s.Nonexistent, usual.Nonexistent)
	o.text("ambiguous", s.Ambiguous, usual.Ambiguous)
	o.text("calendar", s.Calendar, "")
	o.text("on_holiday", s.OnHoliday, store.HolidaySkip)
	o.text("description", s.Description, "")
	if len(o.Content) == 2 {
		return o.Content[1]
	}
	return o.node()
}

// scheduleZone returns the zone of a schedule, or the default zone.
func scheduleZone(s store.Schedule) string {
	s.Normalize()
	return s.Zone
}

// jobNode writes a job: its policies in their order, with its schedules and its own rule before the tags.
func jobNode(j store.Job, login, zone string) (*yaml.Node, error) {
	o := policiesNode(j, login, zone)
	return o.node(), o.steps(j.Steps)
}

// policiesNode writes a job without its steps.
func policiesNode(j store.Job, login, zone string) *object {
	j.Normalize()
	var usual store.Job
	usual.Normalize()
	usual.Owner, usual.StartZone = login, zone
	if j.Own != nil {
		usual.StartZone = scheduleZone(*j.Own)
	}
	if j.Start != "" { // not_before was computed from start
		j.NotBefore = time.Time{}
	}
	o := &object{}
	for _, e := range entries {
		if e.key == "tags" {
			o.schedules(j, zone)
		}
		o.policy(e, &j, &usual)
	}
	return o
}

func (o *object) schedules(j store.Job, zone string) {
	switch {
	case len(j.Schedules) == 0:
	case len(j.Schedules) == 1 && asRule(j.Schedules[0], "UTC", time.Now()) != nil:
		o.put("schedule", quoted(j.Schedules[0]))
	default: // a name that could be read as a rule would become one
		o.put("schedules", list(j.Schedules))
	}
	if j.Own != nil {
		o.put("rule", scheduleNode(*j.Own, zone))
	}
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

// at puts a value at its path: keep.runs goes into the section keep.
func (o *object) at(path string, value *yaml.Node) {
	outer, key, nested := strings.Cut(path, ".")
	if !nested {
		o.put(path, value)
		return
	}
	if last := len(o.Content) - 2; last < 0 || o.Content[last].Value != outer {
		o.put(outer, (&object{}).node())
	}
	inner := o.Content[len(o.Content)-1]
	inner.Content = append(inner.Content, quoted(key), value)
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

// steps writes a single plain step into the job itself, such as sql, and anything else as a list.
func (o *object) steps(steps []store.Step) error {
	all := &yaml.Node{Kind: yaml.SequenceNode}
	for i, s := range steps {
		entry, err := stepNode(s, s.Name != stepName(i))
		if err != nil {
			return err
		}
		all.Content = append(all.Content, entry)
	}
	if len(all.Content) == 1 && plainStep(steps[0], all.Content[0]) {
		o.Content = append(o.Content, all.Content[0].Content...)
		return nil
	}
	o.put("steps", all)
	return nil
}

// stepNode writes a step. If named is set, it writes the name of the step, too: the name then differs from the
// one that the position gives.
func stepNode(s store.Step, named bool) (*yaml.Node, error) {
	kind := executor.KindOf(s.Executor)
	if kind == nil {
		return nil, fmt.Errorf("step %s has the executor %s, which this version does not know", s.Name, s.Executor)
	}
	entry := &object{}
	if named {
		entry.text("name", s.Name, "")
	}
	if err := entry.spec(kind, s.Spec); err != nil {
		return nil, fmt.Errorf("step %s: %w", s.Name, err)
	}
	entry.duration("timeout", s.Timeout, 0)
	entry.policy(section("retry"), &store.Job{Retry: s.Retry}, &store.Job{})
	entry.text("on_success", s.OnSuccess, store.StepNext)
	entry.text("on_failure", s.OnFailure, store.StepFail)
	return entry.node(), nil
}

// plainStep reports whether a step has no keys but those of its executor.
func plainStep(s store.Step, node *yaml.Node) bool {
	keys := keyNames(executor.KindOf(s.Executor).Keys)
	for i := 0; i < len(node.Content); i += 2 {
		if !slices.Contains(keys, node.Content[i].Value) {
			return false
		}
	}
	return true
}

func (o *object) spec(kind *executor.Kind, raw json.RawMessage) error {
	values, err := kind.Values(raw)
	if err != nil {
		return fmt.Errorf("reading its spec from the database: %w", err)
	}
	o.values(kind.Keys, values)
	return nil
}

// values writes the values of the keys of an executor, or of one of its mappings.
func (o *object) values(keys []executor.Key, values map[string]any) {
	for _, key := range keys {
		if key.Type == executor.JSON && values[key.Name] != nil {
			o.put(key.Name, value(values[key.Name]))
			continue
		}
		switch v := values[key.Name].(type) {
		case bool:
			o.boolean(key.Name, v)
		case string:
			o.text(key.Name, v, "")
		case []any:
			o.args(key.Name, v)
		case []executor.Statement:
			o.put(key.Name, statements(v))
		default:
			o.nested(key, v)
		}
	}
}

// statements writes a single statement text as it is, and anything else as a list.
func statements(list []executor.Statement) *yaml.Node {
	if len(list) == 1 && len(list[0].Args) == 0 {
		return quoted(list[0].Text)
	}
	all := &yaml.Node{Kind: yaml.SequenceNode}
	for _, st := range list {
		if len(st.Args) == 0 {
			all.Content = append(all.Content, quoted(st.Text))
			continue
		}
		entry := &object{}
		entry.put("text", quoted(st.Text))
		entry.args("args", st.Args)
		all.Content = append(all.Content, entry.node())
	}
	return all
}

func (o *object) args(key string, list []any) {
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
	o.put(key, args)
}

// plain is a scalar without quotes: YAML decides whether it is a number, a truth value or a text.
func plain(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// quoted is a text. It is in block form if it has several lines, and in quotes if YAML would read it as
// something other than a text.
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
