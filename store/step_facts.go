package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// StepFacts are the facts that an earlier step of a run gives to later steps: how its last attempt ended.
type StepFacts struct {
	State  string // of the attempt
	Rows   *int64 // affected
	Error  string
	Output string
	Result map[string]any // the facts that the executor reported; numbers are json.Number
}

// FactsNotKept is the result of an attempt that reported facts when no step of its job referred to facts.
const FactsNotKept = "{}"

// NotKept reports whether the attempt reported facts that are not on record.
func (f StepFacts) NotKept() bool { return f.Result != nil && len(f.Result) == 0 }

// mostResult bounds the result of an attempt. A larger one is not kept.
const mostResult = 32 << 10

// reference finds the references to facts of steps in a spec. They may stand anywhere in the spec, within texts of JSON: there a
// quotation mark in a name has a backslash.
var reference = lazyregexp.New(`\$\{steps\.(?:[^}"\\]|\\.)*\}`)

// stepFacts are the facts of a step; row and body have parts.
var stepFacts = []string{"status", "rows", "error", "output", "code", "row", "body"}

// FactsOfSteps returns the names of the facts that a step gives to later steps.
func FactsOfSteps() []string { return slices.Clone(stepFacts) }

// StepFact splits the text within ${steps.NAME.FACT}. The fact is one of stepFacts, row.COLUMN, or body.MEMBER. A
// name may have dots, and so may a column.
func StepFact(text string) (name, fact string, ok bool) {
	if at := partOf.FindStringIndex(text); at != nil {
		return text[:at[0]], text[at[0]+1:], at[0] > 0 && at[1] < len(text)
	}
	i := strings.LastIndexByte(text, '.')
	if i <= 0 || !slices.Contains(stepFacts, text[i+1:]) {
		return "", "", false
	}
	return text[:i], text[i+1:], true
}

// partOf is the text before a column or a member.
var partOf = lazyregexp.New(`\.(row|body)\.`)

// Refers reports whether the step refers to facts of steps.
func (st *Step) Refers() bool { return strings.Contains(string(st.Spec), "${steps.") }

// TellsSteps reports whether any step of the job refers to facts of steps, so that results are kept.
func (j *Job) TellsSteps() bool {
	return slices.ContainsFunc(j.Steps, func(st Step) bool { return st.Refers() })
}

// StepReference is a reference of a spec to a fact of a step, as it is written: ${steps.NAME.FACT}.
type StepReference struct{ Text, Step, Fact string }

// References returns the references of the step, in order.
func (st *Step) References() (list []StepReference) {
	for _, found := range reference.FindAllString(string(st.Spec), -1) {
		text := ""
		if json.Unmarshal([]byte(`"`+found+`"`), &text) != nil {
			continue
		}
		if name, fact, ok := StepFact(strings.TrimSuffix(strings.TrimPrefix(text, "${steps."), "}")); ok {
			list = append(list, StepReference{text, name, fact})
		}
	}
	return list
}

// argument finds the references to arguments of the run, as reference does.
var argument = lazyregexp.New(`\$\{args\.(?:[^}"\\]|\\.)*\}`)

// Arguments returns the names of the arguments that the step refers to, in order: NAME of ${args.NAME}.
func (st *Step) Arguments() (list []string) {
	for _, found := range argument.FindAllString(string(st.Spec), -1) {
		text := ""
		if json.Unmarshal([]byte(`"`+found+`"`), &text) == nil {
			list = append(list, strings.TrimSuffix(strings.TrimPrefix(text, "${args."), "}"))
		}
	}
	return list
}

// checkReferences refuses references of step number i to a step that the job does not have, or that never ends before
// step i begins. A step to which step i may refer can still be left out in a run: then it has no facts.
func (j *Job) checkReferences(i int) error {
	for _, r := range j.Steps[i].References() {
		of := slices.IndexFunc(j.Steps, func(st Step) bool { return st.Name == r.Step })
		switch {
		case of < 0:
			return fmt.Errorf("%.200s: there is no step %.100q in the job", r.Text, r.Step)
		case j.leads(of, i):
		case of == i:
			return fmt.Errorf("%.200s: a step cannot learn of itself, unless another one leads back to it", r.Text)
		default:
			return fmt.Errorf("%.200s: the step %.100q never runs before this one; name an earlier step", r.Text, r.Step)
		}
	}
	return nil
}

// StepFacts reads how the steps of a run have ended so far, by their names. Of the step under way, it reads the last visit: a
// try or a delivery has the facts that the first one of its own visit had.
func (s *Store) StepFacts(ctx context.Context, run, step string) (map[string]StepFacts, error) {
	facts := map[string]StepFacts{}
	var f StepFacts
	var name, result string
	var n *int64
	rd := engine.Reads(&name, &f.State, optional[int64]{&n}, engine.Nullable(&f.Error), engine.Nullable(&f.Output), engine.Nullable(&result))
	faults := ""
	err := s.db.Query(ctx, "step_facts", engine.Args{"id": engine.ID(run), "step": step}, rd.Each(func(fault string) {
		faults = engine.JoinFaults(faults, fault)
		f.Rows = n
		dec := json.NewDecoder(strings.NewReader(result))
		dec.UseNumber()
		_ = dec.Decode(&f.Result) // plain SQL may have written anything there: then there is no result
		facts[name] = f
		name, result, f = "", "", StepFacts{}
	}))
	if err == nil && faults != "" {
		err = s.db.Wrap(actions["step_facts"], fmt.Errorf("what an earlier step told cannot be read: %s", faults))
	}
	return facts, err
}

// result returns the result of an attempt of an owner's job as it is kept, or nil. Secrets, and characters that not every engine can
// store, are replaced in each text of it separately, names of members too, so it stays JSON.
func (s *Store) result(owner, text string) any {
	if text == "" {
		return nil
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(harmless(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err == nil && len(text) <= mostResult {
		if told, err := asJSON(s.toldValue(owner, v)); err == nil && len(told) <= mostResult {
			return told
		}
	}
	if told, ok := v.(map[string]any); ok && told["body"] != nil { // the answer is too long; the rest is kept
		delete(told, "body")
		if rest, err := asJSON(told); err == nil {
			return rest
		}
	}
	return `{"row": {}}` // a reference to a column then fails, instead of becoming empty
}

// asJSON writes a value as JSON, in which <, > and & stay one byte each: an answer in which each became six could be too long, and to
// MariaDB, a definition in which they are escaped is another one.
func asJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func (s *Store) toldValue(owner string, v any) any {
	switch v := v.(type) {
	case string:
		return harmless(s.db.Hide(owner, v)) // in JSON, NUL is an escape
	case json.Number: // a password may be one
		if shown := s.db.Hide(owner, v.String()); shown != v.String() {
			return shown
		}
	case []any:
		for i := range v {
			v[i] = s.toldValue(owner, v[i])
		}
	case map[string]any:
		told := make(map[string]any, len(v))
		for k := range v {
			told[harmless(s.db.Hide(owner, k))] = s.toldValue(owner, v[k])
		}
		return told
	}
	return v
}
