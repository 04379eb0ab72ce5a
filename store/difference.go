package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// FieldChange is the change of one field, as text. Field is its place in a manifest: steps.load.timeout is the
// timeout of the step load, and steps.load.sql is the SQL that the step executes.
type FieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// apart are fields that belong neither to a definition nor to a job's own schedule.
var apart = []string{"id", "created_at", "jobs"}

// fields returns the JSON of a definition, without fields that do not belong to it; empty if there is no definition.
func fields(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	j, ok := v.(Job)
	if ok { // empty fields are left out
		j.ID, j.CreatedAt = 0, time.Time{}
		v = j
	}
	text, err := asJSON(v)
	if err != nil {
		return nil, fmt.Errorf("encode a definition: %w", err)
	}
	if ok {
		return json.RawMessage(text), nil
	}
	m, err := byField(json.RawMessage(text))
	if err != nil {
		return nil, err
	}
	text, err = asJSON(m)
	return json.RawMessage(text), err
}

// byField splits a definition into its fields.
func byField(definition json.RawMessage) (m map[string]json.RawMessage, err error) {
	err = json.Unmarshal(definition, &m)
	for _, k := range apart {
		delete(m, k)
	}
	return m, err
}

// fieldChanges returns the differences of two definitions.
func fieldChanges(was, became json.RawMessage) ([]FieldChange, error) {
	before, err := byField(was)
	if err != nil {
		return nil, err
	}
	after, err := byField(became)
	return differences(before, after), err
}

// differences returns the fields in which two definitions differ.
func differences(was, became map[string]json.RawMessage) []FieldChange {
	var out []FieldChange
	for _, k := range slices.Sorted(maps.Keys(union(was, became))) {
		if bytes.Equal(was[k], became[k]) { // most fields are equal
			continue
		}
		differ(&out, k, decoded(was[k]), decoded(became[k]))
	}
	return out
}

func union[V any](x, y map[string]V) map[string]V {
	all := maps.Clone(x)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, y)
	return all
}

// decoded returns a JSON value, whose numbers keep all of their digits.
func decoded(raw json.RawMessage) (v any) {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil // there is no value
	}
	if m, ok := v.(map[string]any); ok {
		for _, k := range apart {
			delete(m, k)
		}
	}
	return v
}

// differ goes down to the fields that differ, and appends them to out.
func differ(out *[]FieldChange, path string, was, became any) {
	before, wasNamed := members(was)
	after, isNamed := members(became)
	switch {
	case reflect.DeepEqual(was, became), empty(was) && empty(became):
		return
	case before == nil && was != nil, after == nil && became != nil, before == nil && after == nil:
		*out = append(*out, FieldChange{Field: path, Before: plain(was), After: plain(became)})
		return
	case !slices.Equal(wasNamed, isNamed):
		*out = append(*out, FieldChange{Field: path, Before: strings.Join(wasNamed, ", "), After: strings.Join(isNamed, ", ")})
	}
	for _, k := range slices.Sorted(maps.Keys(union(before, after))) {
		if k == "spec" { // of a step: a manifest has the keys of the spec beside the other keys of the step
			differInSpec(out, path, before[k], after[k])
		} else if _, stays := after[k]; stays || wasNamed == nil { // without names, it is not known which member is gone
			differ(out, path+"."+k, before[k], after[k])
		}
	}
}

// differInSpec is differ for the spec of a step. Its values are the author's own: the body of a request is another one if
// false becomes an empty text, null or no member at all, and its lists are not lists of definitions with names.
func differInSpec(out *[]FieldChange, path string, was, became any) {
	before, _ := was.(map[string]any)
	after, _ := became.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(union(before, after))) {
		x, had := before[k]
		y, has := after[k]
		_, wasObject := x.(map[string]any)
		_, isObject := y.(map[string]any)
		switch {
		case had == has && reflect.DeepEqual(x, y):
		case wasObject && isObject:
			differInSpec(out, path+"."+k, x, y)
		default:
			*out = append(*out, FieldChange{Field: path + "." + k, Before: inSpec(x, had), After: inSpec(y, has)})
		}
	}
}

// inSpec returns a member of a spec as text: empty only if the member is not there.
func inSpec(v any, there bool) string {
	switch {
	case there && v == nil:
		return "null"
	case v == "":
		return `""`
	}
	return plain(v)
}

// empty reports whether a value says the same as a field that is left out. A number never does: a step's jitter of 0
// is not the job's.
func empty(v any) bool { return v == nil || v == "" || v == false }

// members returns the values of an object, or those of a list of objects by their names, or by numbers from 1 where
// they have no names. For a list, order is its order.
func members(v any) (values map[string]any, order []string) {
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case []any:
		values = map[string]any{}
		for i, e := range v {
			m, ok := e.(map[string]any)
			if !ok {
				return nil, nil
			}
			name, _ := m["name"].(string)
			if _, twice := values[name]; name == "" || twice {
				name = fmt.Sprint(i + 1)
			}
			rest := maps.Clone(m)
			delete(rest, "name")
			values[name], order = rest, append(order, name)
		}
	}
	return values, order
}

// plain returns a JSON value without the quotes of a string.
func plain(v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	b, _ := json.Marshal(v) // it comes from JSON, so it encodes
	return string(canonical(b))
}

func same(x, y any) bool {
	was, err := fields(x)
	if err != nil {
		return false
	}
	became, err := fields(y)
	if err != nil {
		return false
	}
	differ, err := fieldChanges(was, became)
	return err == nil && len(differ) == 0
}

// Alike reports whether the jobs have the same definition, whichever manifest has it.
func (j *Job) Alike(other *Job) bool {
	x := *other
	x.Manifest = j.Manifest
	return sameJob(&x, j)
}

// sameJob is same for jobs. Most jobs are equal without a conversion, which is much cheaper to see.
func sameJob(old, j *Job) bool {
	is := *old
	is.ID, is.CreatedAt, is.lostLink, is.staleTimes = j.ID, j.CreatedAt, j.lostLink, j.staleTimes
	is.changedAt, is.removedAt, is.fault = j.changedAt, j.removedAt, j.fault
	if is.Own != nil && j.Own != nil {
		own := *is.Own
		own.ID, own.stale, own.made, own.Past = j.Own.ID, j.Own.stale, j.Own.made, j.Own.Past
		is.Own = &own
	}
	return reflect.DeepEqual(&is, j) || same(*old, *j)
}
