package store

import (
	"fmt"
	"strings"
)

// MostOutput bounds how many bytes of the output of an attempt are kept.
const MostOutput = 16 << 10

// Output collects the output of an attempt, however long it is: its head, its tail, and how many bytes were left out
// between them. It is a writer for one goroutine.
type Output struct {
	// Hide, if set, hides secrets in the kept text, before the text is cut.
	Hide func(string) string

	head, tail []byte
	size       int64 // of all bytes that were written
}

// cutAt is how far a cut moves back to a blank or a line end, so that it divides no word and no secret.
const cutAt = 256

// part is the share of MostOutput that the head and the tail have each, without the line between them.
const part = MostOutput/2 - 32

// Write never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.size += int64(len(p))
	n := min(len(p), MostOutput-len(o.head))
	o.head = append(o.head, p[:n]...)
	if rest := p[n:]; len(rest) > MostOutput {
		o.tail = append(o.tail[:0], rest[len(rest)-MostOutput:]...)
	} else {
		o.tail = append(o.tail, rest...)
	}
	if len(o.tail) > 4*MostOutput {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-MostOutput:]...)
	}
	return len(p), nil
}

// String returns the output as text that every engine can store: at most MostOutput bytes, in UTF-8, without NUL.
func (o *Output) String() string {
	var head, tail string
	total := o.size
	if o.size > int64(len(o.head)+len(o.tail)) {
		// The cuts are marked, so that the rest of a secret at a cut is hidden too.
		head, tail = o.fit(string(o.head)+"…"), o.fit("…"+string(o.tail[max(0, len(o.tail)-MostOutput):]))
		head, tail = strings.TrimSuffix(head, "…"), strings.TrimPrefix(tail, "…")
	} else {
		whole := o.fit(string(o.head) + string(o.tail))
		if len(whole) <= MostOutput {
			return whole
		}
		head, tail, total = whole, whole, int64(len(whole))
	}
	head = head[:min(len(head), part)]
	if i := strings.LastIndexAny(head, " \n"); i >= part-cutAt {
		head = head[:i]
	}
	tail = tail[max(0, len(tail)-part):]
	if i := strings.IndexAny(tail, " \n"); i >= 0 && i < cutAt {
		tail = tail[i+1:]
	}
	head, tail = strings.ToValidUTF8(head, ""), strings.ToValidUTF8(tail, "")
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, max(1, total-int64(len(head)+len(tail))), tail)
}

// fit makes a part of the output fit to be kept.
func (o *Output) fit(text string) string {
	if o.Hide != nil {
		text = o.Hide(text)
	}
	return harmless(text)
}

// told returns an output of an owner's job as it is kept. All output of an attempt passes here before it is recorded.
func (s *Store) told(owner, text string) string {
	var o Output
	if len(text) > 4*MostOutput { // a part that is left out need not be searched for secrets
		_, _ = o.Write([]byte(text))
		text, o = o.String(), Output{}
	}
	_, _ = o.Write([]byte(s.db.Hide(owner, text)))
	return o.String()
}

// harmless makes a text fit for every engine: it replaces NUL, and bytes that are not UTF-8.
func harmless(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
