package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store"
)

// SQLSpec is the Spec of the executor sql. In a manifest it consists of the keys sql, args, atomic and so on of the step. As JSON
// it is {"sql": ["DELETE …", {"text": "INSERT …", "args": [1]}], "atomic": true}. If there is only one statement, its args may
// be beside sql; they are also written there.
type SQLSpec struct {
	SQL    []Statement // in order
	Atomic bool
	FailIf string // failIfRows, failIfNoRows, or empty
	Target string // the name of a target of the host; empty: the store's own database
}

// These are checks: a result by which a step fails although its statements have succeeded.
const (
	failIfRows   = "rows"    // the statements returned a row
	failIfNoRows = "no-rows" // the statements returned no row
)

// Statement is one statement with its arguments. It uses the placeholders of the driver. In arguments that are texts,
// ${interval_start} and other facts are replaced: see References.
type Statement struct {
	Text string
	Args []any
}

// Texts makes statements without arguments.
func Texts(list ...string) []Statement {
	out := make([]Statement, len(list))
	for i, text := range list {
		out[i].Text = text
	}
	return out
}

func textsOf(list []Statement) []string {
	out := make([]string, len(list))
	for i, st := range list {
		out[i] = st.Text
	}
	return out
}

type specJSON struct {
	SQL    []Statement `json:"sql"`
	Args   []any       `json:"args,omitempty"`
	Atomic bool        `json:"atomic,omitempty"`
	FailIf string      `json:"fail_if,omitempty"`
	Target string      `json:"target,omitempty"`
}

type statementJSON struct {
	Text string `json:"text"`
	Args []any  `json:"args,omitempty"`
}

// MarshalJSON writes equal specs as equal JSON.
func (s SQLSpec) MarshalJSON() ([]byte, error) {
	v := specJSON{SQL: s.SQL, Atomic: s.Atomic, FailIf: s.FailIf, Target: s.Target}
	if len(s.SQL) == 1 {
		v.SQL, v.Args = Texts(s.SQL[0].Text), s.SQL[0].Args
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads the keys that it knows, and refuses all others. Numbers keep their digits. A list or an object among the
// arguments, which SQL can write and a manifest cannot, is read as its JSON text: that is what is bound.
func (s *SQLSpec) UnmarshalJSON(b []byte) error {
	var v specJSON
	if err := strictly(b, &v); err != nil {
		return err
	}
	for i := range v.SQL {
		if err := flatten(v.SQL[i].Args); err != nil {
			return err
		}
	}
	if err := flatten(v.Args); err != nil {
		return err
	}
	switch {
	case len(v.Args) > 0 && len(v.SQL) > 1:
		return errors.New(`args belong to one statement, and there are several: give each its own, as in {"sql": [{"text": "…", "args": […]}]}`)
	case len(v.Args) > 0 && len(v.SQL) == 1 && len(v.SQL[0].Args) > 0:
		return errors.New("the statement has args twice: in the statement, and beside sql")
	case len(v.Args) > 0 && len(v.SQL) == 1:
		v.SQL[0].Args = v.Args
	}
	s.SQL, s.Atomic, s.FailIf, s.Target = v.SQL, v.Atomic, v.FailIf, v.Target
	return nil
}

// flatten makes texts of the lists and objects among arguments.
func flatten(args []any) (err error) {
	for i, a := range args {
		switch a.(type) {
		case map[string]any, []any:
			if args[i], err = text(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// MarshalJSON writes a statement without arguments as its text.
func (s Statement) MarshalJSON() ([]byte, error) {
	if len(s.Args) == 0 {
		return json.Marshal(s.Text)
	}
	return json.Marshal(statementJSON(s))
}

// UnmarshalJSON reads a text, or an object with text and args.
func (s *Statement) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &s.Text)
	}
	return strictly(b, (*statementJSON)(s))
}

func strictly(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	return dec.Decode(into)
}

var sqlKind = Kind{
	Name: "sql",
	Keys: []Key{
		{Name: "sql", Type: Statements, Comments: []string{"--", "#"}, Help: "statement to run; given several times, they run in order"},
		{Name: "args", Type: Arguments, Flag: "arg", Help: "argument of the statement, as text; may be given several times"},
		{Name: "atomic", Type: Switch, Help: "run the statements in one transaction with the record of their success"},
		{Name: "fail_if", Type: Text, Flag: "fail-if", Help: "rows or no-rows: fail if the statements return rows, or none"},
		{Name: "target", Type: TargetName, Help: "database of the host settings in which the statements run, by its name"},
	},
	Spec:   sqlSpec,
	Values: sqlValues,
	Line:   sqlLine,
	Check: func(spec json.RawMessage) error {
		_, err := readSQL(spec)
		return err
	},
	Open: func(s *store.Store, h *Host) (Executor, error) { return newSQL(s, h) },
	Warn: sqlWarning,
	Touches: func(spec json.RawMessage) Touched {
		s, _ := readSQL(spec) // a spec that cannot be read touches nothing
		return Touched{Target: s.Target}
	},
}

// sqlWarning finds a reference in the text of a statement, where references are not replaced.
func sqlWarning(raw json.RawMessage) string {
	spec, err := readSQL(raw)
	if err != nil {
		return ""
	}
	for _, s := range spec.SQL {
		for _, part := range strings.Split(s.Text, "${")[1:] {
			name, _, closed := strings.Cut(part, "}")
			if reference := "${" + name + "}"; closed && CheckReferences(reference) == nil {
				return fmt.Sprintf("%.100s in the text of a statement stays as it is; "+
					"write a placeholder there, and the reference in args", reference)
			}
		}
	}
	return ""
}

// sqlSpec gives the arguments beside sql to the single statement. It refuses them if there are several statements, or if the
// statement has its own.
func sqlSpec(given map[string]any) (json.RawMessage, error) {
	list, _ := given["sql"].([]Statement)
	beside, _ := given["args"].([]any)
	spec := SQLSpec{SQL: slices.Clone(list)}
	spec.Atomic, _ = given["atomic"].(bool)
	spec.FailIf, _ = given["fail_if"].(string)
	spec.Target, _ = given["target"].(string)
	if err := spec.checkFailIf(); err != nil {
		return nil, &KeyError{[]any{"fail_if"}, err}
	}
	if err := spec.checkTarget(); err != nil {
		return nil, &KeyError{[]any{"target"}, err}
	}
	switch {
	case len(list) == 0 || len(beside) == 0:
	case len(list) > 1:
		return nil, fmt.Errorf("args belong to one statement, and there are %d; give each its own: sql: [{text: …, args: […]}, …]", len(list))
	case len(list[0].Args) > 0:
		return nil, errors.New("the statement has args twice: in the statement, and beside sql")
	default:
		spec.SQL[0].Args = beside
	}
	return json.Marshal(spec)
}

func (s *SQLSpec) checkFailIf() error {
	if s.FailIf != "" && s.FailIf != failIfRows && s.FailIf != failIfNoRows {
		return fmt.Errorf("found %.100q, want %s or %s", s.FailIf, failIfRows, failIfNoRows)
	}
	return nil
}

// checkTarget refuses what is not possible on a target.
func (s *SQLSpec) checkTarget() error {
	if s.Target != "" && s.Atomic {
		return errors.New("cannot be atomic: the end of the step is recorded in dbjobs' own database, and no transaction spans both; " +
			"remove atomic, and write the statements so that they may run twice, such as with ${run_id} as a key")
	}
	return nil
}

// sqlValues returns the values of the keys. The arguments of a single statement are beside sql.
func sqlValues(raw json.RawMessage) (map[string]any, error) {
	var spec SQLSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, err
	}
	given := map[string]any{"sql": spec.SQL, "atomic": spec.Atomic, "fail_if": spec.FailIf, "target": spec.Target}
	if len(spec.SQL) == 1 {
		given["sql"], given["args"] = Texts(spec.SQL[0].Text), spec.SQL[0].Args
	}
	return given, nil
}

func sqlLine(raw json.RawMessage) string {
	var spec SQLSpec
	if json.Unmarshal(raw, &spec) != nil {
		return ""
	}
	texts := make([]string, len(spec.SQL))
	for i, st := range spec.SQL {
		texts[i] = st.Text
	}
	line := strings.Join(texts, "; ")
	if spec.Atomic {
		line = "atomic " + line
	}
	if spec.Target != "" {
		line = "on " + spec.Target + ": " + line
	}
	if spec.FailIf != "" {
		line += "; fail if " + spec.FailIf
	}
	return line
}

// readSQL reads the spec of a step of the executor sql, and refuses what no run could do.
func readSQL(spec json.RawMessage) (SQLSpec, error) {
	v, plain := readPlain(spec)
	if !plain {
		if err := json.Unmarshal(spec, &v); err != nil {
			return v, fmt.Errorf(`the spec is not of the form {"sql": ["…"], "atomic": true}: %w`, err)
		}
	}
	if len(v.SQL) == 0 {
		return v, errors.New("has no statement")
	}
	if err := v.checkFailIf(); err != nil {
		return v, fmt.Errorf("fail_if: %w", err)
	}
	if err := v.checkTarget(); err != nil {
		return v, fmt.Errorf("target: %w", err)
	}
	for i, st := range v.SQL {
		where := ""
		if len(v.SQL) > 1 {
			where = fmt.Sprintf("statement %d: ", i+1)
		}
		if strings.TrimSpace(st.Text) == "" {
			return v, errors.New(where + "is empty")
		}
		for _, a := range st.Args {
			if err := CheckReferences(a); err != nil {
				return v, fmt.Errorf("%sargument %.200q: %w", where, a, err)
			}
		}
	}
	return v, nil
}

// readPlain reads {"sql": ["…"]}, with or without atomic: one statement that has no arguments, and no character that JSON
// escapes. Most specs have this form, and each run and each apply reads them. readPlain takes a tenth of the time that
// reading JSON takes.
func readPlain(spec []byte) (v SQLSpec, plain bool) {
	rest := spec
	next := func(tokens ...string) (found bool) {
		for _, token := range tokens {
			if rest, found = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte(token)); !found {
				return false
			}
		}
		return true
	}
	if !next("{", `"sql"`, ":", "[", `"`) {
		return v, false
	}
	end := bytes.IndexFunc(rest, func(c rune) bool { return c == '"' || c == '\\' || c < ' ' || c == utf8.RuneError })
	if end < 0 || rest[end] != '"' {
		return v, false
	}
	text := rest[:end]
	if rest = rest[end:]; !next(`"`, "]") {
		return v, false
	}
	if before := rest; next(",") {
		v.Atomic = next(`"atomic"`, ":", "true")
		plain = v.Atomic
	} else {
		rest, plain = before, true
	}
	if !plain || !next("}") || len(rest) > 0 {
		return SQLSpec{}, false
	}
	v.SQL = Texts(string(text))
	return v, true
}

// References returns the names that an argument may use as ${NAME}: the facts of a run. A run on request also has
// ${args.NAME}.
func References() []string {
	return []string{"scheduled_for", "interval_start", "interval_end", "run_id", "attempt", "fence", "job", "owner"}
}

// CheckReferences refuses an argument that names a fact that no run has. For an unknown name, the error is a *ReferenceError.
func CheckReferences(arg any) error {
	rest, ok := arg.(string)
	for ok {
		var after string
		if _, after, ok = strings.Cut(rest, "${"); !ok {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return errors.New("found ${ without }")
		}
		rest = tail
		if given, of := strings.CutPrefix(name, "args."); of && given != "" {
			continue
		}
		if named, of := strings.CutPrefix(name, "secret:"); of && named != "" {
			continue
		}
		if told, of := strings.CutPrefix(name, "steps."); of {
			if _, _, ok := store.StepFact(told); ok {
				continue
			}
		}
		if !slices.Contains(References(), name) {
			return &ReferenceError{name}
		}
	}
	return nil
}

// ReferenceError reports a name in an argument that is not the name of a fact.
type ReferenceError struct{ Name string }

func (e *ReferenceError) Error() string {
	if strings.HasPrefix(e.Name, "steps.") {
		return fmt.Sprintf("${%.100s} is not known; of a step there are ${steps.NAME.status}, rows, error, output, code, row, row.COLUMN, body and body.MEMBER", e.Name)
	}
	if strings.HasPrefix(e.Name, "secret:") {
		return "${secret:} names no secret; write ${secret:NAME}"
	}
	return fmt.Sprintf("${%.100s} is not known; there are ${%s}, and ${args.NAME} in a requested run", e.Name, strings.Join(References(), "}, ${"))
}
