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

// StepFacts are what an earlier step of a run tells the later ones: how its last attempt ended.
type StepFacts struct {
	State  string // of the attempt
	Rows   *int64 // affected
	Error  string
	Output string
	Result map[string]any // what the executor told as facts; numbers are json.Number
}

// mostResult bounds the result of an attempt. A larger one is not kept.
const mostResult = 32 << 10

// mostSteps bounds the attempts that are looked through for the facts of steps: the newest of a run.
const mostSteps = 200

// reference finds what a spec wants to know of steps. It may be named anywhere in the spec.
var reference = lazyregexp.New(`\$\{steps\.([^}"\\]*)\}`)

// stepFacts are the facts of a step; row and body have parts.
var stepFacts = []string{"status", "rows", "error", "output", "code", "row", "body"}

// FactsOfSteps are the names of what a step tells later ones.
func FactsOfSteps() []string { return slices.Clone(stepFacts) }

// StepFact divides what stands in ${steps.NAME.FACT}. The fact is one of stepFacts, row.COLUMN, or
// body.MEMBER. A name may have dots, and so may a column.
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

// partOf is what stands before a column, or before a member.
var partOf = lazyregexp.New(`\.(row|body)\.`)

// Refers reports whether the step wants to know something of steps.
func (st *Step) Refers() bool { return strings.Contains(string(st.Spec), "${steps.") }

// TellsSteps reports whether any step of the job wants to know something of others, so that their results
// are kept.
func (j *Job) TellsSteps() bool {
	return slices.ContainsFunc(j.Steps, func(st Step) bool { return st.Refers() })
}

// StepReference is what a spec wants to know of a step, as it is written: ${steps.NAME.FACT}.
type StepReference struct{ Text, Step string }

// References are those of the step, in order.
func (st *Step) References() (list []StepReference) {
	for _, found := range reference.FindAllStringSubmatch(string(st.Spec), -1) {
		if name, _, ok := StepFact(found[1]); ok {
			list = append(list, StepReference{found[0], name})
		}
	}
	return list
}

// checkReferences refuses what step number i can never learn: of a step that the job does not have, and of
// one that never ends before this one begins. A step may have been left out on the way: then it has told
// nothing.
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

// StepFacts reads how the steps of a run ended so far, by their names.
func (s *Store) StepFacts(ctx context.Context, run string) (map[string]StepFacts, error) {
	facts := map[string]StepFacts{}
	var f StepFacts
	var name, result string
	var n *int64
	rd := engine.Reads(&name, &f.State, optional[int64]{&n}, engine.Nullable(&f.Error), engine.Nullable(&f.Output), engine.Nullable(&result))
	err := s.db.Query(ctx, "step_facts", engine.Args{"id": engine.ID(run), "limit": mostSteps}, rd.Each(func(fault string) error {
		defer func() { name, result, f = "", "", StepFacts{} }()
		if fault != "" {
			return fmt.Errorf("what an earlier step told cannot be read: %s", fault)
		}
		if _, newer := facts[name]; newer {
			return nil
		}
		f.Rows = n
		dec := json.NewDecoder(strings.NewReader(result))
		dec.UseNumber()
		_ = dec.Decode(&f.Result) // somebody may have written anything there: then there is no result
		facts[name] = f
		return nil
	}))
	return facts, err
}

// result is that of an attempt as it is kept, or nil. Secrets, and what not every engine can keep, are
// replaced in each text of it by itself, so that it stays JSON.
func (s *Store) result(text string) any {
	if text == "" {
		return nil
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(harmless(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err == nil && len(text) <= mostResult {
		if b, err := json.Marshal(s.toldValue(v)); err == nil && len(b) <= mostResult {
			return string(b)
		}
	}
	if told, ok := v.(map[string]any); ok && told["body"] != nil { // an answer that is too long; the rest is kept
		delete(told, "body")
		if b, err := json.Marshal(told); err == nil {
			return string(b)
		}
	}
	return `{"row": {}}` // a reference to a column fails, rather than to stand for nothing
}

func (s *Store) toldValue(v any) any {
	switch v := v.(type) {
	case string:
		return harmless(s.db.Hide(v)) // in JSON, NUL is an escape
	case json.Number: // a password may be one
		if shown := s.db.Hide(v.String()); shown != v.String() {
			return shown
		}
	case []any:
		for i := range v {
			v[i] = s.toldValue(v[i])
		}
	case map[string]any:
		told := make(map[string]any, len(v))
		for k := range v {
			told[harmless(k)] = s.toldValue(v[k])
		}
		return told
	}
	return v
}
