package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// A change is reported as the fields that differ, down to those of a step.
func TestDifferences(t *testing.T) {
	job := func(own *Schedule, tags []string, steps ...Step) *Job {
		return &Job{Name: "a", Own: own, Tags: tags, Steps: steps}
	}
	step := func(name, sql string, timeout Duration) Step {
		spec, err := json.Marshal(map[string]any{"sql": []string{sql}, "args": []any{json.Number("9007199254740993")}})
		if err != nil {
			t.Fatal(err)
		}
		return Step{Name: name, Executor: "sql", Spec: spec, Timeout: timeout}
	}
	every := func(rule string) *Schedule { return &Schedule{Rule: rule, Zone: "UTC"} }
	exact := func(jitter *int) Step { return Step{Name: "load", Executor: "sql", Retry: Retry{Jitter: jitter}} }
	load, tell := step("load", "SELECT 1", 0), step("tell", "SELECT '<2>'", 5e9)
	for name, c := range map[string]struct {
		was, became *Job
		want        []FieldChange
	}{
		"nothing":         {job(every("every 5m"), nil, load), job(every("every 5m"), nil, load), nil},
		"a rule":          {job(every("every 5m"), nil, load), job(every("every 6m"), nil, load), []FieldChange{{"own.rule", "every 5m", "every 6m"}}},
		"no rule":         {job(every("every 5m"), nil, load), job(nil, nil, load), []FieldChange{{"own.rule", "every 5m", ""}, {"own.zone", "UTC", ""}}},
		"a list of texts": {job(nil, []string{"x"}, load), job(nil, []string{"x", "<y>"}, load), []FieldChange{{"tags", `["x"]`, `["x","<y>"]`}}},
		"a step":          {job(nil, nil, load, tell), job(nil, nil, load, step("tell", "SELECT 3", 0)), []FieldChange{{"steps.tell.sql", `["SELECT '<2>'"]`, `["SELECT 3"]`}, {"steps.tell.timeout", "5s", ""}}},
		"a step's 0":      {job(nil, nil, exact(nil)), job(nil, nil, exact(new(0))), []FieldChange{{"steps.load.retry.jitter", "", "0"}}},
		"their order":     {job(nil, nil, load, tell), job(nil, nil, tell, load), []FieldChange{{"steps", "load, tell", "tell, load"}}},
		"a new step": {job(nil, nil, load), job(nil, nil, load, tell), []FieldChange{{"steps", "load", "load, tell"}, {"steps.tell.executor", "", "sql"},
			{"steps.tell.args", "", "[9007199254740993]"}, {"steps.tell.sql", "", `["SELECT '<2>'"]`}, {"steps.tell.timeout", "", "5s"}}},
		"a step without a name": {job(nil, nil, step("", "SELECT 1", 0)), job(nil, nil, step("", "SELECT 2", 0)), []FieldChange{{"steps.1.sql", `["SELECT 1"]`, `["SELECT 2"]`}}},
	} {
		t.Run(name, func(t *testing.T) {
			was, err := fields(c.was)
			if err != nil {
				t.Fatal(err)
			}
			became, err := fields(c.became)
			if err != nil {
				t.Fatal(err)
			}
			got, err := fieldChanges(was, became)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %s\nwant %s", fmt.Sprint(got), fmt.Sprint(c.want))
			}
		})
	}
}

// What a step sends is its author's own: no value of it says the same as another one, or as none.
func TestDifferencesWithinABody(t *testing.T) {
	send := func(body string) Job {
		return Job{Name: "a", Steps: []Step{{Name: "send", Executor: "http", Spec: json.RawMessage(`{"json":` + body + `}`)}}}
	}
	for _, c := range []struct {
		was, became string
		want        FieldChange
	}{
		{`{"a":false,"b":1}`, `{"b":1}`, FieldChange{"steps.send.json.a", "false", ""}},
		{`{"b":1}`, `{"a":null,"b":1}`, FieldChange{"steps.send.json.a", "", "null"}},
		{`{"a":false}`, `{"a":null}`, FieldChange{"steps.send.json.a", "false", "null"}},
		{`{"a":""}`, `{"a":false}`, FieldChange{"steps.send.json.a", `""`, "false"}},
		{`{"a":[]}`, `{"a":{}}`, FieldChange{"steps.send.json.a", "[]", "{}"}},
		{`{"a":{}}`, `{}`, FieldChange{"steps.send.json.a", "{}", ""}},
		{`[{"name":5}]`, `[{"name":6}]`, FieldChange{"steps.send.json", `[{"name":5}]`, `[{"name":6}]`}},
		{`[{"x":1}]`, `[{"name":"1","x":1}]`, FieldChange{"steps.send.json", `[{"x":1}]`, `[{"name":"1","x":1}]`}},
		{`[{"name":"2","x":1},{}]`, `[{"name":"2","x":5},{}]`, FieldChange{"steps.send.json", `[{"name":"2","x":1},{}]`, `[{"name":"2","x":5},{}]`}},
	} {
		was, became := send(c.was), send(c.became)
		if same(was, became) || sameJob(&was, &became) {
			t.Errorf("%s and %s: the same", c.was, c.became)
		}
		before, err := fields(was)
		if err != nil {
			t.Fatal(err)
		}
		after, err := fields(became)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fieldChanges(before, after); err != nil || !reflect.DeepEqual(got, []FieldChange{c.want}) {
			t.Errorf("%s and %s: got %v, %v", c.was, c.became, got, err)
		}
	}
}
