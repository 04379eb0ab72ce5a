package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// These bounds limit the cost of reading a manifest, whatever it holds. Each is far beyond what people
// write. What comes from elsewhere, such as an event or an object, costs no more than a small function has. What a file of this
// machine may cost grows with its length, so that what export wrote of many jobs can be read.
const (
	// MaxBytes is how many bytes the files of a manifest may have together.
	MaxBytes = 64 << 20
	// MaxBytesAlone is how many bytes a manifest from elsewhere may have.
	MaxBytesAlone = 16 << 20
	// fewValues is how many keys and values a small file, or one from elsewhere, may have, with aliases expanded: a few
	// lines of anchors can expand to billions. See mostValues.
	fewValues = 400_000
	// aliasBytes is how many bytes aliases may add to the bytes of the file.
	aliasBytes = 4 << 20
	// fewMarks limits the number of characters of such a file that may begin a value. The YAML library allocates
	// about 400 bytes for each of them before it returns the first value, so megabytes of quotes would take
	// gigabytes. See mostMarks.
	fewMarks = 500_000
	// sparse is how many bytes of a large file of this machine there are for each further value or mark. A file that export
	// writes has more: there is one for about seven bytes. So reading takes at most 100 times the memory of a large file.
	sparse = 4

	// maxDepth is how deep a value of a request may be nested.
	maxDepth = 100

	maxProblems = 50   // reported for one file
	maxText     = 1000 // bytes in the text of a problem
	maxPath     = 200  // bytes in the path of a problem
	maxQuoted   = 80   // bytes quoted of a value
)

// spend counts a node. It returns false if the file expands to too much. It reports that once.
func (d *decoder) spend(n *yaml.Node, path string) bool {
	d.values++
	d.bytes += len(n.Value)
	if d.over || !d.tooMuch(d.values, d.bytes) {
		return !d.over
	}
	d.problems = nil // the other problems do not matter beside this one
	if most := d.mostValues(); d.values > most {
		d.problem(n, path, "this file has more than %d keys and values, where aliases count each time; split it into several files", most)
	} else {
		d.problem(n, path, "the values of this file, where aliases count each time, have more than %d bytes", d.mostBytes())
	}
	d.over = true
	return false
}

func (d *decoder) tooMuch(values, bytes int) bool {
	return values > d.mostValues() || bytes > d.mostBytes()
}

// mostValues returns how many keys and values the file may have, with aliases expanded.
func (d *decoder) mostValues() int { return fewValues + d.trusted/sparse }

// mostBytes returns how many bytes the values of the file may have. An escape of two bytes may become three
// bytes.
func (d *decoder) mostBytes() int { return 2*d.length + aliasBytes }

// mostMarks returns how many characters of the file may begin a value.
func (d *decoder) mostMarks() int { return fewMarks + d.trusted/sparse }

// block matches the end of a line that begins a block scalar. All lines of a block scalar are one value,
// whatever they contain.
var block = lazyregexp.New(`(?:^|[\s:])[|>][-+0-9]{0,2}[ \t]*(?: #.*)?$`)

// crowded reports whether a text may contain more values than may be read. It does not parse the text. It
// counts the characters outside of block scalars that could begin a value.
func (d *decoder) crowded(data []byte) bool {
	marks, most, flow, within := 0, d.mostMarks(), 0, -1 // within: indentation of the line in which a block scalar began
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
		if marks++; marks > most {
			return true
		}
		if flow <= 0 && bytes.ContainsAny(text, "|>") && block.Match(text) {
			within = indent
		}
	}
	return false
}

// bounded makes an error of the first problems, in the order of the file, and of the number of the problems
// after them.
func bounded(list []Problem) *Error {
	file := list[0].File
	more := 0
	list = slices.DeleteFunc(list, func(p Problem) bool {
		if p.Text == "" {
			more++
		}
		return p.Text == ""
	})
	files := map[string]int{} // the files, in the order of their first problem
	for _, p := range list {
		if _, known := files[p.File]; !known {
			files[p.File] = len(files)
		}
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if over := len(list) - maxProblems; over > 0 {
		more, list = more+over, list[:maxProblems]
	}
	if more > 0 {
		list = append(list, Problem{File: file, Text: fmt.Sprintf("and %d more problems", more)})
	}
	return &Error{list}
}

// excerpt quotes a value for a message.
func excerpt(s string) string { return strconv.Quote(cut(s, maxQuoted)) }

// cut shortens a text to at most most bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
