package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// readSteps reads the list under steps.
func readSteps(d *decoder, n *yaml.Node, path string) []store.Step {
	n, ok := d.enter(n, path)
	if !ok {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.problem(n, path, "found %s, want a list of steps, each with %s", kindOf(n), or(does()))
		return nil
	}
	steps := make([]store.Step, 0, len(n.Content))
	for i, c := range n.Content {
		steps = append(steps, readStep(d, c, fmt.Sprintf("%s[%d]", path, i), i))
	}
	return steps
}

func readStep(d *decoder, n *yaml.Node, path string, i int) store.Step {
	s := store.Step{Name: stepName(i)}
	g := &given{values: map[string]any{}}
	before := len(d.problems)
	fields := append([]field{{"name", text(&s.Name)}}, g.fields()...)
	fields = append(fields,
		field{"timeout", duration(&s.Timeout, true)},
		field{"retry", retry(&s.Retry)},
		field{"on_success", text(&s.OnSuccess)},
		field{"on_failure", text(&s.OnFailure)})
	d.mapping(n, path, fields)
	kind, whole := g.kind()
	if whole {
		s.Executor, s.Spec = kind.Name, g.spec(d, n, path, path)
	} else if len(d.problems) == before {
		d.problem(n, path, "the step does nothing; add %s", or(does()))
	}
	return s
}

// does returns the keys that say what a step does: the first key of each executor.
func does() []string {
	names := make([]string, len(executor.Kinds))
	for i, k := range executor.Kinds {
		names[i] = k.Keys[0].Name
	}
	return names
}

// given has the values that were read for the keys of executors.
type given struct {
	values map[string]any
	wrong  bool // the values do not fit together, and a problem says so
	made   json.RawMessage
	of     int // number of values from which spec was made
}

// fields returns the keys of all executors. If keys do not fit together, the problem is at the last of them.
func (g *given) fields() (fields []field) {
	for _, k := range executor.Kinds {
		for _, key := range k.Keys {
			fields = append(fields, field{key.Name, func(d *decoder, n *yaml.Node, path string) {
				if v := readValue(d, n, path, key); v != nil {
					g.values[key.Name] = v
					g.spec(d, n, strings.TrimSuffix(path, "."+key.Name), path)
				}
			}})
		}
	}
	return fields
}

// kind returns the executor of the keys that were read, or nil. whole says whether the first key of the executor,
// which says what the step does, is among them.
func (g *given) kind() (kind *executor.Kind, whole bool) {
	for i := range executor.Kinds {
		k := &executor.Kinds[i]
		for at, key := range k.Keys {
			switch {
			case g.values[key.Name] == nil:
			case at == 0:
				return k, true
			case kind == nil:
				kind = k
			}
		}
	}
	return kind, false
}

// spec returns the spec made from the values read so far. If they make no valid spec, the problem is at path,
// unless the executor names a place below the step.
func (g *given) spec(d *decoder, n *yaml.Node, step, path string) json.RawMessage {
	kind, whole := g.kind()
	if !whole || g.wrong {
		return nil
	}
	if g.made != nil && g.of == len(g.values) {
		return g.made
	}
	spec, err := kind.Spec(g.values)
	for name := range g.values {
		if !slices.Contains(keyNames(kind.Keys), name) {
			if err = fmt.Errorf("%s is not a key of the executor %s", name, kind.Name); slices.Contains(does(), name) {
				err = fmt.Errorf("a step does one thing; %s and %s are two steps", kind.Name, name)
			}
		}
	}
	if err != nil {
		g.wrong = true
		if wrong, ok := errors.AsType[*executor.KeyError](err); ok {
			n, path, err = d.below(n, step, wrong)
		}
		d.problem(n, path, "%s", misnamed(err))
	}
	g.made, g.of = spec, len(g.values)
	return spec
}

func keyNames(keys []executor.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// readValue reads the value of a key, or reports a problem and returns nil.
func readValue(d *decoder, n *yaml.Node, path string, key executor.Key) any {
	switch key.Type {
	case executor.Switch:
		on := false
		if boolean(&on)(d, n, path); on {
			return on
		}
	case executor.Text, executor.TargetName:
		s, before := "", len(d.problems)
		if text(&s)(d, n, path); s != "" && key.Type == executor.TargetName {
			d.refer(store.Reference{Kind: kindTarget, Name: s}, d.place(n, path))
		}
		d.swallows(n, path, key.Comments)
		if s != "" || key.Filled && len(d.problems) == before {
			return s
		}
	case executor.Arguments:
		if list := readArgs(d, n, path); len(list) > 0 {
			return list
		}
	case executor.Statements:
		if list := readStatements(d, n, path, key.Comments); len(list) > 0 {
			return list
		}
	default:
		return readNested(d, n, path, key)
	}
	return nil
}

func readStatements(d *decoder, n *yaml.Node, path string, comments []string) (list []executor.Statement) {
	before := len(d.problems)
	for i, c := range d.items(n, path) {
		st := readStatement(d, c, fmt.Sprintf("%s[%d]", path, i), comments)
		if st.Text = strings.TrimSpace(st.Text); st.Text == "" && len(d.problems) == before {
			d.problem(n, path, "found an empty statement")
		}
		list = append(list, st)
	}
	if len(list) == 0 && len(d.problems) == before {
		d.problem(n, path, "found no statement")
	}
	return list
}

// readStatement reads a text, or a mapping that also has arguments. comments are what begins a comment in the text.
func readStatement(d *decoder, n *yaml.Node, path string, comments []string) (st executor.Statement) {
	at := followed(n)
	if at.Kind == yaml.MappingNode {
		d.mapping(n, path, []field{
			{"text", func(d *decoder, n *yaml.Node, path string) { text(&st.Text)(d, n, path); d.swallows(n, path, comments) }},
			{"args", func(d *decoder, n *yaml.Node, path string) { st.Args = readArgs(d, n, path) }},
		})
		return st
	}
	text(&st.Text)(d, n, path)
	d.swallows(n, path, comments)
	return st
}

func readArgs(d *decoder, n *yaml.Node, path string) (args []any) {
	for i, c := range d.items(n, path) {
		if v, ok := argument(d, c, fmt.Sprintf("%s[%d]", path, i)); ok {
			args = append(args, v)
		}
	}
	return args
}

// argument reads one argument of a statement: a literal that contains only known references.
func argument(d *decoder, n *yaml.Node, path string) (any, bool) {
	v, ok := literal(d, n, path)
	if err := executor.CheckReferences(v); err != nil {
		d.problem(followed(n), path, "%s", misnamed(err))
		return nil, false
	}
	return v, ok
}

// literal reads a text, a number, a truth value or null. Numbers keep their digits.
func literal(d *decoder, n *yaml.Node, path string) (any, bool) {
	n, ok := d.scalar(n, path, "a text, a number, true, false or null",
		"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp")
	if !ok {
		return nil, false
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, true
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), true
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			d.problem(n, path, "found the number %s, want a number as in JSON, such as 16 or 1.5 (or put it in quotes)", n.Value)
			return nil, false
		}
		return json.Number(n.Value), true
	}
	return n.Value, true
}
