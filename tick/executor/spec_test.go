package executor

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzReadPlain compares a spec that is read without the JSON package with the same spec read by that package.
func FuzzReadPlain(f *testing.F) {
	for _, spec := range []string{
		`{"sql":["SELECT 1"]}`, `{"sql": ["SELECT 1"]}`, `{ "sql" : [ "SELECT 'ä' " ] , "atomic" : true }`, `{"sql":["a"],"atomic":true}`,
		`{"sql":["a"],"atomic":false}`, `{"sql":["a","b"]}`, `{"sql":["a"],"args":[1]}`, `{"sql":["a\"b"]}`, `{"sql":["a\nb"]}`, `{"sql":[""]}`,
		"{\"sql\":[\"a\nb\"]}", "{\"sql\":[\"\xff\"]}", "{\"sql\":[\"\xef\xbf\xbd\"]}", "{\"sql\":[\"a\x7fb\"]}", `{"sql":["a"]} `, `{"sql":["a"]}}`, `{"sql":["a"],}`,
		`{"sql":["a"],"atomic":true,"atomic":true}`, `{"sql":["a"]`, `{"sql":[{"text":"a"}]}`, `{"sql":"a"}`, `{"SQL":["a"]}`, "{\"sql\":\t[\"a\"]}", `null`, ``,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		got, plain := readPlain(spec)
		if !plain {
			return
		}
		var want SQLSpec
		if err := json.Unmarshal(spec, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v, %v", spec, got, want, err)
		}
	})
}

// The forms in which the engines keep most specs are read without the package.
func TestReadPlain(t *testing.T) {
	for spec, plain := range map[string]bool{
		`{"sql":["INSERT INTO t VALUES (1)"]}`: true, `{"sql": ["INSERT INTO t VALUES (1)"], "atomic": true}`: true, `{"sql":["a"],"target":"b"}`: false,
	} {
		if _, got := readPlain([]byte(spec)); got != plain {
			t.Errorf("%s: %t", spec, got)
		}
	}
}

// A list and an object among the arguments are the texts that a run binds, also in a file that export writes.
func TestArgumentsAreTextsOfJSON(t *testing.T) {
	for _, spec := range []string{
		`{"sql":["a"],"args":[{"b":[1.50,"<ü>"]},[null,true],3]}`, `{"sql":[{"text":"a","args":[{"b":[1.50,"<ü>"]},[null,true],3]}]}`,
	} {
		values, err := KindOf("sql").Values(json.RawMessage(spec))
		if want := []any{`{"b":[1.50,"<ü>"]}`, `[null,true]`, json.Number("3")}; err != nil || !reflect.DeepEqual(values["args"], want) {
			t.Errorf("%s: %#v, %v", spec, values["args"], err)
		}
	}
	if _, err := readSQL(json.RawMessage(`{"sql":["a"],"args":[{"b":"${nothing}"}]}`)); err == nil {
		t.Error("a reference within an object is not checked")
	}
}

func BenchmarkReadSQL(b *testing.B) {
	for name, spec := range map[string]string{"plain": `{"sql": ["INSERT INTO effects (job) VALUES (1)"]}`, "json": `{"sql": ["INSERT INTO effects (job) VALUES (1)"], "target": "t"}`} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := readSQL(json.RawMessage(spec)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
