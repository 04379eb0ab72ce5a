package rulecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/rules"
)

// Explain prints what one rule means: a sentence, the canonical text, the next five times, and the next two clock
// changes. With JSON, it prints the same as an object.
func Explain(stdout io.Writer, o Options) error {
	text, err := o.single()
	if err != nil {
		return err
	}
	r, err := o.parse(text, o.after())
	if err != nil {
		return err
	}
	e, err := rules.Explain(r, o.after())
	if err != nil {
		return err
	}
	if o.JSON {
		return encode(stdout, e)
	}
	_, err = io.WriteString(stdout, report.Lines(e.Text()))
	return err
}

// encode writes one JSON value and a newline, with < and > as they are.
func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// verdict is the result of Lint for one rule.
type verdict struct {
	Rule     string          `json:"rule"`
	Error    string          `json:"error,omitempty"`
	Warnings []rules.Warning `json:"warnings"`
}

// errLint is returned by Lint if a rule was refused. Warnings are not errors.
var errLint = errors.New("a rule was refused")

// Lint prints what is questionable about each rule. It compares each rule with all the others. It lists refused
// rules with the reason, and then returns an error.
func Lint(stdout io.Writer, o Options) error {
	if len(o.Rules) == 0 {
		return errors.New("no rule is given; put a rule that contains blanks in quotes")
	}
	list := make([]verdict, len(o.Rules))
	parsed := make([]*rules.Rule, len(o.Rules))
	var failed error
	for i, text := range o.Rules {
		list[i] = verdict{Rule: text, Warnings: []rules.Warning{}}
		r, err := o.parse(text, o.Now)
		if err != nil {
			list[i].Error, failed = err.Error(), errLint
			continue
		}
		parsed[i] = r
	}
	for i, r := range parsed {
		if r == nil {
			continue
		}
		warnings, err := rules.Lint(r, rules.LintOptions{
			Now: o.after(), MaxPerDay: o.MaxPerDay, Others: others(parsed, i),
			NonexistentChosen: o.Nonexistent != "", AmbiguousChosen: o.Ambiguous != "",
		})
		if err != nil {
			list[i].Error, failed = err.Error(), errLint
			continue
		}
		list[i].Warnings = append(list[i].Warnings, warnings...)
	}
	if o.JSON {
		if err := encode(stdout, list); err != nil {
			return err
		}
		return failed
	}
	if err := printVerdicts(stdout, list); err != nil {
		return err
	}
	return failed
}

// others returns all parsed rules except the ith.
func others(parsed []*rules.Rule, i int) (list []*rules.Rule) {
	for j, r := range parsed {
		if j != i && r != nil {
			list = append(list, r)
		}
	}
	return list
}

func printVerdicts(w io.Writer, list []verdict) error {
	var b strings.Builder
	for _, v := range list {
		name := strings.ReplaceAll(v.Rule, "\n", `\n`)
		if v.Error != "" {
			fmt.Fprintf(&b, "%s\n  refused: %s\n", name, v.Error)
			continue
		}
		if len(v.Warnings) == 0 {
			fmt.Fprintf(&b, "%s\n  no warnings\n", name)
			continue
		}
		fmt.Fprintln(&b, name)
		for _, warning := range v.Warnings {
			fmt.Fprintf(&b, "  %s: %s\n", warning.Code, warning.Message)
		}
	}
	_, err := io.WriteString(w, report.Lines(b.String()))
	return err
}
