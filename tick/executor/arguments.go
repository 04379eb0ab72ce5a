package executor

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Facts returns the facts of a run, by the names that arguments may use as ${name}. Instants that are
// not known are nil.
func Facts(t *store.Task) map[string]any {
	at := func(v time.Time) any {
		if v.IsZero() {
			return nil
		}
		return v
	}
	r := &t.Run
	facts := map[string]any{
		"scheduled_for": at(r.ScheduledFor), "interval_start": at(r.IntervalStart), "interval_end": at(r.IntervalEnd),
		"run_id": r.ID, "attempt": int64(r.Attempt), "fence": int64(r.Fence), "job": r.Job, "owner": r.Owner,
	}
	var given map[string]any
	dec := json.NewDecoder(strings.NewReader(r.Args))
	dec.UseNumber()
	if dec.Decode(&given) == nil {
		for k, v := range given {
			facts["args."+k] = v
		}
	}
	stepFacts(t, facts)
	return facts
}

// stepFacts adds the facts that the steps of the run have reported. The facts of a step that has not
// ended are not known.
func stepFacts(t *store.Task, facts map[string]any) {
	if t.Steps == nil {
		return
	}
	members := membersWanted(t)
	for i := range t.Job.Steps {
		name := t.Job.Steps[i].Name
		told, ended := t.Steps[name]
		add := func(fact string, v any, known bool) {
			if !known {
				v = nil
			}
			facts["steps."+name+"."+fact] = v
		}
		add("status", told.State, ended)
		add("error", told.Error, ended && told.Error != "")
		add("output", told.Output, ended)
		rows, counted := told.Result["rows"]
		if !counted && told.Rows != nil {
			rows, counted = *told.Rows, true
		}
		add("rows", rows, counted)
		if told.NotKept() {
			continue
		}
		code, given := told.Result["code"]
		add("code", code, given)
		body, answered := told.Result["body"]
		add("body", body, answered)
		for _, path := range members[name] {
			if v, known := member(body, path); known || !ended {
				add("body."+path, v, true)
			}
		}
		row, returned := told.Result["row"].(map[string]any)
		add("row", row, returned)
		for column, v := range row {
			add("row."+column, v, true)
		}
	}
}

// membersWanted returns which members of the answers of other steps the current step refers to, by the names of those steps.
func membersWanted(t *store.Task) map[string][]string {
	wanted := map[string][]string{}
	if step := t.StepAt(t.Run.Step); step != nil {
		for _, r := range step.References() {
			if path, of := strings.CutPrefix(r.Fact, "body."); of {
				wanted[r.Step] = append(wanted[r.Step], path)
			}
		}
	}
	return wanted
}

// member returns the part of an answer to which a path such as items.0.id leads.
func member(v any, path string) (any, bool) {
	for part := range strings.SplitSeq(path, ".") {
		switch list := v.(type) {
		case map[string]any:
			inner, found := list[part]
			if !found {
				return nil, false
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(list) {
				return nil, false
			}
			v = list[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// noFact says what is wrong with a reference that is not a fact. A column of a step that returned no row is no error; it has
// no value.
func noFact(name string, facts map[string]any) error {
	if told, of := strings.CutPrefix(name, "steps."); of && facts != nil {
		step, fact, _ := store.StepFact(told)
		kind, _, isPart := strings.Cut(fact, ".")
		_, isStep := facts["steps."+step+".status"]
		whole, kept := facts["steps."+step+"."+kind]
		parts, _ := whole.(map[string]any)
		names := strings.Join(slices.Sorted(maps.Keys(parts)), ", ")
		switch {
		case isStep && !kept:
			return fmt.Errorf("what step %q reported is not on record, because no step of the job named such a fact when it ended; `dbjobs run retry RUN --from-step %s` runs it again", step, store.Argument(step))
		case !isPart:
		case kind == "row" && parts == nil:
			return nil
		case kind == "row":
			return fmt.Errorf("the row of step %q has no such column, or it has more than 1 KiB, or it comes after 8 KiB of others; its columns are %s", step, names)
		case whole == nil:
			return fmt.Errorf("step %q had no answer, or one that is not JSON, or has more than 16 KiB", step)
		case parts == nil:
			return fmt.Errorf("the answer of step %q has no such member", step)
		default:
			return fmt.Errorf("the answer of step %q has no such member; its members are %.500s", step, names)
		}
	}
	how := ""
	if arg, of := strings.CutPrefix(name, "args."); of {
		how = fmt.Sprintf(": neither a request (--arg %s=VALUE) nor a job before this one gave it", arg)
	}
	return fmt.Errorf("there is no ${%s}%s; there are %s", name, how, strings.Join(slices.Sorted(maps.Keys(facts)), ", "))
}

// Expand replaces ${name} in an argument. An argument that is only a reference becomes the fact itself, such as an
// instant or a number. Within a longer text the fact becomes text.
func Expand(arg any, facts map[string]any) (any, error) {
	s, ok := arg.(string)
	if !ok {
		return arg, nil
	}
	var out strings.Builder
	for rest := s; ; {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("argument %q: ${ without }", s)
		}
		v, known := facts[name]
		if !known {
			if err := noFact(name, facts); err != nil {
				return nil, fmt.Errorf("argument %q: %w", s, err)
			}
		}
		if s == "${"+name+"}" {
			return v, nil
		}
		within, err := text(v)
		if err != nil {
			return nil, err
		}
		out.WriteString(within)
		rest = tail
	}
}

// expandText replaces ${name} in a text. The result is text, even where the text is only a reference.
func expandText(s string, facts map[string]any) (string, error) {
	v, err := Expand(s, facts)
	if err != nil {
		return "", err
	}
	return text(v)
}

// text returns a value as text: an instant in the form of RFC 3339, in UTC with microseconds; a list or object as JSON; an
// unknown value as the empty text.
func text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000000Z"), nil
	case map[string]any, []any:
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(v)
		return strings.TrimSpace(b.String()), err
	}
	return fmt.Sprint(v), nil
}

// bind converts the arguments of the statements to the forms that the driver accepts.
func (d *database) bind(list []Statement, facts map[string]any) (err error) {
	for i := range list {
		if list[i].Args, err = d.arguments(list[i].Args, d.engine.TextPlaces(list[i].Text), facts); err != nil {
			return err
		}
	}
	return nil
}

// arguments returns the values for the parameters of a statement. On PostgreSQL all values are text, and the server itself
// finds their types: see store's connections. On other engines a parameter has no type, and each value has its own type; there,
// a number that would lose digits stays text.
//
// texts marks the parameters that are text by the statement: an instant there has the form of RFC 3339.
func (d *database) arguments(list []any, texts []bool, facts map[string]any) ([]any, error) {
	out := make([]any, len(list))
	for i, a := range list {
		v, err := Expand(a, facts)
		if err != nil {
			return nil, err
		}
		if at, ok := v.(time.Time); ok && (i >= len(texts) || !texts[i]) {
			out[i] = d.engine.InstantArgument(at)
			continue
		}
		number, isNumber := v.(json.Number)
		_, isBool := v.(bool)
		_, isInt := v.(int64)
		switch {
		case v == nil:
		case d.engine.TextArguments() || !isNumber && !isBool && !isInt:
			if v, err = text(v); err != nil {
				return nil, err
			}
		case isNumber:
			v = exact(number)
		}
		out[i] = v
	}
	return out, nil
}

// exact returns a number as a Go type that keeps all of its digits; as text if there is no such type.
func exact(n json.Number) any {
	if v, err := n.Int64(); err == nil {
		return v
	}
	v, err := n.Float64()
	if err != nil {
		return n.String()
	}
	if v == 0 { // also a number that is nearer to 0 than to any other float64: as a fraction, it could have any size
		return v
	}
	written, _ := new(big.Rat).SetString(n.String())
	kept, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
	if written != nil && kept != nil && written.Cmp(kept) == 0 {
		return v
	}
	return n.String()
}
