package manifest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"go.yaml.in/yaml/v4"
)

// manyBytes is the length from which on a file is parsed on all processors.
const manyBytes = 64 << 10

// parse returns the only document of a text, or nil if there is none. more is the place where a second document
// begins.
func parse(text []byte) (root, more *yaml.Node, err error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	var doc, next yaml.Node
	if err := loader.Load(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		return nil, nil, nil
	}
	switch err := loader.Load(&next); {
	case err == nil:
		more = &next
	case !errors.Is(err, io.EOF):
		return nil, nil, err
	}
	return doc.Content[0], more, nil
}

// part is a number of lines of a text: entries of a mapping whose keys have the same indentation.
type part struct {
	text   []byte
	line   int // number of lines before it
	indent int
	root   *yaml.Node // nil: the lines alone are no such mapping
}

// parseInParts parses a long text in parallel. The parts are the text before the jobs, several groups of jobs,
// and the text after the jobs. It returns nil if the text has another form, or if anything is wrong: then the
// caller has to parse it as a whole.
//
// A part begins with a line that looks like a key, with the same indentation as the key before it. That line
// could also belong to something else, such as a text in quotes. The part before it shows that: something that
// has begun there and has not ended is an error at the end of that part. An alias whose anchor is in another
// part is an error, too.
func parseInParts(text []byte, parts int) *yaml.Node {
	list := cutUp(text, parts)
	if list == nil {
		return nil
	}
	var work sync.WaitGroup
	for i := range list {
		work.Go(list[i].parse)
	}
	work.Wait()
	if slices.ContainsFunc(list, func(p part) bool { return p.root == nil }) {
		return nil
	}
	root := list[0].root
	last := len(root.Content) - 1
	if root.Content[last-1].Value != "jobs" || root.Content[last].ShortTag() != "!!null" {
		return nil
	}
	jobs := list[1].root
	root.Content[last] = jobs
	for _, p := range list[2:] {
		if p.indent == 0 {
			root.Content = append(root.Content, p.root.Content...)
		} else {
			jobs.Content = append(jobs.Content, p.root.Content...)
		}
	}
	return root
}

// parse reads the part. It counts lines from the beginning of the whole text.
func (p *part) parse() {
	root, more, err := parse(p.text)
	if err != nil || more != nil || root == nil || root.Kind != yaml.MappingNode || root.Column != p.indent+1 {
		return
	}
	moveDown(root, p.line)
	p.root = root
}

func moveDown(n *yaml.Node, lines int) {
	n.Line += lines
	for _, c := range n.Content {
		moveDown(c, lines)
	}
}

// cutUp divides a text. The first part ends with the line of the key jobs. A later line without indentation
// begins the text after the jobs.
func cutUp(text []byte, parts int) []part {
	const key = "jobs:"
	// Other characters that break lines would be counted wrongly, and a directive holds for all parts.
	for _, other := range []string{"\r", "\u0085", "\u2028", "\u2029", "\n%"} {
		if bytes.Contains(text, []byte(other)) || text[0] == '%' {
			return nil
		}
	}
	at := 0
	if !bytes.HasPrefix(text, []byte(key)) {
		if at = bytes.Index(text, []byte("\n"+key)) + 1; at == 0 {
			return nil
		}
	}
	begin := nextLine(text, at)
	if rest := bytes.TrimLeft(text[at+len(key):begin], " "); len(rest) > 0 && rest[0] != '\n' && (rest[0] != '#' || text[at+len(key)] != ' ') {
		return nil
	}
	end, first, indent := begin, begin, 0
	for ; end < len(text); end = nextLine(text, end) {
		in := bytes.IndexFunc(text[end:], func(r rune) bool { return r != ' ' })
		if in < 0 || text[end+in] == '\n' || text[end+in] == '#' {
			continue
		}
		if in == 0 {
			break
		}
		if indent == 0 {
			first, indent = end, in
		}
	}
	if indent == 0 || end < len(text) && !keyAt(text, end, 0) {
		return nil
	}
	list := []part{{text: text[:begin]}}
	for from, i := begin, 1; from < end; i++ {
		to := end
		if i < parts {
			to = nextKey(text[:end], max(from, first, begin+(end-begin)/parts*i), indent)
		}
		list = append(list, part{text: text[from:to], indent: indent})
		from = to
	}
	if end < len(text) {
		list = append(list, part{text: text[end:]})
	}
	for i := range list[1:] {
		list[i+1].line = list[i].line + bytes.Count(list[i].text, []byte("\n"))
	}
	return list
}

// nextLine returns where the next line begins after an offset.
func nextLine(text []byte, from int) int {
	if n := bytes.IndexByte(text[from:], '\n'); n >= 0 {
		return from + n + 1
	}
	return len(text)
}

// nextKey returns where the next line begins, after an offset, that looks like a line with a key.
func nextKey(text []byte, from, indent int) int {
	for {
		if from = nextLine(text, from); from == len(text) || keyAt(text, from, indent) {
			return from
		}
	}
}

// keyAt reports whether the text at an offset looks like a key with the indentation indent.
func keyAt(text []byte, at, indent int) bool {
	line := text[at:]
	if len(line) <= indent || len(bytes.TrimLeft(line[:indent], " ")) > 0 {
		return false
	}
	c := line[indent]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '"' || c == '\''
}
