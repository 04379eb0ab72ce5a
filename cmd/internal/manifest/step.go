package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/cmd/internal/nearest"
	"github.com/dbjobs/dbjobs/store"
)

// readSteps reads the list under steps.
func readSteps(d *decoder, n *yaml.Node, path string) []store.Step {
	n, ok := d.enter(n, path)
	if !ok {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.problem(n, path, "found %s, want a list of steps, each with sql", kindOf(n))
		return nil
	}
	steps := make([]store.Step, 0, len(n.Content))
	for i, c := range n.Content {
		steps = append(steps, readStep(d, c, fmt.Sprintf("%s[%d]", path, i), i))
	}
	return steps
}

func readStep(d *decoder, n *yaml.Node, path string, i int) store.Step {
	s := store.Step{Name: stepName(i), Executor: "sql"}
	var spec sqlKeys
	before := len(d.problems)
	fields := append([]field{{"name", text(&s.Name)}}, sqlFields(&spec)...)
	fields = append(fields,
		field{"timeout", duration(&s.Timeout, true)},
		field{"retry", retry(&s.Retry)},
		field{"on_success", text(&s.OnSuccess)},
		field{"on_failure", text(&s.OnFailure)})
	d.mapping(n, path, fields)
	if len(spec.SQL) == 0 && len(d.problems) == before {
		d.problem(n, path, "the step does nothing: sql is missing")
	}
	s.Spec = encodeSpec(spec.SQLSpec)
	return s
}

// sqlKeys are what is read of the keys of the executor sql.
type sqlKeys struct {
	store.SQLSpec
	args []any // beside sql: of its statement
}

func sqlFields(spec *sqlKeys) []field {
	return []field{
		{"sql", func(d *decoder, n *yaml.Node, path string) {
			before := len(d.problems)
			for i, c := range d.items(n, path) {
				st := readStatement(d, c, fmt.Sprintf("%s[%d]", path, i))
				if st.Text = strings.TrimSpace(st.Text); st.Text == "" && len(d.problems) == before {
					d.problem(n, path, "found an empty statement")
				}
				spec.SQL = append(spec.SQL, st)
			}
			if len(spec.SQL) == 0 && len(d.problems) == before {
				d.problem(n, path, "found no statement")
			}
			joinArgs(d, n, path, spec)
		}},
		{"args", func(d *decoder, n *yaml.Node, path string) {
			spec.args = readArgs(d, n, path)
			joinArgs(d, n, path, spec)
		}},
		{"atomic", boolean(&spec.Atomic)},
	}
}

// readStatement reads a text, or a mapping with arguments beside it.
func readStatement(d *decoder, n *yaml.Node, path string) (st store.Statement) {
	at := n // what it is, before it counts as read
	for at.Kind == yaml.AliasNode {
		at = at.Alias
	}
	if at.Kind == yaml.MappingNode {
		d.mapping(n, path, []field{
			{"text", text(&st.Text)},
			{"args", func(d *decoder, n *yaml.Node, path string) { st.Args = readArgs(d, n, path) }},
		})
		return st
	}
	text(&st.Text)(d, n, path)
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

// joinArgs gives the arguments beside sql to its statement, and refuses those that no one statement would own. It is called
// by whichever key comes last.
func joinArgs(d *decoder, n *yaml.Node, path string, spec *sqlKeys) {
	switch {
	case len(spec.SQL) == 0 || len(spec.args) == 0:
	case len(spec.SQL) > 1:
		d.problem(n, path, "args belong to one statement, and there are %d; give each its own: sql: [{text: …, args: […]}, …]", len(spec.SQL))
	case len(spec.SQL[0].Args) > 0:
		d.problem(n, path, "the statement has args twice: in the statement, and beside sql")
	default:
		spec.SQL[0].Args = spec.args
	}
}

// argument is one value that goes to the database: a text, a number, a truth value or null. Numbers keep their digits.
func argument(d *decoder, n *yaml.Node, path string) (any, bool) {
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
			d.problem(n, path, "found the number %s, want it as JSON has numbers, such as 16 or 1.5 (or quote it)", n.Value)
			return nil, false
		}
		return json.Number(n.Value), true
	}
	if err := store.CheckReferences(n.Value); err != nil {
		d.problem(n, path, "%s", misnamed(err))
		return nil, false
	}
	return n.Value, true
}

// misnamed says what is wrong with a reference, and what was probably meant.
func misnamed(err error) string {
	unknown, ok := errors.AsType[*store.ReferenceError](err)
	if !ok {
		return err.Error()
	}
	known := make([]string, 0, 9)
	for _, name := range append(store.References(), "args.NAME") {
		known = append(known, "${"+name+"}")
	}
	if found := "${" + unknown.Name + "}"; nearest.To(found, known) != "" {
		return fmt.Sprintf("%s is not known; %s", found, oneOf(found, known))
	}
	return err.Error()
}
