package manifest

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Swallowed is a place at which a statement, or a text for the shell, loses more to a comment than its author sees.
type Swallowed struct {
	Job   string
	Text  string // what is lost, why, and what to do
	Place Problem
}

// quotes matches what is quoted in SQL and by the shell, and what may begin a comment.
var quotes = lazyregexp.New(`(?s)'[^']*'|"[^"]*"|/\*.*?\*/|--|(?:^|[\s;,)])#`)

// swallows finds what comments take of a text, in which mark begins a comment that ends with the line. Two ways of YAML
// make lines other than they look: where lines are joined, a comment takes those after it, too, such as the WHERE of a
// DELETE; and in a text without quotes, # begins a comment of YAML, also where an operator of PostgreSQL is meant, such
// as #>>.
func (d *decoder) swallows(n *yaml.Node, path, mark string) {
	if n = followed(n); mark == "" || n.Kind != yaml.ScalarNode {
		return
	}
	if n.Style&yaml.LiteralStyle == 0 && strings.Contains(n.Value, mark) {
		if comment, rest := d.joined(n, mark); rest != "" {
			d.swallowed = append(d.swallowed, Swallowed{Place: d.place(n, path), Text: fmt.Sprintf("the comment %s takes %s with it, because YAML joins these lines; "+
				"write the text below |, which keeps its lines", excerpt(comment), excerpt(rest))})
		}
	}
	if n.Style == 0 {
		if rest := d.afterText(n); rest != "" {
			d.swallowed = append(d.swallowed, Swallowed{Place: d.place(n, path), Text: fmt.Sprintf("the text ends before %s, which is a comment of YAML; "+
				"put the text in quotes, or write it below |", excerpt(rest))})
		}
	}
}

// joined returns the first comment of a text as its line in the file has it, and what YAML has put after it on the same
// line; that is empty if the comment ends where it ends in the file.
func (d *decoder) joined(n *yaml.Node, mark string) (comment, rest string) {
	text := n.Value
	for {
		at := quotes.FindStringIndex(text)
		if at == nil {
			return "", ""
		}
		found := text[at[0]:at[1]]
		if text = text[at[1]:]; !strings.HasSuffix(found, mark) || len(found) > len(mark)+1 {
			continue
		}
		whole, _, _ := strings.Cut(mark+text, "\n")
		line := d.lineWith(n, mark)
		for from := 0; strings.Contains(line[from:], mark); from += len(mark) {
			from += strings.Index(line[from:], mark)
			comment = strings.TrimSpace(line[from:])
			if rest, more := strings.CutPrefix(whole, comment+" "); more {
				return comment, strings.TrimSpace(rest)
			}
		}
		return "", ""
	}
}

// afterText returns what follows a text without quotes on its line, if that is a comment of YAML and looks like a part of
// the text: an operator of PostgreSQL, or anything after a quote that is still open.
func (d *decoder) afterText(n *yaml.Node) string {
	const mark = " #"
	line := d.lineWith(n, mark)
	before, rest, _ := strings.Cut(line, mark)
	if before = strings.TrimSpace(before); before == "" || !strings.HasSuffix(before, n.Value) && !strings.HasSuffix(n.Value, before) {
		return ""
	}
	if open := strings.Count(n.Value, "'")%2 == 1 || strings.Count(n.Value, `"`)%2 == 1; !open && !strings.HasPrefix(rest, ">") {
		return ""
	}
	return "#" + rest
}

// lineWith returns the first line of a value, as it is in the file, that contains a text. It is empty if there is none.
func (d *decoder) lineWith(n *yaml.Node, text string) string {
	rest := n.Value
	for i := n.Line; i < n.Line+mostLines; i++ {
		line, short := d.line(i)
		if strings.Contains(line, text) {
			return line
		}
		_, after, within := strings.Cut(rest, strings.TrimSpace(line))
		switch {
		case !short || i > n.Line && !within:
			return ""
		case i > n.Line:
			rest = after
		}
	}
	return ""
}

// Each text has its lines looked at, and thousands of texts may be on one line, or be one by aliases. So a line that is
// longer than people write is left out, and the lines of a text after the first mostLines.
const (
	longestLine = 4 << 10
	mostLines   = 500
)

// line returns a line of the file, counted from 1, unless it is too long or there is none.
func (d *decoder) line(n int) (line string, short bool) {
	if d.lines == nil {
		for at := 0; at < len(d.source); at = nextLine(d.source, at) {
			d.lines = append(d.lines, int32(at)) // MaxBytes is less
		}
	}
	if n < 1 || n > len(d.lines) {
		return "", false
	}
	at := int(d.lines[n-1])
	end := nextLine(d.source, at)
	if end-at > longestLine {
		return "", false
	}
	return strings.TrimRight(string(d.source[at:end]), "\r\n"), true
}

// swallowedOf takes over what the reading of a job has found.
func (f *file) swallowedOf(j *store.Job) {
	for _, s := range f.swallowed {
		s.Job = j.Name
		f.m.Swallowed = append(f.m.Swallowed, s)
	}
}
