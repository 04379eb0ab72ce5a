package store

import (
	"fmt"
	"strings"
)

// MostOutput bounds what is kept of the output of an attempt, in bytes.
const MostOutput = 16 << 10

// Output gathers what an attempt tells, however much that is: its head, its tail, and how much was left
// out between them. It is a writer for one goroutine.
type Output struct {
	// Hide, if set, takes secrets out of what is kept, before it is cut.
	Hide func(string) string

	head, tail []byte
	size       int64 // of all that was written
}

// cutAt is how far a cut goes back to a blank or a line end, so that it divides no word, and no secret.
const cutAt = 256

// part is what the head and the tail have of MostOutput, beside the line between them.
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

// String is what was written, as text that every engine can keep: of at most MostOutput bytes, in UTF-8,
// without NUL.
func (o *Output) String() string {
	var head, tail string
	total := o.size
	if o.size > int64(len(o.head)+len(o.tail)) {
		// Marked as cut, so that what is left of a secret there is hidden, too.
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

// fit makes a part of what was written fit to be kept.
func (o *Output) fit(text string) string {
	if o.Hide != nil {
		text = o.Hide(text)
	}
	return harmless(text)
}

// told is an output as it is kept. Everything that an attempt tells passes here before it is recorded.
func (s *Store) told(text string) string {
	var o Output
	if len(text) > 4*MostOutput { // what is left out need not be searched for secrets
		_, _ = o.Write([]byte(text))
		text, o = o.String(), Output{}
	}
	_, _ = o.Write([]byte(s.db.Hide(text)))
	return o.String()
}

// harmless makes a text fit for every engine: bytes that are not UTF-8, and NUL, are replaced.
func harmless(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
