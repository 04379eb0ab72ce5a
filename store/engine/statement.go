package engine

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

//go:embed sql
var files embed.FS

// A statement is the SQL text for one engine, with the names of its arguments in the order of the
// placeholders.
type statement struct {
	name string
	text string
	args []string
}

// Args are the named arguments of a statement.
type Args map[string]any

// With returns the arguments with one more.
func (a Args) With(name string, v any) Args {
	out := make(Args, len(a)+1)
	maps.Copy(out, a)
	out[name] = v
	return out
}

var (
	commented = lazyregexp.New(`(?m)\s*-- .*$`)
	parameter = lazyregexp.New(`(^|[^:\w]):([a-z_]+)`)
	macro     = lazyregexp.New(`@[a-z_]+`)
	rowsOf    = lazyregexp.New(`@rows\(([^()]*)\)`)
	function  = lazyregexp.New(`\b(COUNT|MIN|MAX|SUM|ROW_NUMBER)\(`) // the functions that the shared statements use
)

// Words are what a caller puts into the texts. All calls with the same Words share the texts of an engine.
type Words struct {
	macros map[string]string
	each   func() []*strings.Replacer
	texts  sync.Map // of *Statements, by *Engine
}

// NewWords returns Words: macros @name in statements, such as lists of columns, and what a line of a routine is repeated
// for, see Repeatable. Few commands need these lines, so each is called when they do.
func NewWords(macros map[string]string, each func() []*strings.Replacer) *Words {
	return &Words{macros: macros, each: each}
}

// Statements are the statements of an engine. A text is translated when it is first needed: a pass that
// finds nothing to do needs two of them, and each minute a new process runs it.
type Statements struct {
	e     *Engine
	words map[string]string          // macros of the caller
	each  func() []*strings.Replacer // lines of routines; nil: none is repeated
	read  sync.Once
	texts map[string]string
	err   error
	ready sync.Map // of statement, by name
}

// Statements returns the statements of the engine. Without words, they have only the macros of the engine.
func (e *Engine) Statements(words *Words) *Statements {
	if words == nil {
		return &Statements{e: e}
	}
	all, _ := words.texts.LoadOrStore(e, &Statements{e: e, words: words.macros, each: words.each})
	return all.(*Statements)
}

// Names returns the names of all statements in alphabetical order.
func (all *Statements) Names() []string { return slices.Sorted(maps.Keys(all.load())) }

// Used returns the names of the statements that this process has needed so far, in alphabetical order.
func (all *Statements) Used() (names []string) {
	all.ready.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	slices.Sort(names)
	return names
}

// Text returns the final text of a statement, and the names of its arguments in the order of their
// placeholders.
func (all *Statements) Text(name string) (text string, arguments []string, err error) {
	s, err := all.get(name)
	return s.text, s.args, err
}

// Literal returns a statement with values instead of placeholders, for a person who executes it by hand.
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

// get returns the translated statement of that name.
func (all *Statements) get(name string) (statement, error) {
	if s, ok := all.ready.Load(name); ok {
		return s.(statement), nil
	}
	text, ok := all.load()[name]
	if all.err != nil {
		return statement{}, all.err
	}
	if !ok {
		return statement{}, fmt.Errorf("there is no statement %s", name)
	}
	s, err := all.translate(name, text)
	if err == nil {
		all.ready.Store(name, s)
	}
	return s, err
}

// has reports whether the engine has a statement. Some statements exist for single engines only.
func (all *Statements) has(name string) bool {
	_, ok := all.load()[name]
	return ok
}

// load reads sql/queries.sql, whose statements all engines share, and the engine's own queries.sql, whose statements
// replace shared ones of the same name. A table is written dbjobs.NAME, an argument :name, a macro @name.
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
	for _, part := range strings.Split("\n"+string(b), "\n"+mark)[1:] { // the text before the first one is a comment
		name, text, _ := strings.Cut(part, "\n")
		if here[name] {
			return fmt.Errorf("%s: there are two statements %s", file, name)
		}
		here[name], into[name] = true, text
	}
	return nil
}

// translate makes the engine's text of a statement.
func (all *Statements) translate(name, text string) (statement, error) {
	d := all.e
	s := statement{name: name}
	var unknown string
	text = commented.ReplaceAllString(text, "")
	expand := func(m string) string {
		if m == "@rows" { // its columns may be a macro
			return m
		}
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
	for range 4 { // @troubles holds @paused_tags, which holds @holds, which holds @now
		text = macro.ReplaceAllStringFunc(text, expand)
	}
	if unknown != "" {
		return s, fmt.Errorf("statement %s: the dialect has no macro %s", name, unknown)
	}
	text = rowsOf.ReplaceAllStringFunc(text, func(m string) string { return d.rows(columnsOf(rowsOf.FindStringSubmatch(m)[1])) })
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
	lists := 0
	for _, name := range s.args {
		if strings.HasPrefix(name, spread) {
			lists++
		}
	}
	if lists > 0 && len(inList.FindAllString(text, -1)) != lists {
		return s, fmt.Errorf("statement %s: before a list there has to be a column, as in id IN (:%sids)", name, spread)
	}
	s.text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	return s, nil
}

// spread is the prefix of an argument that is a list with one placeholder for each value: each_ids for ids.
const spread = "each_"

// bind returns the arguments in the order of the placeholders, encoded for the driver.
func (s statement) bind(e *Engine, a Args) (text string, out []any, err error) {
	text, out = s.text, make([]any, 0, len(s.args))
	for _, name := range s.args {
		v, ok := a[strings.TrimPrefix(name, spread)]
		switch {
		case !ok:
			return "", nil, fmt.Errorf("statement %s: the argument %s is missing", s.name, name)
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

// inList matches the place of a list in a statement.
var inList = lazyregexp.New(`[\w.]+ IN \(` + spread + `\)`)

// anyOf compares a column with n placeholders, in lists of bounded length: MariaDB turns a list of 1,000
// values into a subquery, and scans the table for it (in_predicate_conversion_threshold). Nothing is in an empty list.
func anyOf(column string, n int) string {
	const most = 500
	if n == 0 {
		return "FALSE"
	}
	var lists []string
	for ; n > 0; n -= most {
		lists = append(lists, column+" IN ("+strings.TrimSuffix(strings.Repeat("?,", min(n, most)), ",")+")")
	}
	return "(" + strings.Join(lists, " OR ") + ")"
}

// each returns the values of a list as arguments.
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

// jsonList writes a list as JSON.
func jsonList(list any) any {
	b, _ := json.Marshal(list) // numbers and strings always encode
	return string(b)
}

// encode returns a value in the form in which the engine compares and stores it. A zero instant, an empty
// id and an empty document become NULL.
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

// Earliest is a value before every value that a column of instants can hold.
type Earliest struct{}

// ID is a UUID.
type ID string

// Document is JSON text.
type Document string

// Null is a text that becomes NULL if it is empty.
type Null string

// Instant is the text of an instant in a document. PostgreSQL and SQLite read it as it is; for MySQL it
// is a literal without a zone.
func (e *Engine) Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Clamp(t).UTC().Format(e.layout)
}
