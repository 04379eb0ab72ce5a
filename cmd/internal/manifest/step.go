package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

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
	var spec store.SQLSpec
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
	s.Spec = encodeSpec(spec)
	return s
}

// sqlFields are the keys of the executor sql.
func sqlFields(spec *store.SQLSpec) []field {
	return []field{
		{"sql", func(d *decoder, n *yaml.Node, path string) {
			before := len(d.problems)
			texts(&spec.SQL)(d, n, path)
			for i, s := range spec.SQL {
				if spec.SQL[i] = strings.TrimSpace(s); spec.SQL[i] == "" && len(d.problems) == before {
					d.problem(n, path, "found an empty statement")
				}
			}
			if len(spec.SQL) == 0 && len(d.problems) == before {
				d.problem(n, path, "found no statement")
			}
			checkArgs(d, n, path, spec)
		}},
		{"args", func(d *decoder, n *yaml.Node, path string) {
			for i, c := range d.items(n, path) {
				if v, ok := argument(d, c, fmt.Sprintf("%s[%d]", path, i)); ok {
					spec.Args = append(spec.Args, v)
				}
			}
			checkArgs(d, n, path, spec)
		}},
		{"atomic", boolean(&spec.Atomic)},
	}
}

// checkArgs refuses arguments that no one statement would own. It is called by whichever key comes last.
func checkArgs(d *decoder, n *yaml.Node, path string, spec *store.SQLSpec) {
	if len(spec.SQL) > 1 && len(spec.Args) > 0 {
		d.problem(n, path, "args belong to one statement, and there are %d; make a step of each", len(spec.SQL))
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
	return n.Value, true
}
