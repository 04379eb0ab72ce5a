package manifest

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// quotes matches what is quoted in SQL and by the shell, a quote that does not end, and what may begin a comment.
var quotes = lazyregexp.New(`'[^']*'|"[^"]*"|/\*|--|[#'"]`)

// swallows finds what comments take of a text, in which each of marks begins a comment that ends with the line. Two ways of YAML
// make lines other than they look: where lines are joined, a comment takes those after it, too, such as the WHERE of a
// DELETE; and in a text without quotes, # begins a comment of YAML, also where an operator of PostgreSQL is meant, such
// as #>>.
func (d *decoder) swallows(n *yaml.Node, path string, marks []string) {
	if n = followed(n); len(marks) == 0 || n.Kind != yaml.ScalarNode {
		return
	}
	if n.Style&yaml.LiteralStyle == 0 && slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(n.Value, mark) }) {
		if comment, rest := d.joined(n, marks); rest != "" {
			where := ""
			if comment[0] == '#' && len(marks) > 1 {
				where = "on MySQL and MariaDB, "
			}
			d.swallowed = append(d.swallowed, Swallowed{Place: d.place(n, path), Text: fmt.Sprintf("%sthe comment %s takes %s with it, because YAML joins these lines; "+
				"write the text below |, which keeps its lines", where, excerpt(comment), excerpt(rest))})
		}
	}
	if n.Style == 0 {
		if rest := d.afterText(n, marks); rest != "" {
			d.swallowed = append(d.swallowed, Swallowed{Place: d.place(n, path), Text: fmt.Sprintf("the text ends before %s, which is a comment of YAML; "+
				"put the text in quotes, or write it below |", excerpt(rest))})
		}
	}
}

// joined returns the first comment of a text that YAML has made longer, as its line in the file has it, and what is lost
// in it. That is empty if no comment takes more than its line.
func (d *decoder) joined(n *yaml.Node, marks []string) (comment, rest string) {
	lines, looked := d.linesOf(n), 0
	for at := 0; at < len(n.Value) && looked < 2*mostLines; {
		t := next(n.Value, at, marks)
		if at = t.end; t.mark == "" {
			continue
		}
		whole := n.Value[t.start:t.end]
		for i, line := range lines {
			looked++
			if comment = commentIn(line, whole, t.mark); comment != "" {
				lines = lines[i+1:]
				if rest = lost(whole[len(comment):], lines, marks); rest != "" {
					return comment, rest
				}
				break
			}
		}
	}
	return "", ""
}

// commentIn returns the comment of a line of the file with which a comment of a text begins.
func commentIn(line, whole, mark string) string {
	line = strings.TrimSpace(line)
	for at := 0; ; at += len(mark) {
		i := strings.Index(line[at:], mark)
		if i < 0 {
			return ""
		}
		at += i
		if rest, ok := strings.CutPrefix(whole, line[at:]); ok && (rest == "" || rest[0] == ' ') {
			return line[at:]
		}
	}
}

// lost returns what a comment has taken from the lines after it, without those that are comments, too.
func lost(rest string, lines, marks []string) string {
	rest = strings.TrimSpace(rest)
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if t := next(rest, 0, marks); t.mark == "" || t.start > 0 {
			break
		}
		if strings.HasPrefix(line, rest) { // after the last line, there may be the end of the quotes
			return ""
		}
		after, ok := strings.CutPrefix(rest, line)
		if !ok {
			break
		}
		rest = strings.TrimSpace(after)
	}
	if strings.Trim(rest, "; ") == "" {
		return ""
	}
	return rest
}

// token is a place in a text: something quoted or between /* and */, what ends with its line as a comment, or what was neither.
type token struct {
	start, end int
	mark       string // what begins the comment
	open       bool   // a quote that does not end
}

// next returns the first token from a place on. An open quote is only its first character, for it may be an apostrophe.
func next(text string, from int, marks []string) token {
	at := quotes.FindStringIndex(text[from:])
	if at == nil {
		return token{start: len(text), end: len(text)}
	}
	t := token{start: from + at[0], end: from + at[1]}
	switch found := text[t.start:t.end]; {
	case slices.Contains(marks, found) && (found != "#" || hash(text[:t.start], text[t.end:], len(marks) > 1)):
		t.mark = found
		if i := strings.IndexByte(text[t.end:], '\n'); i >= 0 {
			t.end += i
		} else {
			t.end = len(text)
		}
	case found == "/*" && len(marks) > 1: // the shell has no such comment
		if i := strings.Index(text[t.end:min(len(text), t.end+longestLine)], "*/"); i >= 0 {
			t.end += i + len("*/")
		}
	case found == "'" || found == `"`:
		t.open = true
	}
	return t
}

// hash reports whether # begins a comment between two texts. To the shell it does at the beginning of a word. In SQL it
// does with MySQL and MariaDB only, and a file does not say which database it is for: before a blank it is taken for a
// comment, and otherwise for an operator of PostgreSQL, such as #>, #- or ##, or a temporary table of SQL Server. That is a
// guess: PostgreSQL's # between two blanks is an exclusive or.
func hash(before, after string, sql bool) bool {
	if before != "" && !strings.ContainsRune(" \t\n;,)", rune(before[len(before)-1])) {
		return false
	}
	c, _ := utf8.DecodeRuneInString(after)
	return !sql || after == "" || unicode.IsSpace(c)
}

// cutOff matches the end of a statement that hardly ends there, and goesOn what hardly begins a comment after it: an operator
// of PostgreSQL.
var (
	cutOff = lazyregexp.New(`(?i)(?:[=,(]|\b(?:and|or|where|set))$`)
	goesOn = lazyregexp.New(`(?i)^#(?:>|-\s*(?:['$?(]|array\b))`)
)

// afterText returns what follows a text without quotes on its line, if that is a comment of YAML and looks like a part of
// the text: anything after a quote that is still open, an operator of PostgreSQL, or anything after a statement that ends
// in its middle. What is in a comment of the text itself is not lost.
func (d *decoder) afterText(n *yaml.Node, marks []string) string {
	rest := d.besides(n)
	if rest == "" {
		return ""
	}
	for at := 0; at < len(n.Value); {
		t := next(n.Value, at, marks)
		switch at = t.end; {
		case t.open:
			return rest
		case t.mark != "" && at == len(n.Value):
			return ""
		}
	}
	if goesOn.MatchString(rest) || len(marks) > 1 && cutOff.MatchString(n.Value) {
		return rest
	}
	return ""
}

// besides returns the comment of YAML that follows a text without quotes on its line.
func (d *decoder) besides(n *yaml.Node) string {
	for _, line := range d.linesOf(n) {
		before, rest, within := strings.Cut(line, " #")
		if !within {
			continue
		}
		if before = strings.TrimSpace(before); before != "" && (strings.HasSuffix(before, n.Value) || strings.HasSuffix(n.Value, before)) {
			return "#" + rest
		}
		break
	}
	return ""
}

// linesOf returns the lines of a value as they are in the file, up to the first that is not as in the value, with it.
func (d *decoder) linesOf(n *yaml.Node) (lines []string) {
	rest := n.Value
	for i := n.Line; i < n.Line+mostLines; i++ {
		line, short := d.line(i)
		if !short {
			break
		}
		if n.Style&yaml.SingleQuotedStyle != 0 {
			line = strings.ReplaceAll(line, "''", "'")
		}
		lines = append(lines, line)
		if i == n.Line {
			continue // it may have a key, too
		}
		_, after, within := strings.Cut(rest, strings.TrimSpace(line))
		if !within {
			break
		}
		rest = after
	}
	return lines
}

// Each text has its lines looked at, and thousands of texts may be on one line, or be one by aliases. So a line that is
// longer than people write is left out, and the lines of a text after the first mostLines. A comment that is on none of them,
// as it has an escape, has been looked for in all; and the end of /* is looked for as far as a line may be long, as the shell
// has /* that do not end.
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
