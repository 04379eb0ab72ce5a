package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// What reading a manifest may cost, however it is written. Each bound is far beyond what people write.
const (
	// MaxBytes is the longest manifest that is read.
	MaxBytes = 16 << 20
	// maxValues bounds how many keys and values are read, aliases followed: a few lines of anchors can stand for billions.
	maxValues = 400_000
	// aliasBytes is how many bytes aliases may add to those of the file.
	aliasBytes = 4 << 20
	// maxMarks bounds what may make a value of its own: YAML's reader takes some 400 bytes for each before it looks at the
	// first, so that megabytes of quotes would take gigabytes.
	maxMarks = 500_000

	maxProblems = 50   // that are told
	maxText     = 1000 // of one of them, in bytes
	maxPath     = 200
	maxQuoted   = 80 // of what was found
)

// spend counts a node that is read; false means that the file expands to too much, which is reported once.
func (d *decoder) spend(n *yaml.Node, path string) bool {
	d.values++
	d.bytes += len(n.Value)
	most := 2*d.length + aliasBytes // an escape of two bytes may stand for three
	if d.over || d.values <= maxValues && d.bytes <= most {
		return !d.over
	}
	d.problems = nil // noise, beside this one
	if d.values > maxValues {
		d.problem(n, path, "the aliases of this file expand to more than %d values", maxValues)
	} else {
		d.problem(n, path, "the aliases of this file expand to more than %d bytes", most)
	}
	d.over = true
	return false
}

// block is the end of a line after which the text of a block scalar comes, which is one value whatever is in it.
var block = regexp.MustCompile(`(?:^|[\s:])[|>][-+0-9]{0,2}[ \t]*(?: #.*)?$`)

// crowded reports whether a text may hold more values than may be read, without reading it: it counts the marks that could begin
// one, outside of block scalars.
func crowded(data []byte) bool {
	marks, flow, within := 0, 0, -1 // within: the indentation of the line that a block scalar began in
	for line := range bytes.Lines(data) {
		text := bytes.TrimLeft(line, " ")
		indent := len(line) - len(text)
		text = bytes.TrimRight(text, "\r\n")
		if len(text) == 0 || within >= 0 && indent > within {
			continue
		}
		within = -1
		for _, c := range text {
			switch c {
			case '[', '{':
				flow++
			case ']', '}':
				flow--
			case '"', '\'', ',', ':', '-', '?', '&', '*', '!':
			default:
				continue
			}
			marks++
		}
		if marks++; marks > maxMarks {
			return true
		}
		if flow <= 0 && bytes.ContainsAny(text, "|>") && block.Match(text) {
			within = indent
		}
	}
	return false
}

// bounded are the problems in the order of the file, as many of them as somebody reads.
func bounded(file string, list []Problem) *Error {
	more := 0
	list = slices.DeleteFunc(list, func(p Problem) bool {
		if p.Text == "" {
			more++
		}
		return p.Text == ""
	})
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if over := len(list) - maxProblems; over > 0 {
		more, list = more+over, list[:maxProblems]
	}
	if more > 0 {
		list = append(list, Problem{File: file, Text: fmt.Sprintf("and %d more problems", more)})
	}
	return &Error{list}
}

// excerpt is what was found, as a message quotes it.
func excerpt(s string) string { return strconv.Quote(cut(s, maxQuoted)) }

// cut is the beginning of a text that is too long.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
