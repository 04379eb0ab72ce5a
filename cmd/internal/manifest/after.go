package manifest

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
)

// afters reads the jobs after which a job runs: one, or a list of them.
func afters(into *[]store.After) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		*into = nil
		at := followed(n)
		if at.Kind != yaml.SequenceNode {
			afterOne(into)(d, n, path)
			return
		}
		for i, c := range d.items(n, path) {
			afterOne(into)(d, c, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// afterOne adds one of these jobs: its name, or a mapping that also has the ends that count.
func afterOne(into *[]store.After) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		at := followed(n)
		var f store.After
		before := len(d.problems)
		if at.Kind != yaml.MappingNode {
			text(&f.Job)(d, n, path)
		} else {
			d.mapping(n, path, []field{{"job", text(&f.Job)}, {"on", choice(&f.On, store.Ends()...)}})
			if f.Job == "" && len(d.problems) == before {
				d.problem(n, join(path, "job"), "is missing, and after needs it")
			}
		}
		if len(d.problems) == before {
			*into = append(*into, f)
		}
	}
}

// after writes these jobs in the shortest form.
func (o *object) after(key string, list []store.After) {
	all := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, f := range list {
		if cmp.Or(f.On, store.OnSuccess) == store.OnSuccess {
			all.Content = append(all.Content, quoted(f.Job))
			continue
		}
		entry := &object{}
		entry.put("job", quoted(f.Job))
		entry.put("on", quoted(f.On))
		entry.Style = yaml.FlowStyle
		all.Content = append(all.Content, entry.node())
	}
	switch len(list) {
	case 0:
	case 1:
		o.put(key, all.Content[0])
	default:
		o.put(key, all)
	}
}

// entryList turns the values of a flag into a list. A value that is a mapping stands in braces, as in a file.
func entryList(values []string) *yaml.Node {
	all := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		var doc yaml.Node
		if strings.HasPrefix(v, "{") && yaml.Unmarshal(Paired([]byte(v)), &doc) == nil && len(doc.Content) > 0 {
			all.Content = append(all.Content, doc.Content[0])
			continue
		}
		all.Content = append(all.Content, quoted(v))
	}
	return all
}
