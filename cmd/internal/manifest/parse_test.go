package manifest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// A text that is parsed in parts gives the same result as the whole text, with the same lines and columns. A text that
// could mean something else in parts is not parsed in parts.
func TestParts(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		parts bool
	}{
		"plain":       {"jobs:\n  a: {sql: x}\n  b: {sql: y}\n  c:\n    sql: z\n", true},
		"around":      {"# first\nzone: UTC\nx: &a [1]\n\njobs: # all\n\n  # of a\n  a: {sql: x}\n# of b\n  b: 1\n  'c d':\n  - 1\n  - 2\nx-y: 3\nz: [*b]\n", false},
		"before":      {"# first\nzone: UTC\nx: &a [1]\n\njobs: # all\n\n  # of a\n  a: {sql: x}\n# of b\n  b: 1\n  'c d':\n  - 1\n  - 2\nx-y: 3\n", true},
		"no end":      {"jobs:\n  a: 1\n  b: |\n   x\n   y", true},
		"anchors":     {"jobs:\n  a: &x 1\n  b: *x\n  c: 3\n", false},
		"own anchors": {"jobs:\n  a: {b: &x 1, c: *x}\n  b: 2\n  c: {b: &x 3, c: *x}\n", true},
		"quoted":      {"jobs:\n  a: \"\n  b: 1\n  c: 1\n  \"\n  d: 1\n", false},
		"in brackets": {"jobs:\n  a: {\n  b: 1,\n  c: 1\n  }\n  d: 1\n", false},
		"in a text":   {"x: |\n\n jobs:\n\njobs:\n    a: >\n\n       b: 1\n       c: 1\n    d: 1\n", true},
		"twice":       {"jobs:\n  a: 1\n  a: 2\njobs:\n  b: 2\n", true},
		"a list":      {"jobs:\n  - a: 1\n  - b: 2\n", false},
		"deeper":      {"jobs:\n  a: 1\n   b: 2\n", false},
		"two":         {"jobs:\n  a: 1\n  b: 2\n---\nx: 1\n", false},
		"tab":         {"jobs:\n  a: 1\n\t\n  b: 2\n", false},
		"returns":     {"jobs:\r\n  a: 1\r\n  b: 2\r\n", false},
		"directive":   {"%YAML 1.2\n---\njobs:\n  a: 1\n  b: 2\n", false},
		"marked":      {"---\njobs:\n  a: 1\n  b: 2\n", true},
		"question":    {"jobs:\n  ? a\n  : 1\n  b: 2\n  c: 3\n", true},
		"merged":      {"jobs:\n  <<: {z: 1}\n  b: 2\n  c: 3\n", true},
		"with a tag":  {"jobs: !!map\n  a: 1\n  b: 2\n", false},
		"a value":     {"jobs: {}\nx:\n  a: 1\n", false},
		"empty":       {"jobs:\n# none\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if did := inParts(t, c.text); did != c.parts {
				t.Errorf("parsed in parts: %v", did)
			}
		})
	}
}

func FuzzParts(f *testing.F) {
	f.Add("zone: UTC\njobs:\n  a: {sql: \"x\n  y\"}\n  b: |\n    c: 1\n  c: [1,\n  2]\nx: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if text != "" && invalidUTF8([]byte(text)) < 0 {
			inParts(t, text)
		}
	})
}

// inParts compares the result of parsing a text in parts, of which there may be many, with the result of parsing it as
// a whole.
func inParts(t *testing.T, text string) (did bool) {
	t.Helper()
	whole, more, err := parse([]byte(text))
	for parts := 1; parts < 8; parts++ {
		got := parseInParts([]byte(text), parts)
		if did = got != nil; !did {
			continue
		}
		if err != nil || more != nil || whole == nil {
			t.Fatalf("%d parts of %q; the whole: %v, %v", parts, text, more, err)
		}
		if was, is := told(whole), told(got); !reflect.DeepEqual(was, is) {
			t.Fatalf("%d parts of %q:\n%s\nthe whole:\n%s", parts, text, strings.Join(is, "\n"), strings.Join(was, "\n"))
		}
	}
	return did
}

// told returns the content of a node, and its place, without comments.
func told(n *yaml.Node) []string {
	this := fmt.Sprintf("%d:%d: kind %d, style %d, %s %q, anchor %q", n.Line, n.Column, n.Kind, n.Style, n.Tag, n.Value, n.Anchor)
	if n.Alias != nil {
		this += fmt.Sprintf(", of %d:%d", n.Alias.Line, n.Alias.Column)
	}
	all := []string{this}
	for _, c := range n.Content {
		all = append(all, told(c)...)
	}
	return all
}
