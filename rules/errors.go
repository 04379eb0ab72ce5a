package rules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A SyntaxError says where the text of a rule does not follow the grammar of its
// form.
type SyntaxError struct {
	Form    string // "rrule", "cron", "interval", "pgjobs", "calendar" or "once"; "rule" if none was recognised
	Pos     int    // byte offset into the text that was given, from 0
	Found   string // what stands there, cut short if it is long
	Allowed string // what could stand there, or what is wrong with it
}

func (e *SyntaxError) Error() string {
	found := "nothing"
	if e.Found != "" {
		found = strconv.Quote(e.Found)
	}
	form := e.Form + " rule: "
	switch e.Form {
	case "rule": // no form was recognised, and the place of the text says that it is a rule
		form = ""
	case "rrule":
		form = "RFC 5545 rule: "
	}
	return fmt.Sprintf("%sat position %d, found %s: %s", form, e.Pos+1, found, e.Allowed)
}

const longestQuote = 40

// refuse makes a SyntaxError about text, which starts at byte pos of the rule.
func refuse(form string, pos int, text, format string, args ...any) error {
	if len(text) > longestQuote {
		text = text[:longestQuote] + "…"
	}
	return &SyntaxError{Form: form, Pos: pos, Found: text, Allowed: fmt.Sprintf(format, args...)}
}

// zoneInText replaces the refusal of a text that begins or ends with a time zone
// by one that says where the zone belongs. In the forms rrule and once, a zone
// may be in the text.
func zoneInText(err error, text string) error {
	e, ok := errors.AsType[*SyntaxError](err)
	words := strings.Fields(text)
	if !ok || e.Form == "rrule" || e.Form == "once" || len(words) < 2 {
		return err
	}
	first, last := words[0], words[len(words)-1]
	name := strings.TrimPrefix(strings.TrimPrefix(first, "CRON_"), "TZ=")
	word, at := first, strings.Index(text, first)
	if !isZone(name) {
		name, word, at = last, last, strings.LastIndex(text, last)
	}
	if !isZone(name) {
		return err
	}
	return refuse(e.Form, at, word, "the zone is no part of the rule's text; give it beside the rule: as zone: %s in a file, or as --zone %s", name, name)
}

func isZone(name string) bool {
	_, err := zoneNamed(name)
	return name != "" && err == nil
}

var (
	// ErrNeverFires is wrapped by Parse's error for a rule that is well formed
	// and has no occurrence from its start to the end of the year 9999.
	ErrNeverFires = errors.New("the rule never fires")

	// ErrUndecided is wrapped if the step budget ran out before an answer was
	// found. Parse refuses rules that need too many steps for their first
	// occurrence. So a query returns it only for rules that combine an INTERVAL,
	// exceptions and rare dates.
	ErrUndecided = errors.New("the rule fires too rarely for an answer within the step budget")
)

func neverFires(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNeverFires, fmt.Sprintf(format, args...))
}
