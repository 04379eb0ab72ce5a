package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/nearest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// misnamed says what is wrong with a ${...} reference, and which one was probably meant.
func misnamed(err error) string {
	unknown, ok := errors.AsType[*executor.ReferenceError](err)
	if !ok {
		return err.Error()
	}
	known := make([]string, 0, 9)
	for _, name := range append(executor.References(), "args.NAME") {
		known = append(known, "${"+name+"}")
	}
	found := "${" + unknown.Name + "}"
	if nearest.To(found, known) != "" {
		return fmt.Sprintf("%s is not known; %s", found, oneOf(found, known))
	}
	if meant := meantOfMany(unknown.Name); meant != "" {
		return fmt.Sprintf("%s is not known; did you mean ${%s}?", cut(found, maxText/2), cut(meant, maxText/2))
	}
	return err.Error()
}

// meantOfMany returns the reference that was probably meant, if it contains names from the file: args.NAME,
// secret:NAME, or steps.NAME and a fact of that step. It returns an empty text if no reference is similar.
func meantOfMany(name string) string {
	if i := strings.IndexAny(name, ".:"); i > 0 && i+1 < len(name) {
		switch first := name[:i]; nearest.To(first, []string{"args", "secret", "steps"}) {
		case "args":
			return "args." + name[i+1:]
		case "secret":
			return "secret:" + name[i+1:]
		case "steps":
			return meantOfStep(first, name[i+1:])
		}
	}
	return ""
}

// meantOfStep returns the fact of a step that was probably meant. rest is what follows the first word of the
// reference. The last part of it is one of a few words, or a column after what should be row. A name may
// contain dots.
func meantOfStep(first, rest string) string {
	if _, _, ok := store.StepFact(rest); ok && first != "steps" {
		return "steps." + rest
	}
	parts := strings.Split(rest, ".")
	n := len(parts)
	if n > 2 {
		if fact := nearest.To(parts[n-2], []string{"row", "body", "rows"}); fact != "" {
			parts[n-2] = strings.TrimSuffix(fact, "s")
			return "steps." + strings.Join(parts, ".")
		}
	}
	if n > 1 {
		if parts[n-1] = nearest.To(parts[n-1], store.FactsOfSteps()); parts[n-1] != "" {
			return "steps." + strings.Join(parts, ".")
		}
	}
	return ""
}

// misnamedStep reports a reference to a step that the job does not have, if the job has a step with a similar
// name.
func (f *file) misnamedStep(j *store.Job, owner *yaml.Node, path string) {
	names := make([]string, len(j.Steps))
	for i := range j.Steps {
		names[i] = j.Steps[i].Name
	}
	for i := range j.Steps {
		for _, r := range j.Steps[i].References() {
			if slices.Contains(names, r.Step) || nearest.To(r.Step, names) == "" {
				continue
			}
			f.invalid(&store.FieldError{Subject: "job " + j.Name + ", step " + names[i], Field: j.Steps[i].Executor,
				Problem: fmt.Sprintf("%s: there is no step %s in the job; %s", cut(r.Text, maxText/3), excerpt(r.Step), oneOf(r.Step, names))}, owner, path)
		}
	}
}
