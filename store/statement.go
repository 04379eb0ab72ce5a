package store

import (
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
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

// args are the named arguments of a statement.
type args map[string]any

var (
	commented = regexp.MustCompile(`(?m)\s*-- .*$`)
	parameter = regexp.MustCompile(`(^|[^:\w]):([a-z_]+)`)
	macro     = regexp.MustCompile(`@[a-z_]+`)
	function  = regexp.MustCompile(`\b(COUNT|MIN|MAX|SUM|ROW_NUMBER)\(`) // that the statements for every engine use
	shared    = map[string]string{
		"@job_columns": jobColumns, "@job_fields": jobFields, "@job_values": jobValues, "@job_changes": jobChanges,
		"@run_columns": runColumns, "@pause_columns": pauseColumns,
		"@most":     fmt.Sprint(mostMade),
		"@of_state": "l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort')",
		"@holds":    "p.resumed_at IS NULL AND p.ends_at > @now",
		// A plan whose state somebody wants to know of: of a job that is there and enabled. A value by the key, as in queued_ids.
		"@counts": "(SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = @true"}
)

// statements are those of a dialect. A text is put into the dialect's words when it is asked for: a pass that finds
// nothing to do needs two of them, and its process begins anew each minute.
type statements struct {
	read  sync.Once
	texts map[string]string
	err   error
	ready sync.Map // of statement, by name
}

// statement is the one of that name.
func (d *dialect) statement(name string) (statement, error) {
	if s, ok := d.statements.ready.Load(name); ok {
		return s.(statement), nil
	}
	text, ok := d.texts()[name]
	if d.statements.err != nil {
		return statement{}, d.statements.err
	}
	if !ok {
		return statement{}, fmt.Errorf("no statement %s", name)
	}
	s, err := d.translate(name, text)
	if err == nil {
		d.statements.ready.Store(name, s)
	}
	return s, err
}

// has tells whether the dialect has a statement that others do without.
func (d *dialect) has(name string) bool {
	_, ok := d.texts()[name]
	return ok
}

// texts are sql/queries.sql, whose statements every engine takes, and the dialect's own queries.sql, whose statements
// stand in the place of those of the same name.
// Tables are written dbjobs.NAME; :name is an argument, @name a macro of the dialect.
func (d *dialect) texts() map[string]string {
	all := &d.statements
	all.read.Do(func() {
		all.texts = map[string]string{}
		for _, file := range []string{"sql/queries.sql", "sql/" + d.name + "/queries.sql"} {
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

// translate puts one text into the dialect's words.
func (d *dialect) translate(name, text string) (statement, error) {
	s := statement{name: name}
	var unknown string
	text = commented.ReplaceAllString(text, "")
	expand := func(m string) string {
		t, ok := d.macros[m]
		if !ok {
			t, ok = shared[m]
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
func (s statement) bind(d *dialect, a args) (text string, out []any, err error) {
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
			out = append(out, d.encode(v))
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
func (d *dialect) encode(v any) any {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return d.instant(clamp(v.UTC().Truncate(time.Microsecond)))
	case runID:
		if v == "" {
			return nil
		}
		return d.id(string(v))
	case document:
		if v == "" {
			return nil
		}
		return d.document(string(v))
	case []int64, []string:
		return d.list(v)
	case null:
		if v == "" {
			return nil
		}
		return string(v)
	}
	return v
}

// Values that the engines want in different forms.
type (
	runID    string // a UUID
	document string // JSON text
	null     string // text that is NULL when empty
)

// instantText is how a document carries an instant: PostgreSQL and SQLite read it as it is, MySQL's statements
// take it as a literal without zone.
func (d *dialect) instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return clamp(t).UTC().Format(d.layout)
}

// with is the arguments and one more.
func with(a args, name string, v any) args {
	out := make(args, len(a))
	for k, v := range a {
		out[k] = v
	}
	out[name] = v
	return out
}
