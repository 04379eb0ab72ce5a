package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// kindCall has a key of each type that nests.
var kindCall = executor.Kind{
	Name: "call",
	Keys: []executor.Key{{Name: "call", Type: executor.Mapping, Short: true, Help: "what to call", Keys: []executor.Key{
		{Name: "to", Type: executor.Text},
		{Name: "loud", Type: executor.Switch, Flag: "call-loud", Help: "aloud"},
		{Name: "words", Type: executor.List, Flag: "call-word", Help: "a word"},
		{Name: "marks", Type: executor.Pairs},
		{Name: "data", Type: executor.JSON},
		{Name: "by", Type: executor.Mapping, Keys: []executor.Key{{Name: "voice", Type: executor.Text}, {Name: "horn", Type: executor.Text}}},
	}}},
	Spec: func(given map[string]any) (json.RawMessage, error) {
		call, _ := given["call"].(map[string]any)
		for i, w := range callWords(call) {
			if err := executor.CheckReferences(w); err != nil {
				return nil, &executor.KeyError{At: []any{"call", "words", i}, Err: err}
			}
		}
		if call["to"] == "nobody" {
			return nil, &executor.KeyError{At: []any{"call", "to"}, Err: errors.New("nobody is there")}
		}
		return json.Marshal(call)
	},
	Values: func(spec json.RawMessage) (map[string]any, error) {
		var call struct {
			To    string
			Loud  bool
			Words []string
			Marks map[string]string
			Data  json.RawMessage
			By    map[string]any
		}
		if err := json.Unmarshal(spec, &call); err != nil {
			return nil, err
		}
		values := map[string]any{"to": call.To, "loud": call.Loud, "words": call.Words, "marks": call.Marks}
		if call.By != nil {
			values["by"] = call.By
		}
		if call.Data != nil {
			dec := json.NewDecoder(bytes.NewReader(call.Data))
			dec.UseNumber()
			var v any
			_ = dec.Decode(&v)
			values["data"] = v
		}
		return map[string]any{"call": values}, nil
	},
	Check: func(json.RawMessage) error { return nil },
}

func callWords(call map[string]any) []string {
	words, _ := call["words"].([]string)
	return words
}

func withCall(t *testing.T) {
	t.Helper()
	kinds := executor.Kinds
	t.Cleanup(func() { executor.Kinds = kinds })
	executor.Kinds = append(slices.Clone(kinds), kindCall)
	store.KnowSpecs(kindCall.Name, store.SpecRules{Check: kindCall.Check})
}

// TestNestedKeys: the values that each type of key reads, and the text that Encode writes for them.
func TestNestedKeys(t *testing.T) {
	withCall(t)
	for text, want := range map[string]string{
		`{call: ann}`:                               "call: ann",
		`{call: {to: ann}}`:                         "call: ann",
		`{call: {to: ann, loud: true}}`:             "call:\n  to: ann\n  loud: true",
		`{call: {to: ann, words: hey}}`:             "call:\n  to: ann\n  words: hey",
		`{call: {to: ann, words: [hey, 2]}}`:        "call:\n  to: ann\n  words:\n    - hey\n    - \"2\"",
		`{call: {to: ann, marks: {b: 1.50, a: x}}}`: "call:\n  to: ann\n  marks:\n    a: x\n    b: \"1.50\"",
		`{call: {to: ann, data: {n: 12345678901234567890, list: [1, "1", null, true, {x: {}}]}}}`: "call:\n  to: ann\n  data:\n" +
			"    list:\n      - 1\n      - \"1\"\n      - null\n      - true\n      - x: {}\n    n: 12345678901234567890",
		`{call: {to: ann, data: [1, "1", null]}}`: "call:\n  to: ann\n  data: [1, \"1\", null]",
		`{call: {to: ann, data: 7}}`:              "call:\n  to: ann\n  data: 7",
		`{call: {to: ann, by: {horn: loud}}}`:     "call:\n  to: ann\n  by:\n    horn: loud",
		`{call: {<<: &x {to: ann}, loud: true}}`:  "call:\n  to: ann\n  loud: true",
	} {
		m, err := decode(t, "jobs: {a: "+text+"}")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		checkRoundTrip(t, m)
		var out bytes.Buffer
		if err := Encode(&out, m.Name, m.Definitions, ""); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(out.String(), "  a:\n    ")
		if got = strings.TrimSpace(strings.ReplaceAll(got, "\n    ", "\n")); got != want {
			t.Errorf("%s: wrote\n%s\nwant\n%s", text, got, want)
		}
	}
}

// TestNamesWithinLists: whatever name a member has, what was written can be read back.
func TestNamesWithinLists(t *testing.T) {
	withCall(t)
	for _, name := range []string{"", "a\nb", "a: b", strings.Repeat("x", 200) + "\u2028", strings.Repeat("long ", 400)} {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{"[{%: 1}]", "[[{%: [{%: {}}]}]]", "{%: [1, {%: x}]}"} {
			m, err := decode(t, "jobs: {a: {call: {to: ann, data: "+strings.ReplaceAll(data, "%", "? "+string(quoted)+" ")+"}}}")
			if err != nil {
				t.Errorf("%s with %.20q: %v", data, name, err)
				continue
			}
			checkRoundTrip(t, m)
			if x := examineJob(&m.Jobs[0], time.Now()); x.problem != "" { // export and job alter read it back
				t.Errorf("%s with %.20q: %s", data, name, x.problem)
			}
		}
	}
}

// TestNestedProblems: each problem has its place.
func TestNestedProblems(t *testing.T) {
	withCall(t)
	for text, want := range map[string]string{
		`{call: {too: ann}}`:                         "1:19: jobs.a.call.too: unknown key; did you mean to? (one of to, loud, words, marks, data, by)",
		`{call: {loud: true}}`:                       "1:18: jobs.a.call.to: is missing, and call needs it",
		`{call: {to: ann, by: {horm: x}}}`:           "1:33: jobs.a.call.by.horm: unknown key; did you mean horn? (one of voice, horn)",
		`{call: {to: ann, by: x}}`:                   `1:32: jobs.a.call.by: found the text "x", want a mapping with keys such as voice, horn`,
		`{call: [ann]}`:                              "1:18: jobs.a.call: found a list, want a text",
		`{call: {to: nobody}}`:                       "1:23: jobs.a.call.to: nobody is there",
		`{steps: [{call: nobody}]}`:                  "1:27: jobs.a.steps[0].call.to: nobody is there",
		`{call: {to: ann, words: [a, "${run_di}"]}}`: "1:39: jobs.a.call.words[1]: ${run_di} is not known; did you mean ${run_id}?",
		`{call: {to: ann, marks: {x: [y]}}}`:         "1:39: jobs.a.call.marks.x: found a list, want a text",
		`{call: {to: ann, data: null}}`:              "1:34: jobs.a.call.data: found nothing, want a value",
		`{call: {to: ann, data: [0x10]}}`:            "1:35: jobs.a.call.data[0]: found the number 0x10, want a number as in JSON",
		`{call: {to: ann, to: bob}}`:                 "1:28: jobs.a.call.to: is given twice",
		`{call: ann, sql: SELECT 1}`:                 "1:28: jobs.a.sql: a step does one thing; sql and call are two steps",
	} {
		_, err := decode(t, "jobs: {a: "+text+"}")
		if err == nil || !strings.HasPrefix(err.Error(), "jobs.yaml:"+want) {
			t.Errorf("%s:\nfound %v\nwant  %s", text, err, want)
		}
	}
}

// TestNestedFlags: the flag of a mapping stands for its first key; another key has a flag if it names one.
func TestNestedFlags(t *testing.T) {
	withCall(t)
	flags := executorFlags()
	want := []Flag{{"call", "call.to", Text, "what to call"}, {"call-loud", "call.loud", Switch, "aloud"}, {"call-word", "call.words", Texts, "a word"}}
	if got := flags[len(flags)-3:]; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	all := JobFlags
	t.Cleanup(func() { JobFlags = all })
	JobFlags = flags
	m, err := JobFromFlags("a", Given{"call": {"ann"}, "call-loud": {"true"}, "call-word": {"hey", "you"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Jobs[0].Steps[0].Spec); got != `{"loud":true,"to":"ann","words":["hey","you"]}` {
		t.Error(got)
	}
	for flag, given := range map[string]Given{"--call": {"call": {"nobody"}}, "--call-word": {"call": {"ann"}, "call-word": {"${x}"}}} {
		if _, err := JobFromFlags("a", given, now); err == nil || !strings.HasPrefix(err.Error(), "job create: "+flag+": ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, err := JobFromFlags("a", Given{"call-loud": {"true"}}, now); err == nil || !strings.HasPrefix(err.Error(), "job create: --call: is missing") {
		t.Error(err)
	}
}
