package manifest

import (
	"fmt"
	"strings"

	"github.com/dbjobs/dbjobs/store/nearest"
)

// Problem is one thing wrong in a manifest.
type Problem struct {
	File         string // as it was given; "standard input" for -
	Line, Column int    // from 1; 0 if the problem has no place
	Path         string // of the field, such as jobs.rollup.steps[1].timeout; "" for the file as a whole
	Text         string // says what was found, and what is allowed
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Error is everything wrong in a manifest, in the order of the file. It has at least one problem.
type Error struct{ Problems []Problem }

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// oneOf names the allowed words. If found looks like a typing mistake, or is a word of another scheduler, it
// also names the word that was probably meant.
func oneOf(found string, allowed []string) string {
	if write := instead(found, allowed); write != "" {
		return write
	}
	const short = 12 // of a longer list, and of one word, only the word that was probably meant is named
	text := "one of " + strings.Join(allowed, ", ")
	if len(allowed) == 1 {
		text = "the only one is " + allowed[0]
	}
	if n := nearest.To(found, allowed); n != "" && (len(allowed) > short || len(allowed) == 1) {
		text = fmt.Sprintf("did you mean %s?", n)
	} else if n != "" {
		text = fmt.Sprintf("did you mean %s? (%s)", n, text)
	}
	return text
}
