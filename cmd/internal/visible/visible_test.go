package visible

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// TestEscapesAreTheSameText: a reader gets the original text, and the escaped text has nothing that controls a
// terminal.
func TestEscapesAreTheSameText(t *testing.T) {
	for _, want := range []string{"plain\n", "\x1b[31m\a\r\x7f", "\u009b31m", "\u202eabc\u2066", "a\U000e0041b", "\U0010ffff", "Zürich 東京 🧹"} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		text = JSON(text)
		var got string
		if err := json.Unmarshal(text, &got); err != nil || got != want || bytes.ContainsFunc(text, steers) {
			t.Errorf("JSON of %q: %q, %v: %s", want, got, err, text)
		}
		node := &yaml.Node{Kind: yaml.ScalarNode, Value: want, Style: yaml.DoubleQuotedStyle}
		if text, err = yaml.Marshal(node); err != nil {
			t.Fatal(err)
		}
		text, got = YAML(text), ""
		if err := yaml.Unmarshal(text, &got); err != nil || got != want || bytes.ContainsFunc(text, steers) {
			t.Errorf("YAML of %q: %q, %v: %s", want, got, err, text)
		}
	}
}

func steers(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
