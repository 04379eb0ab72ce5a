package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/tick/executor"
)

// readNested reads the value of a key that may contain other keys or a list. If the value is wrong, it reports
// a problem and returns nil.
func readNested(d *decoder, n *yaml.Node, path string, key executor.Key) any {
	before := len(d.problems)
	switch key.Type {
	case executor.List:
		list := []string{}
		for i, c := range d.items(n, path) {
			if s, ok := written(d, c, fmt.Sprintf("%s[%d]", path, i)); ok {
				list = append(list, s)
			}
		}
		if len(list) > 0 && len(d.problems) == before {
			return list
		}
	case executor.Pairs:
		pairs := map[string]string{}
		for _, p := range d.pairs(n, path, "a mapping of names to texts") {
			if s, ok := written(d, p.value, join(path, p.key.Value)); ok {
				pairs[p.key.Value] = s
			}
		}
		if len(pairs) > 0 && len(d.problems) == before {
			return pairs
		}
	case executor.JSON:
		v := anything(d, n, path, 0)
		if v == nil && len(d.problems) == before {
			d.problem(n, path, "found nothing, want a value")
		}
		if len(d.problems) == before {
			return v
		}
	case executor.Mapping:
		if v := readMapping(d, n, path, key); len(d.problems) == before {
			return v
		}
	}
	return nil
}

// readMapping reads a mapping with the keys of key. If the key has a short form, a value that is no mapping
// sets the first of these keys.
func readMapping(d *decoder, n *yaml.Node, path string, key executor.Key) map[string]any {
	values := map[string]any{}
	at := followed(n)
	if key.Short && at.Kind != yaml.MappingNode {
		if v := readValue(d, n, path, key.Keys[0]); v != nil {
			values[key.Keys[0].Name] = v
		}
		return values
	}
	before := len(d.problems)
	fields := make([]field, len(key.Keys))
	for i, sub := range key.Keys {
		fields[i] = field{sub.Name, func(d *decoder, n *yaml.Node, path string) {
			if v := readValue(d, n, path, sub); v != nil {
				values[sub.Name] = v
			}
		}}
	}
	d.mapping(n, path, fields)
	if first := key.Keys[0].Name; key.Short && values[first] == nil && len(d.problems) == before {
		d.problem(n, join(path, first), "is missing, and %s needs it", key.Name)
	}
	return values
}

// followed returns the node to which an alias leads. It does not count that node, as enter does.
func followed(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// written reads a text, or the text of a number.
func written(d *decoder, n *yaml.Node, path string) (string, bool) {
	n, ok := d.scalar(n, path, "a text"+putInQuotes, "!!str", "!!int", "!!float")
	if !ok {
		return "", false
	}
	return n.Value, true
}

// anything reads a value that becomes JSON. Numbers keep their digits. depth is the number of values around it: a value
// may contain itself, by an alias.
func anything(d *decoder, n *yaml.Node, path string, depth int) any {
	at := followed(n)
	if depth > maxDepth {
		d.problem(n, path, "is nested deeper than %d levels", maxDepth)
		return nil
	}
	switch at.Kind {
	case yaml.MappingNode:
		all := map[string]any{}
		for _, p := range d.pairs(n, path, "a mapping") {
			all[p.key.Value] = anything(d, p.value, join(path, p.key.Value), depth+1)
		}
		return all
	case yaml.SequenceNode:
		all := []any{}
		for i, c := range d.items(n, path) {
			all = append(all, anything(d, c, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return all
	}
	v, _ := literal(d, n, path)
	return v
}

// below finds the place that an executor's error names. If the file has no such place, it returns the given
// node.
func (d *decoder) below(n *yaml.Node, step string, wrong *executor.KeyError) (*yaml.Node, string, error) {
	path, place := step, n
	for _, part := range wrong.At {
		if i, ok := part.(int); ok {
			path = fmt.Sprintf("%s[%d]", path, i)
		} else {
			path = join(path, fmt.Sprint(part))
		}
		place = cmp.Or(d.places[path], place)
	}
	return place, path, wrong.Err
}

// nested writes what readNested reads.
func (o *object) nested(key executor.Key, v any) {
	switch v := v.(type) {
	case []string:
		switch len(v) {
		case 0:
		case 1:
			o.put(key.Name, quoted(v[0]))
		default:
			o.put(key.Name, list(v))
		}
	case map[string]string:
		pairs := &object{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			pairs.put(name, quoted(v[name]))
		}
		o.section(key.Name, pairs)
	case map[string]any:
		inner := &object{}
		inner.values(key.Keys, v)
		if key.Short && len(inner.Content) == 2 && inner.Content[0].Value == key.Keys[0].Name {
			o.put(key.Name, inner.Content[1])
		} else {
			o.put(key.Name, inner.node())
		}
	}
}

// value writes what anything reads.
func value(v any) *yaml.Node {
	switch v := v.(type) {
	case nil:
		return plain("null")
	case string:
		return quoted(v)
	case []any:
		all := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, e := range v {
			n := value(e)
			if all.Content = append(all.Content, n); n.Kind != yaml.ScalarNode { // within brackets, a long key could not be read back
				all.Style &^= yaml.FlowStyle
			}
		}
		return all
	case map[string]any:
		all := &object{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all.put(name, value(v[name]))
		}
		return all.node()
	}
	return plain(fmt.Sprint(v))
}
