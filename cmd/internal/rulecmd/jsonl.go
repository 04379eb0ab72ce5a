package rulecmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/nearest"
)

// question is a line of `rule next --jsonl`.
type question struct {
	ID    json.RawMessage `json:"id"`    // of any type; the answer contains it unchanged
	Rule  *string         `json:"rule"`  // in any form; the lines of an RRULE text joined by \n
	After *string         `json:"after"` // RFC 3339; a rule without a start counts as created then
	Count *int            `json:"count"` // --count if absent
	Zone  *string         `json:"zone"`  // --zone if absent
}

// keys are the keys of a question.
var keys = []string{"id", "rule", "after", "count", "zone"}

// longestLine is the length of the longest line, in bytes. The answer to a longer line is an error. That line is
// skipped, and memory never holds the whole of it.
const longestLine = 1 << 20

// NextLines answers questions about rules, one object on each line, in order. For
// {"id","rule","after","count","zone"} it writes {"id","next","exhausted"}, with times in UTC, or {"id","error"}.
// A line that cannot be answered does not end the run; blank lines are skipped. Memory does not grow with the
// number of lines. Answers are flushed when no further question has arrived, so that a program may ask one
// question at a time.
func NextLines(stdin io.Reader, stdout io.Writer, o Options) error {
	in := bufio.NewReaderSize(stdin, 64<<10)
	out := bufio.NewWriterSize(stdout, 64<<10)
	var line, reply []byte
	for {
		var tooLong bool
		var readErr error
		line, tooLong, readErr = readLine(in, line[:0])
		if tooLong || len(bytes.TrimSpace(line)) > 0 {
			reply = o.answer(reply[:0], line, tooLong)
			if _, err := out.Write(reply); err != nil {
				return err
			}
		}
		if readErr != nil || in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("reading questions: %w", readErr)
		}
	}
}

// readLine appends the next line to buf, or the start of a line that is too long.
func readLine(in *bufio.Reader, buf []byte) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(buf)+len(part) <= longestLine {
			buf = append(buf, part...)
		} else {
			tooLong = true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, tooLong, err
		}
	}
}

// answer appends the answer to a line.
func (o *Options) answer(buf, line []byte, tooLong bool) []byte {
	var q question
	var t *times
	err := fmt.Errorf("a line has at most %d bytes", longestLine)
	if !tooLong {
		if err = decode(line, &q); err == nil {
			t, err = o.times(&q)
		}
	}
	if q.ID == nil {
		q.ID = json.RawMessage("null")
	}
	buf = append(append(buf, `{"id":`...), q.ID...)
	if err != nil {
		text, _ := json.Marshal(err.Error()) // a string always encodes
		return append(append(append(buf, `,"error":`...), text...), '}', '\n')
	}
	buf = append(buf, `,"next":[`...)
	for i, at := range t.Next {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(append(buf, '"'), at...), '"')
	}
	if t.Exhausted {
		return append(buf, `],"exhausted":true}`+"\n"...)
	}
	return append(buf, `],"exhausted":false}`+"\n"...)
}

// decode reads a question. It keeps the id if the id can be read, even if the rest is wrong.
func decode(line []byte, q *question) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields() // otherwise, a mistyped key would silently mean the default
	err := d.Decode(q)
	if err == nil {
		if _, more := d.Token(); more == io.EOF {
			return nil
		}
		err = errors.New("something follows the object")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil {
		return fmt.Errorf(`a line is one object {"id","rule","after","count","zone"}: %w`, err)
	}
	q.ID = members["id"]
	for _, k := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(keys, strings.ToLower(k)) { // as encoding/json reads them
			continue
		}
		if meant := nearest.To(k, keys); meant != "" {
			return fmt.Errorf("the key %.40q is unknown; did you mean %q?", k, meant)
		}
		return fmt.Errorf(`the key %.40q is unknown; there are "id", "rule", "after", "count" and "zone"`, k)
	}
	return fmt.Errorf(`a line is one object {"id","rule","after","count","zone"}: %w`, err)
}

func (o *Options) times(q *question) (*times, error) {
	if q.Rule == nil {
		return nil, errors.New(`"rule" is missing`)
	}
	after := o.after()
	if q.After != nil {
		var err error
		if after, err = time.Parse(time.RFC3339, *q.After); err != nil {
			return nil, fmt.Errorf(`"after" is %q; it is an RFC 3339 time such as 2026-03-29T00:30:00Z`, *q.After)
		}
	}
	count := o.Count
	if q.Count != nil {
		count = *q.Count
	}
	if count < 0 || count > maxCount {
		return nil, fmt.Errorf(`"count" is %d; allowed: 0 to %d`, count, maxCount)
	}
	with := *o
	if q.Zone != nil {
		with.Zone = *q.Zone
	}
	r, err := with.parse(*q.Rule, after)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return &times{}, nil
	}
	return nextTimes(r, after, count)
}
