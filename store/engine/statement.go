package engine

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed sql
var files embed.FS

// A statement is SQL text in the words of one dialect, with the names of its arguments in the order of its
// placeholders.
type statement struct {
	name string
	text string
	args []string
}

// Args are the named arguments of a statement.
type Args map[string]any

// With is the arguments and one more.
func (a Args) With(name string, v any) Args {
	out := make(Args, len(a)+1)
	maps.Copy(out, a)
	out[name] = v
	return out
}

var (
	commented = regexp.MustCompile(`(?m)\s*-- .*$`)
	parameter = regexp.MustCompile(`(^|[^:\w]):([a-z_]+)`)
	macro     = regexp.MustCompile(`@[a-z_]+`)
	function  = regexp.MustCompile(`\b(COUNT|MIN|MAX|SUM|ROW_NUMBER)\(`) // that the statements for every engine use
	shared    = map[string]string{
		"@of_state": "l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort')",
		"@holds":    "p.resumed_at IS NULL AND p.ends_at > @now",
		// A plan whose state somebody wants to know of: of a job that is there and enabled. A value by the key, as in queued_ids.
		"@counts": "(SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = @true"}
)

// Statements are those of an engine. A text is put into the engine's words when it is asked for: a pass that finds
// nothing to do needs two of them, and its process begins anew each minute.
type Statements struct {
	e     *Engine
	words map[string]string // macros of who uses them
	read  sync.Once
	texts map[string]string
	err   error
	ready sync.Map // of statement, by name
}

// Statements are the engine's. words are macros, such as columns that the caller reads in one order.
func (e *Engine) Statements(words map[string]string) *Statements {
	return &Statements{e: e, words: words}
}

// Names are those of all statements, in the order of the alphabet.
func (all *Statements) Names() []string { return slices.Sorted(maps.Keys(all.load())) }

// Text is a statement as it is sent, with the names of its arguments in the order of their placeholders.
func (all *Statements) Text(name string) (text string, arguments []string, err error) {
	s, err := all.get(name)
	return s.text, s.args, err
}

// Literal is a statement with values in the place of its arguments, for who runs it by hand.
func (all *Statements) Literal(name string, values map[string]string) (string, error) {
	s, err := all.get(name)
	if err != nil {
		return "", err
	}
	text := s.text
	for i, a := range s.args {
		uses := 1
		if all.e.numbered {
			uses = -1
		}
		text = strings.Replace(text, all.e.placeholder(i+1), values[a], uses)
	}
	return text, nil
}

// get is the one of that name.
func (all *Statements) get(name string) (statement, error) {
	if s, ok := all.ready.Load(name); ok {
		return s.(statement), nil
	}
	text, ok := all.load()[name]
	if all.err != nil {
		return statement{}, all.err
	}
	if !ok {
		return statement{}, fmt.Errorf("no statement %s", name)
	}
	s, err := all.translate(name, text)
	if err == nil {
		all.ready.Store(name, s)
	}
	return s, err
}

// has reports whether the engine has a statement that others do without.
func (all *Statements) has(name string) bool {
	_, ok := all.load()[name]
	return ok
}

// load reads sql/queries.sql, whose statements every engine takes, and the engine's own queries.sql, whose statements
// stand in the place of those of the same name.
// Tables are written dbjobs.NAME; :name is an argument, @name a macro of the engine.
func (all *Statements) load() map[string]string {
	all.read.Do(func() {
		all.texts = map[string]string{}
		for _, file := range []string{"sql/queries.sql", "sql/" + all.e.Name + "/queries.sql"} {
			if err := readStatements(file, all.texts); err != nil {
				all.err = err
				return
			}
		}
	})
	return all.texts
}

func readStatements(file string, into map[string]string) error {
	b, err := files.ReadFile(file)
	if err != nil {
		return err
	}
	const mark = "-- name: "
	here := map[string]bool{}
	for _, part := range strings.Split("\n"+string(b), "\n"+mark)[1:] { // what stands before the first is for who reads the file
		name, text, _ := strings.Cut(part, "\n")
		if here[name] {
			return fmt.Errorf("%s: statement %s is there twice", file, name)
		}
		here[name], into[name] = true, text
	}
	return nil
}

// translate puts one text into the engine's words.
func (all *Statements) translate(name, text string) (statement, error) {
	d := all.e
	s := statement{name: name}
	var unknown string
	text = commented.ReplaceAllString(text, "")
	expand := func(m string) string {
		t, ok := d.macros[m]
		if !ok {
			t, ok = shared[m]
		}
		if !ok {
			t, ok = all.words[m]
		}
		if !ok {
			unknown = m
		}
		return t
	}
	text = macro.ReplaceAllStringFunc(macro.ReplaceAllStringFunc(text, expand), expand) // twice: @lease holds @now
	if unknown != "" {
		return s, fmt.Errorf("statement %s: the dialect has no macro %s", name, unknown)
	}
	text = strings.ReplaceAll(text, "dbjobs.", d.prefix)
	if d.functions != "" {
		text = function.ReplaceAllString(text, d.functions+"$1(")
	}
	seen := map[string]int{}
	text = parameter.ReplaceAllStringFunc(text, func(m string) string {
		p := parameter.FindStringSubmatch(m)
		n, ok := seen[p[2]]
		if !ok || !d.numbered {
			s.args = append(s.args, p[2])
			n = len(s.args)
			seen[p[2]] = n
		}
		if strings.HasPrefix(p[2], spread) {
			return p[1] + spread
		}
		return p[1] + d.placeholder(n)
	})
	s.text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	return s, nil
}

// spread begins the name of an argument that is a list with a placeholder for each of its values: each_ids for ids.
const spread = "each_"

// bind puts the arguments in the order of the placeholders, encoded for the driver.
func (s statement) bind(e *Engine, a Args) (text string, out []any, err error) {
	text, out = s.text, make([]any, 0, len(s.args))
	for _, name := range s.args {
		v, ok := a[strings.TrimPrefix(name, spread)]
		switch {
		case !ok:
			return "", nil, fmt.Errorf("statement %s: no argument %s", s.name, name)
		case strings.HasPrefix(name, spread):
			values := each(v)
			place := inList.FindStringIndex(text)
			column := strings.TrimSuffix(text[place[0]:place[1]], " IN ("+spread+")")
			text = text[:place[0]] + anyOf(column, len(values)) + text[place[1]:]
			out = append(out, values...)
		default:
			out = append(out, e.encode(v))
		}
	}
	return text, out, nil
}

// inList is where a list belongs.
var inList = regexp.MustCompile(`[\w.]+ IN \(` + spread + `\)`)

// anyOf compares a column with n placeholders, in lists of a bounded length: MariaDB makes a subquery of one with 1,000
// values, and scans the table for it (in_predicate_conversion_threshold).
func anyOf(column string, n int) string {
	const most = 500
	var lists []string
	for ; n > 0; n -= most {
		lists = append(lists, column+" IN ("+strings.TrimSuffix(strings.Repeat("?,", min(n, most)), ",")+")")
	}
	return "(" + strings.Join(lists, " OR ") + ")"
}

// each are the values of a list.
func each(list any) []any {
	var out []any
	switch list := list.(type) {
	case []int64:
		for _, v := range list {
			out = append(out, v)
		}
	case []string:
		for _, v := range list {
			out = append(out, v)
		}
	}
	return out
}

// jsonList is a list as JSON text.
func jsonList(list any) any {
	b, _ := json.Marshal(list) // numbers and strings always encode
	return string(b)
}

// encode gives a value in the form in which the engine compares and stores it. A zero instant, an empty id and an
// empty document are NULL.
func (e *Engine) encode(v any) any {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return e.instant(Clamp(v.UTC().Truncate(time.Microsecond)))
	case ID:
		if v == "" {
			return nil
		}
		return e.id(string(v))
	case Document:
		if v == "" {
			return nil
		}
		return e.document(string(v))
	case Earliest:
		return e.least
	case []int64, []string:
		return e.list(v)
	case Null:
		if v == "" {
			return nil
		}
		return string(v)
	}
	return v
}

// Earliest comes before all that a column of instants can hold.
type Earliest struct{}

// ID is a UUID.
type ID string

// Document is JSON text.
type Document string

// Null is text that is NULL when it is empty.
type Null string

// Instant is how a document carries an instant: PostgreSQL and SQLite read it as it is, MySQL's statements
// take it as a literal without zone.
func (e *Engine) Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Clamp(t).UTC().Format(e.layout)
}
