package manifest

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
)

// Variable is a place in a file that names a variable of the environment.
type Variable struct {
	Name  string
	Place Problem // without a text
}

const (
	variableMark = "${env:"
	ownPrefix    = "DBJOBS_" // of variables that may hold the password of the database
)

// variable matches a reference. It also matches the beginning of a text that is meant literally, in which the
// dollar is doubled.
var variable = lazyregexp.New(`\$\$\{env:|\$\{env:[^}]*\}?`)

// variableParts matches the name of a variable, and the value that is used if the variable is not set or is
// empty.
var variableParts = lazyregexp.New(`^\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}$`)

// fromEnvironment puts the values of variables into the values of a file. It resolves the type of a value
// without quotes again, so that it may become a number or a truth value.
func (f *file) fromEnvironment(n *yaml.Node) {
	if f.env == nil {
		return
	}
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 0: // a key
		case c.Kind == yaml.ScalarNode && strings.Contains(c.Value, variableMark):
			f.replace(c)
		default:
			f.fromEnvironment(c)
		}
	}
}

func (f *file) replace(n *yaml.Node) {
	replaced := false
	n.Value = variable.ReplaceAllStringFunc(n.Value, func(found string) string {
		if literal, ok := strings.CutPrefix(found, "$$"); ok {
			return "$" + literal
		}
		replaced = true
		return f.valueOf(n, found)
	})
	if quotes := yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle; replaced && n.Style&quotes == 0 {
		n.Tag = tagOf(n.Value)
	}
}

// tagOf returns the type of a value without quotes: a number, a truth value, or else a text.
func tagOf(value string) string {
	var doc yaml.Node
	if value != "" && yaml.Unmarshal([]byte(value), &doc) == nil && len(doc.Content) == 1 {
		if n := doc.Content[0]; n.Kind == yaml.ScalarNode && n.Value == value && n.Anchor == "" {
			return n.ShortTag()
		}
	}
	return "!!str"
}

func (f *file) valueOf(n *yaml.Node, found string) string {
	parts := variableParts.FindStringSubmatch(found)
	if parts == nil || strings.Contains(parts[2], "${") {
		f.problem(n, "", "found %s, want ${env:NAME} or ${env:NAME:-default}; to write this text literally, write $%s", excerpt(found), cut(found, maxQuoted))
		return ""
	}
	name := parts[1]
	if strings.HasPrefix(name, ownPrefix) {
		f.problem(n, "", "%s is a setting of dbjobs, and belongs in no definition", name)
		return ""
	}
	f.m.Variables = append(f.m.Variables, Variable{name, Problem{File: f.file, Line: n.Line, Column: n.Column}})
	value, set := f.env(name)
	switch {
	case value == "" && strings.Contains(found, ":-"):
		return parts[2]
	case !set:
		f.problem(n, "", "the variable %s is not set; for a default, write ${env:%[1]s:-default}", name)
	case !utf8.ValidString(value):
		f.problem(n, "", "the variable %s is not UTF-8 text", name)
		return ""
	}
	return value
}

// secretNames matches the names of variables that hold secrets. The patterns are long enough not to match names
// that are usual for values of a definition.
var secretNames = lazyregexp.New(`(?i)PASS(WORD|WD|PHRASE)|_PWD$|SECRET|TOKEN|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIAL`)

// IsSecret reports whether the name of a variable is that of a secret.
func IsSecret(variable string) bool {
	return secretNames.MatchString(variable) || secret.IsName(variable)
}

// Exposed returns the variables whose values look like secrets. The database would store these values, and
// everybody who may read it could see them.
func (m *Manifest) Exposed(env func(string) (string, bool)) (list []Variable) {
	for _, v := range m.Variables {
		if value, _ := env(v.Name); value != "" && (IsSecret(v.Name) || secret.Like(value) != "" || secret.HoldsURL(value)) {
			list = append(list, v)
		}
	}
	return list
}

// literally escapes the texts below a node that Read would take for variables.
func literally(n *yaml.Node) {
	for i, c := range n.Content {
		if c.Kind != yaml.ScalarNode {
			literally(c)
		} else if n.Kind != yaml.MappingNode || i%2 == 1 {
			c.Value = strings.ReplaceAll(c.Value, variableMark, "$"+variableMark)
		}
	}
}
