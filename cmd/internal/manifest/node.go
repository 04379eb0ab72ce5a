package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
)

// decoder reads the nodes of one file and collects its problems.
type decoder struct {
	file       string
	problems   []Problem
	places     map[string]*yaml.Node // fields of the job or schedule that is being read, by path
	references []reference           // names of other definitions, and of targets of the host
	swallowed  []Swallowed           // of the job that is being read

	source []byte  // the file
	lines  []int32 // where its lines begin; nil: not known yet

	length, values, bytes int                         // length of the file; values and bytes read so far
	trusted               int                         // length of the file, if it is one of this machine; see mostValues
	env                   func(string) (string, bool) // variables of the environment; nil: the file has none
	over                  bool                        // the file expands to too much
	ofHost                bool                        // the file has the settings of a host: it may be empty, and it may hold secrets, so that no value is quoted
}

// field is a key that a mapping may have, and the function that reads its value.
type field struct {
	key  string
	read reading
}

// reading reads the value at a path.
type reading = func(d *decoder, n *yaml.Node, path string)

// problem records a problem. Once the file has expanded to too much, it records nothing more.
func (d *decoder) problem(n *yaml.Node, path, format string, args ...any) {
	if d.over {
		return
	}
	var p Problem // a problem without a text is only counted
	if len(d.problems) < maxProblems {
		p = Problem{File: d.file, Path: cut(path, maxPath), Text: cut(fmt.Sprintf(format, args...), maxText)}
		if d.ofHost && secret.HoldsURL(path) { // a value stands where a key belongs
			p.Path = secret.Hidden
		}
		if d.ofHost && !public.MatchString(path) {
			p.Text = quotedValue.ReplaceAllString(p.Text, "want")
		}
		if n != nil {
			p.Line, p.Column = n.Line, n.Column
		}
	}
	d.problems = append(d.problems, p)
}

// public has the settings of a host that hold no secret. quotedValue matches the place where a problem quotes
// what it found.
var (
	public      = lazyregexp.New(`^(programs|addresses|on|mail\.(server|port|tls|user|from|owners))\b`)
	quotedValue = lazyregexp.New(`(?s)^found .*, want`)
)

// enter follows aliases and counts the node. It returns false if the file expands to too much. It reports that
// once.
func (d *decoder) enter(n *yaml.Node, path string) (*yaml.Node, bool) {
	n = followed(n)
	if !d.spend(n, path) {
		return nil, false
	}
	if d.places != nil {
		d.places[path] = n
	}
	return n, true
}

// pair is one entry of a mapping.
type pair struct {
	key   *yaml.Node
	value *yaml.Node
}

// pairs returns the entries of a mapping in the order of the file. Entries that << merges come after the
// mapping's own entries, which take precedence. A key that occurs twice is a problem; the first one counts.
func (d *decoder) pairs(n *yaml.Node, path, what string) []pair {
	n, ok := d.enter(n, path)
	if !ok {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "found %s, want %s", kindOf(n), what)
		return nil
	}
	return d.merged(n, path, 0)
}

func (d *decoder) merged(n *yaml.Node, path string, depth int) []pair {
	own, seen := []pair{}, map[string]*yaml.Node{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := followed(n.Content[i]), n.Content[i+1]
		if !d.spend(key, path) {
			return own
		}
		switch {
		case key.ShortTag() == "!!merge":
			merges = append(merges, value)
			continue
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null":
			d.problem(key, path, "found %s as a key, want a name", kindOf(key))
			continue
		}
		if first := seen[key.Value]; first != nil {
			d.problem(key, join(path, key.Value), "is given twice; the first is in line %d", first.Line)
			continue
		}
		seen[key.Value] = key
		own = append(own, pair{key, value})
	}
	for _, m := range merges {
		for _, p := range d.mergeSources(m, path, depth+1) {
			if seen[p.key.Value] == nil {
				seen[p.key.Value] = p.key
				own = append(own, p)
			}
		}
	}
	return own
}

// mergeSources returns the entries that a merge key adds: those of a mapping, or of a list of mappings.
func (d *decoder) mergeSources(n *yaml.Node, path string, depth int) (all []pair) {
	if depth > 20 || !d.spend(n, path) {
		d.problem(n, join(path, "<<"), "merges too deep")
		return nil
	}
	n = followed(n)
	switch n.Kind {
	case yaml.MappingNode:
		return d.merged(n, path, depth)
	case yaml.SequenceNode:
		for _, c := range n.Content {
			all = append(all, d.mergeSources(c, path, depth+1)...)
		}
		return all
	}
	d.problem(n, join(path, "<<"), "found %s, want a mapping or a list of mappings", kindOf(n))
	return nil
}

// mapping reads a mapping whose keys are known.
func (d *decoder) mapping(n *yaml.Node, path string, fields []field) {
	keys := sync.OnceValue(func() []string { return keysOf(fields) }) // most mappings have no unknown one
	for _, p := range d.pairs(n, path, "a mapping with keys such as "+strings.Join(keysOf(fields[:min(3, len(fields))]), ", ")) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == p.key.Value })
		if i < 0 {
			d.unknownKey(p.key, path, keys())
			continue
		}
		fields[i].read(d, p.value, join(path, p.key.Value))
	}
}

func keysOf(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	return names
}

func (d *decoder) unknownKey(key *yaml.Node, path string, allowed []string) {
	if len(d.problems) >= maxProblems { // finding a similar key takes long
		d.problem(key, path, "unknown key")
		return
	}
	what := "unknown key"
	if key.Value == "call" && slices.Contains(allowed, "sql") {
		what = "this executor is not available in this version"
	}
	d.problem(key, join(path, key.Value), "%s; %s", what, oneOf(key.Value, allowed))
}

// items returns the elements of a list. A single value counts as a list of one.
func (d *decoder) items(n *yaml.Node, path string) []*yaml.Node {
	n, ok := d.enter(n, path)
	if !ok {
		return nil
	}
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// putInQuotes says how to turn a number, or a word such as yes, into a text.
const putInQuotes = " (put it in quotes)"

// scalar returns a value that has one of the tags. Any other value is a problem, which says what is wanted.
func (d *decoder) scalar(n *yaml.Node, path, want string, tags ...string) (*yaml.Node, bool) {
	n, ok := d.enter(n, path)
	if !ok {
		return nil, false
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) {
		if n.Kind != yaml.ScalarNode { // quotes would not help here
			want = strings.TrimSuffix(want, putInQuotes)
		}
		d.problem(n, path, "found %s, want %s", kindOf(n), want)
		return nil, false
	}
	if strings.ContainsRune(n.Value, 0) {
		d.problem(n, path, "holds a NUL character, which some databases cannot store")
		return nil, false
	}
	return n, true
}

func text(into *string) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		if n, ok := d.scalar(n, path, "a text"+putInQuotes, "!!str"); ok {
			*into = n.Value
		}
	}
}

func texts(into *[]string) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		*into = nil
		for i, c := range d.items(n, path) {
			var s string
			before := len(d.problems)
			if text(&s)(d, c, fmt.Sprintf("%s[%d]", path, i)); len(d.problems) == before {
				*into = append(*into, s)
			}
		}
	}
}

func choice(into *string, allowed ...string) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		n, ok := d.scalar(n, path, "one of "+strings.Join(allowed, ", "), "!!str")
		if ok && !slices.Contains(allowed, n.Value) {
			d.problem(n, path, "found %s; %s", excerpt(n.Value), oneOf(n.Value, allowed))
		} else if ok {
			*into = n.Value
		}
	}
}

func boolean(into *bool) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		if n, ok := d.scalar(n, path, "true or false", "!!bool"); ok {
			*into = strings.EqualFold(n.Value, "true")
		}
	}
}

func number[T int | int64](into *T, low, high int64) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		want := fmt.Sprintf("a whole number from %d to %d", low, high)
		n, ok := d.scalar(n, path, want, "!!int")
		if !ok {
			return
		}
		if v, ok := d.whole(n, path, want, low, high); ok {
			*into = T(v)
		}
	}
}

// whole reads a whole number. Readers of YAML do not agree about one that begins with a zero: for some it is octal.
func (d *decoder) whole(n *yaml.Node, path, want string, low, high int64) (int64, bool) {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	digits, found := strings.TrimLeft(n.Value, "+-"), cut(n.Value, maxQuoted)
	switch {
	case n.ShortTag() == "!!str" && err != nil:
		found = excerpt(n.Value)
	case err != nil || v < low || v > high:
	case len(digits) > 1 && digits[0] == '0':
		found += ", which begins with a zero"
	default:
		return v, true
	}
	d.problem(n, path, "found %s, want %s", found, want)
	return 0, false
}

// duration reads a length of time. If zero is false, a zero is an error, because it would silently mean the
// default.
func duration(into *store.Duration, zero bool) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		n, ok := d.scalar(n, path, "a duration such as 90s, 1h30m or 30d", "!!str", "!!int")
		if !ok {
			return
		}
		v, err := store.ParseDuration(n.Value)
		switch {
		case err != nil:
			d.problem(n, path, "%v", err)
		case v == 0 && !zero:
			d.problem(n, path, "found %s, want more than zero", n.Value)
		default:
			*into = v
		}
	}
}

// instant reads an instant with its offset. A wall time without one would need a zone, and a policy
// for clock changes.
func instant(into *time.Time) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		const want = "a time with its offset such as 2026-12-01T17:30:00Z or 2026-12-01T17:30:00+01:00"
		n, ok := d.scalar(n, path, want, "!!str", "!!timestamp")
		if !ok {
			return
		}
		t, err := time.Parse(time.RFC3339, n.Value)
		if err != nil {
			d.problem(n, path, "found %s, want %s", excerpt(n.Value), want)
			return
		}
		*into = t.UTC().Truncate(time.Microsecond)
	}
}

// join returns the path of key below path. It quotes a name that could be mistaken for a path, or that could
// control a terminal.
func join(path, key string) string {
	plain := key != ""
	for _, r := range key {
		plain = plain && (r == '_' || r == '-' || r == '<' || unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	if !plain {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// kindOf names the content of a node in words that the author of the file understands.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	value := n.Value
	if r := []rune(value); len(r) > 40 {
		value = string(r[:40]) + "…"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return fmt.Sprintf("the text %q", value)
	case "!!int", "!!float":
		return "the number " + value
	case "!!bool":
		return "the truth value " + value
	case "!!timestamp":
		return "the date " + value
	}
	return fmt.Sprintf("%q of the type %s", value, n.ShortTag())
}
