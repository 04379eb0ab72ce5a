package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// A Policy describes one key of a job, except for its effect. The list of policies determines the defaults and simple
// checks of a job, its columns in the statements and routines, the keys of a manifest, the flags of job create, and the
// policies that job show prints. Checks for policies that contradict each other are in contradictions.
//
// A new policy needs a field of Job, an entry in policies, and a column in the schema of each engine; if decisions depend on
// it, also a part of plan_input there and in planInput. Tests then name the pages and golden files that lack it.
type Policy struct {
	Key     string   // in a manifest; keep.runs is the key runs within keep
	Default any      // the meaning of the zero value; nil: the zero value is meant
	Allowed []string // the words that a text may be; nil: any text
	Least   int64    // the smallest number allowed; 1 for a duration that may not be zero
	Most    int64    // the largest number allowed; 0: the largest that the column holds
	Short   bool     // a value in place of its section is that of this key, and the section is given as a whole
	Shared  bool     // may be among the defaults of a file
	Flag    string   // of job create, if it is not the key with dashes
	Help    string   // of the flag, with {allowed} and {default}; empty: there is no flag

	column string   // of jobs; empty: it is written with the job's name
	null   bool     // the zero value is NULL
	text   textRule // of a text, and of each one in a list
	field  func(*Job) any
	stored func(*Job) any // the value of the column, if that is not the field
}

// A textRule is what a text has to be, beside one of the words allowed.
type textRule struct {
	kind  string // what the routines do with the text; empty: it is written as it is
	check func(string) error
}

var (
	short      = textRule{"", checkDescription}
	aName      = textRule{"name", checkName}
	nameOrNone = textRule{"name", optionalName}
	aHook      = textRule{"hook", CheckHook}
)

// Policies are the policies of a job, in the order in which they are written. Do not change the
// list.
func Policies() []Policy { return policies }

// Of returns a pointer to the job's value: *string, *[]string, *int, *int64, *bool, *time.Time or *Duration. For a
// policy that a step may have too, it is **int, **Duration or **Attempts.
func (p *Policy) Of(j *Job) any { return p.field(j) }

// FlagName returns the name of the flag of job create.
func (p *Policy) FlagName() string {
	if p.Flag != "" {
		return p.Flag
	}
	return strings.ReplaceAll(strings.ReplaceAll(p.Key, "_", "-"), ".", "-")
}

// Usage returns the help of the flag.
func (p *Policy) Usage() string {
	if !strings.Contains(p.Help, "{") { // most texts have none, and each command reads all of them
		return p.Help
	}
	words := strings.Join(p.Allowed, ", ")
	if i := strings.LastIndex(words, ", "); i >= 0 {
		words = words[:i] + " or " + words[i+2:]
	}
	return strings.NewReplacer("{allowed}", words, "{default}", fmt.Sprint(p.Default)).Replace(p.Help)
}

// normalize fills in the default.
func (p *Policy) normalize(j *Job) {
	switch v := p.field(j).(type) {
	case *string:
		fill(v, p.Default)
	case *int:
		fill(v, p.Default)
	case *Duration:
		fill(v, p.Default)
	case **Attempts:
		open(v, p.Default)
	case **Duration:
		open(v, p.Default)
	case **int:
		open(v, p.Default)
	case *[]string:
		if *v = slices.Clone(*v); len(*v) == 0 {
			*v = nil
		}
		slices.Sort(*v)
	case *[]After:
		if *v = slices.Clone(*v); len(*v) == 0 {
			*v = nil
		}
		for i := range *v {
			fill(&(*v)[i].On, OnSuccess)
		}
		sortAfter(*v)
	case *time.Time:
		*v = v.UTC().Truncate(time.Microsecond)
	}
}

func fill[T comparable](p *T, usual any) {
	if v, ok := usual.(T); ok {
		orDefault(p, v)
	}
}

func open[T any](p **T, usual any) {
	if v, ok := usual.(T); ok && *p == nil {
		*p = &v
	}
}

// problem refuses a value that is wrong regardless of the other policies.
func (p *Policy) problem(j *Job) error {
	switch v := p.field(j).(type) {
	case *string:
		if p.Allowed != nil {
			return oneOf(*v, p.Allowed...)
		}
		if p.text.check != nil {
			return p.text.check(*v)
		}
	case *[]string:
		for _, s := range *v {
			if err := p.text.check(s); err != nil {
				return err
			}
		}
	case *[]After:
		return checkAfter(j, *v)
	case *int:
		return p.below(int64(*v))
	case *int64:
		return p.below(*v)
	case **int:
		if n := int64(**v); n < p.Least || n > p.Most {
			return fmt.Errorf("%d is not a percentage from 0 to 100", n)
		}
	case *Duration:
		return duration(*v)
	case **Duration:
		return duration(**v)
	case *time.Time:
		return instant(*v)
	}
	return nil
}

func (p *Policy) below(n int64) error {
	least := p.Least
	if p.null { // zero means that there is no value
		least = min(least, 0)
	}
	if n < least {
		return fmt.Errorf("%d is below %d", n, least)
	}
	return nil
}

// value returns a pointer to the value of the column.
func (p *Policy) value(j *Job) any {
	if p.stored != nil {
		return p.stored(j)
	}
	return p.field(j)
}

// scan returns the destination of the column.
func (p *Policy) scan(j *Job) any {
	switch v := p.value(j).(type) {
	case *string:
		if p.null {
			return engine.Nullable(v)
		}
	case *int:
		if p.null {
			return engine.Nullable(v)
		}
	case *int64:
		if p.null {
			return engine.Nullable(v)
		}
	case *[]string:
		return tags{v}
	case *time.Time:
		return engine.At(v)
	case *Duration:
		return ms{v}
	case **Attempts:
		return must{optional[Attempts]{v}}
	case **Duration:
		return must{milliseconds{v}}
	case **int:
		return must{optional[int]{v}}
	}
	return p.value(j)
}

// arg returns the argument from which the column is written.
func (p *Policy) arg(j *Job) any {
	switch v := p.value(j).(type) {
	case *string:
		if p.null {
			return engine.Null(*v)
		}
		return *v
	case *int:
		return p.number(int64(*v))
	case *int64:
		return p.number(*v)
	case *Duration:
		return p.number(v.ms())
	case *[]string:
		return list(*v)
	case *bool:
		return *v
	case not:
		return !*v.p
	case *time.Time:
		return *v
	case **Attempts:
		return int(**v)
	case **Duration:
		return (*v).ms()
	case **int:
		return **v
	}
	panic(fmt.Sprintf("store: policy %s is of no known type", p.Key))
}

func (p *Policy) number(n int64) any {
	if p.null {
		return positive(n)
	}
	return n
}

// list returns a column of texts. It has none of the escapes that JSON for HTML has: people read the column.
func list(texts []string) engine.Document {
	if texts == nil {
		texts = []string{}
	}
	b, _ := json.Marshal(texts) // strings always encode
	return engine.Document(canonical(b))
}

// unplanned are the policies from whose columns jobs are not planned. All such columns are texts.
var unplanned = func() (list []*Policy) {
	for i := range policies {
		if p := &policies[i]; p.column != "" && !slices.Contains(planInput, p.column) {
			list = append(list, p)
		}
	}
	return list
}()

// The columns of jobs as the statements name them: to read them in the order of scanJob, and to write them from a
// document of rows, with the types that the macro @rows knows. jobBeside has the columns from which jobs are not
// planned.
var jobColumns, jobBeside, jobFields, jobTypes, jobValues, jobChanges, jobChangesByName = jobTexts()

func jobTexts() (columns, beside, fields, types, values, changes, changesByName string) {
	written, kinds := make([]string, 0, len(policies)+1), make([]string, 0, len(policies)+1)
	others := []string{"id", "owner", "name"}
	for i := range policies {
		if p := &policies[i]; p.column != "" {
			written, kinds = append(written, p.column), append(kinds, p.column+" "+p.kind())
		}
	}
	for _, p := range unplanned {
		others = append(others, p.column)
	}
	each := func(format string, names []string) string {
		var text strings.Builder
		for i, name := range names {
			switch {
			case i > 0 && i%8 == 0: // lines that a person can read
				text.WriteString(",\n  ")
			case i > 0:
				text.WriteString(", ")
			}
			text.WriteString(strings.ReplaceAll(format, "NAME", name))
		}
		return text.String()
	}
	read := slices.Concat([]string{"id", "owner", "name"}, written, []string{"manifest", "created_at", "changed_at", "removed_at"})
	written, kinds = append(written, "manifest"), append(kinds, "manifest text")
	others = append(others, "manifest", "created_at", "changed_at")
	return each("j.NAME", read), each("j.NAME", others), each("NAME", written), each("NAME", kinds), each("d.NAME", written), each("NAME = d.NAME", written),
		each("j.NAME = d.NAME", written)
}

// kind returns the type of the column in a document of rows.
func (p *Policy) kind() string {
	switch p.value(new(Job)).(type) {
	case *int, **int, **Attempts:
		return "int"
	case *int64, *Duration, **Duration:
		return "bigint"
	case *bool, not:
		return "bool"
	case *time.Time:
		return "instant"
	case *[]string:
		return "json"
	}
	return "text"
}

// scanJob returns the destinations of @job_columns.
func scanJob(j *Job) []any {
	into := []any{&j.ID, &j.Owner, &j.Name}
	for i := range policies {
		if p := &policies[i]; p.column != "" {
			into = append(into, p.scan(j))
		}
	}
	return append(into, engine.Nullable(&j.Manifest), must{engine.At(&j.CreatedAt)}, must{engine.At(&j.changedAt)}, engine.At(&j.removedAt))
}

// scanBeside returns the destinations of @job_beside.
func scanBeside(j *Job) []any {
	into := []any{&j.ID, &j.Owner, &j.Name}
	for _, p := range unplanned {
		into = append(into, p.scan(j))
	}
	return append(into, engine.Nullable(&j.Manifest), must{engine.At(&j.CreatedAt)}, must{engine.At(&j.changedAt)})
}

// jobRow returns the row of insert_jobs and update_jobs.
func jobRow(e *engine.Engine, j *Job) json.RawMessage {
	var b []byte
	if j.ID != 0 {
		b = e.AppendField(b, "id", j.ID)
	}
	b = e.AppendField(e.AppendField(b, "owner", j.Owner), "name", j.Name)
	for i := range policies {
		if p := &policies[i]; p.column != "" {
			b = e.AppendField(b, p.column, p.arg(j))
		}
	}
	return engine.EndRow(e.AppendField(b, "manifest", engine.Null(j.Manifest)))
}
