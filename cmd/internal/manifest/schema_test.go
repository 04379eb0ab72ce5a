package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// compiled returns the schema for an independent validator, which checks formats such as those of times.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("dbjobs.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("dbjobs.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check validates a manifest as an editor does.
func check(s *jsonschema.Schema, text string) error {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	b, err := json.Marshal(asJSON(v))
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func asJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = asJSON(e)
		}
	case map[any]any:
		all := map[string]any{}
		for k, e := range v {
			all[fmt.Sprint(k)] = asJSON(e)
		}
		return all
	case []any:
		for i, e := range v {
			v[i] = asJSON(e)
		}
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return v
}

// TestSchemaTakesWhatApplyTakes: every manifest of the tests and of the pages is valid.
func TestSchemaTakesWhatApplyTakes(t *testing.T) {
	s := compiled(t)
	n := 0
	valid := func(path, text string) {
		n++
		if err := check(s, text); err != nil {
			t.Errorf("%s: %v\n%s", path, err, text)
		}
	}
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, "testdata/export.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		valid(path, string(text))
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```|<<'END'\n(.*?)\nEND\n")
	for _, path := range []string{"README.md", "cmd/dbjobs/README.md", "tick/README.md", "rules/README.md", "tick/executor/README.md"} {
		text, err := os.ReadFile("../../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			if piece := m[1] + m[2]; regexp.MustCompile(`(?m)^(jobs|schedules):`).MatchString(piece) {
				valid(path, piece)
			}
		}
	}
	valid("variables", "schedules: {a: {rule: 30 2 * * *, nonexistent: '${env:NONE:-skip}', ambiguous: '${env:TWO:-both}', calendar: days, on_holiday: '${env:OFF:-next}'}}\n"+
		"jobs: {b: {sql: SELECT 1, overlap: '${env:OVER:-skip}', after: {job: c, on: '${env:END:-failed}'}}}")
	if n < 30 {
		t.Errorf("only %d manifests", n)
	}
}

// structural are the bad manifests whose structure is wrong. The others have a rule that cannot be read, keys that
// contradict each other, or a name that does not exist: apply finds these.
var structural = []string{"after", "executors", "groups", "meant-nested", "meant", "only-comment", "root-list", "steps", "unknown-key", "wrong-types", "http", "values", "empty"}

func TestSchemaRefusesWrongStructure(t *testing.T) {
	s := compiled(t)
	for _, name := range structural {
		text, err := os.ReadFile("testdata/bad/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if check(s, string(text)) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, text := range []string{
		"jobs: {a: {sql: SELECT 1, overlap: never}}", "jobs: {a: {sql: SELECT 1, timeout: soon}}", "jobs: {a: {sql: SELECT 1, not_before: tomorrow}}",
		"jobs: {a: {sql: SELECT 1, disabled: 3}}", "jobs: {a: {sql: SELECT 1, retry: {jitter: 101}}}", "jobs: {a: {retry: 1}}",
		"schedules: {a: {zone: UTC}}", "jobs: {a: {http: {method: GET}}}", "jobs: {a: {sql: SELECT 1, keep: {runs: 0}}}", "defaults: {after: a}", "zones: UTC",
		"calendars: {a: closed}", "calendars: {a: {days: [3]}}", "calendars: {a: {file: 3}}", "calendars: {a: {working_days: [MO]}}",
	} {
		if check(s, text) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestSchemaHasEachKey: the schema has the keys that a message about an unknown key names, and no other.
func TestSchemaHasEachKey(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Properties  map[string]any
		Definitions map[string]struct {
			Properties map[string]any
			AnyOf      []struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	d := whole.Definitions
	for _, c := range []struct {
		file string
		has  map[string]any
	}{
		{"nosuchkey: 1", whole.Properties},
		{"jobs: {a: {nosuchkey: 1}}", d["job"].Properties},
		{"jobs: {a: {steps: [{nosuchkey: 1}]}}", d["step"].Properties},
		{"schedules: {a: {nosuchkey: 1}}", d["schedule"].AnyOf[1].Properties},
	} {
		_, err := decode(t, c.file)
		named := regexp.MustCompile(`unknown key; one of ([\w, ]+)`).FindStringSubmatch(fmt.Sprint(err))
		if named == nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		want := strings.Split(named[1], ", ")
		var got []string
		for k := range c.has {
			got = append(got, k)
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has\n%q, and a manifest\n%q", c.file, got, want)
		}
	}
}
