package store

import (
	"encoding/json"
	"testing"
)

// A text that is in order gets the same form as a text that is decoded and encoded again.
func FuzzCanonical(f *testing.F) {
	for _, text := range []string{
		`{"sql": ["SELECT 1", "<&>"], "timeout": 1.50, "z": {}}`, `{"b": 1, "a": [ ]}`, `{"a": {"b": 1}, "c": [{"a": 1}, {"a": 2}]}`,
		`{"a": 1, "a": 2}`, `{"": 1, "a": ""}`, `{"a": "\u003c"}`, `["\u2028", "é"]`, "[\"\u2028\"]", "[\"\xff\"]", `{"a": 1} {`, `{"a": [1, {"c": 1, "b": 2}]}`,
		"\"a\" : 1", " [1e400, -0, true, null] ", "", `{"a"`, `}`, `{"a":}`, "[\"\t\"]", `{"a": ["b", "a"], "b": "a"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if is, want := string(canonical(raw)), string(encodedAnew(raw)); is != want {
			t.Errorf("%q is %q, want %q", raw, is, want)
		}
	})
}

// Most specs look like the ordered ones here, for which canonical takes a short way.
func TestIsOrdered(t *testing.T) {
	for text, want := range map[string]bool{
		`{"sql": ["SELECT 1"]}`: true, `{"atomic": true, "sql": ["SELECT 'ä'"]}`: true, `{"sql": 1, "atomic": true}`: false, `{"sql": ["a\nb"]}`: false,
	} {
		if is := isOrdered(json.RawMessage(text)); is != want {
			t.Errorf("%s: %v", text, is)
		}
	}
}
