package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Difference is what apply would change.
type Difference struct {
	Manifest string              `json:"manifest"`
	Differs  bool                `json:"differs"`
	Changes  []store.Change      `json:"changes"`
	Times    []Times             `json:"times"` // of jobs whose next times differ
	Warnings []DefinitionWarning `json:"warnings"`

	New map[string]string `json:"-"` // the text of what is created, by kind and subject
}

// Times are the next times of a job, or of a schedule, before and after a change.
type Times struct {
	Job      string      `json:"job,omitempty"`
	Schedule string      `json:"schedule,omitempty"`
	Before   []time.Time `json:"before"`
	After    []time.Time `json:"after"`
}

// of returns the kind and the name of the definition that has the times.
func (t *Times) of() string {
	if t.Schedule != "" {
		return "schedule " + t.Schedule
	}
	return "job " + t.Job
}

// Differences prints the differences like a unified diff. Under each definition, lines with - are removed, and
// lines with + are added.
func Differences(w io.Writer, d Difference) error {
	p := &differencePrinter{w: w, times: map[string]Times{}}
	for _, t := range d.Times {
		p.times[t.of()] = t
	}
	if d.Differs {
		p.line("--- the database")
		p.line("+++ the manifest %s", cmp.Or(Line(d.Manifest), "(without a name)"))
	}
	for _, c := range d.Changes {
		p.change(c, d.New[c.Kind+" "+c.Subject])
	}
	for _, t := range d.Times { // what is left belongs to jobs that use a changed schedule
		if left, ok := p.times[t.of()]; ok {
			p.line("  %s", Line(t.of()))
			p.next(left)
		}
	}
	if !d.Differs {
		p.line("no difference")
	}
	return p.err
}

// Altered is what a command changed in place, or what it would change with --dry-run.
type Altered struct {
	DryRun   bool                `json:"dry_run"`
	Changes  []store.Change      `json:"changes"`
	Times    []Times             `json:"times"`
	Warnings []DefinitionWarning `json:"warnings"`
}

// NewAltered is a change without times and warnings.
func NewAltered(dryRun bool, changes []store.Change) Altered {
	return Altered{DryRun: dryRun, Changes: List(changes), Times: []Times{}, Warnings: []DefinitionWarning{}}
}

// Print prints the fields before and after, and the next times.
func (a Altered) Print(w io.Writer) error {
	p := &differencePrinter{w: w, times: map[string]Times{}}
	for _, t := range a.Times {
		p.times[t.of()] = t
	}
	for _, c := range a.Changes {
		p.change(c, "")
	}
	switch {
	case len(a.Changes) == 0:
		p.line("no change")
	case a.DryRun:
		p.line("(dry run: nothing was written)")
	}
	return p.err
}

type differencePrinter struct {
	w     io.Writer
	times map[string]Times // the times that are not printed yet
	err   error
}

func (p *differencePrinter) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *differencePrinter) change(c store.Change, text string) {
	switch c.Action {
	case "left":
		p.line("%s", left(c))
		return
	case "done":
		p.line("= %s %s has finished and was removed", c.Kind, Line(c.Subject))
		return
	case "remove":
		p.line("- %s %s", c.Kind, Line(c.Subject))
		return
	case "create":
		p.line("+ %s %s", c.Kind, Line(c.Subject))
		p.lines("+", text)
	default:
		p.line("~ %s %s", c.Kind, Line(c.Subject))
		for _, f := range c.Fields {
			p.field(f)
		}
	}
	if t, ok := p.times[c.Kind+" "+c.Subject]; ok {
		delete(p.times, t.of())
		p.next(t)
	}
}

// lines prints a text of several lines.
func (p *differencePrinter) lines(mark, text string) {
	for line := range strings.Lines(text) {
		p.line("%s   %s", mark, Lines(strings.TrimRight(line, "\n")))
	}
}

// field prints the old and the new value of a field. If the values have several lines, it prints the lines that
// differ.
func (p *differencePrinter) field(f store.FieldChange) {
	f.Before, f.After = asLines(f.Before), asLines(f.After)
	if !strings.Contains(f.Before, "\n") && !strings.Contains(f.After, "\n") {
		for _, side := range []struct{ mark, value string }{{"-", f.Before}, {"+", f.After}} {
			if side.value != "" {
				p.line("%s   %s: %s", side.mark, Line(f.Field), Line(side.value))
			}
		}
		return
	}
	p.line("    %s:", Line(f.Field))
	was, is := textLines(f.Before), textLines(f.After)
	start, end := alike(was, is)
	const around = 2 // lines without a change that are printed for orientation
	for _, l := range was[max(0, start-around):start] {
		p.lines(" ", "  "+l)
	}
	for _, l := range was[start : len(was)-end] {
		p.lines("-", "  "+l)
	}
	for _, l := range is[start : len(is)-end] {
		p.lines("+", "  "+l)
	}
	for _, l := range was[len(was)-end : len(was)-end+min(end, around)] {
		p.lines(" ", "  "+l)
	}
}

// asLines turns a list of texts, such as statements, into its lines. A list of which nothing would be seen stays.
func asLines(value string) string {
	var list []string
	if !strings.HasPrefix(value, "[") || json.Unmarshal([]byte(value), &list) != nil || strings.Join(list, "") == "" {
		return value
	}
	return strings.Join(list, "\n")
}

func textLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// alike counts the lines that are the same at the beginning of two texts, and at their end.
func alike(x, y []string) (start, end int) {
	shorter := min(len(x), len(y))
	for start < shorter && x[start] == y[start] {
		start++
	}
	for end < shorter-start && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
	}
	return start, end
}

// next prints the next times before and after.
func (p *differencePrinter) next(t Times) {
	all := func(list []time.Time) string {
		texts := make([]string, len(list))
		for i, at := range list {
			texts[i] = Instant(at)
		}
		return cmp.Or(strings.Join(texts, ", "), "none")
	}
	if slices.EqualFunc(t.Before, t.After, time.Time.Equal) {
		p.line("    next: %s", all(t.After))
		return
	}
	if len(t.Before) > 0 {
		p.line("-   next: %s", all(t.Before))
	}
	p.line("+   next: %s", all(t.After))
}
