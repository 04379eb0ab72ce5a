package rules

import (
	"fmt"
	"time"
)

// Warning is something about a rule that works, and may not be meant.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// LintOptions says what Lint compares a rule with.
type LintOptions struct {
	Now       time.Time
	MaxPerDay int     // how many runs in 24 hours are fine; 0 is 1440, one a minute
	Others    []*Rule // rules of other jobs
	MaxShared int     // how many others may share the next occurrence; 0 is 10
}

// Lint warns of what a rule's author may not have meant.
func Lint(r *Rule, o LintOptions) ([]Warning, error) {
	var list []Warning
	warn := func(code, format string, args ...any) {
		list = append(list, Warning{code, fmt.Sprintf(format, args...)})
	}
	if next, err := r.Next(o.Now); err != nil {
		return nil, err
	} else if next.IsZero() {
		warn("exhausted", "nothing is left of the rule after %s", o.Now.UTC().Format(time.RFC3339))
	}
	return list, nil
}
