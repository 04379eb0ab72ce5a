package rulecmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dbjobs/dbjobs/rules"
)

// question is a line of `rule next --jsonl`.
type question struct {
	ID    json.RawMessage `json:"id"`    // of any type, given back as it is
	Rule  *string         `json:"rule"`  // in any form; the lines of an RRULE text joined by \n
	After *string         `json:"after"` // RFC 3339; also when a rule without a start was created
	Count *int            `json:"count"` // DefaultCount if absent
}

// failure answers a line that has no times.
type failure struct {
	ID    json.RawMessage `json:"id,omitempty"`
	Error string          `json:"error"`
}

// longestLine is the most a line may have. A longer one is answered with an
// error and passed over, without being held in memory.
const longestLine = 1 << 20

// NextLines answers questions about rules, an object a line, in order: for
// {"id","rule","after","count"} it writes {"id","next","exhausted"} or
// {"id","error"}. A line that cannot be answered does not end the run; blank
// lines are passed over. It keeps one line in memory, and the rules asked for
// last, since the same rule is often asked for in a row.
func NextLines(stdin io.Reader, stdout io.Writer, o Options) error {
	in := bufio.NewReaderSize(stdin, 64<<10)
	out := bufio.NewWriterSize(stdout, 64<<10)
	l := lines{options: o}
	for {
		text, tooLong, err := readLine(in, l.line[:0])
		l.line = text
		if len(bytes.TrimSpace(text)) > 0 || tooLong {
			if err := l.answer(out, text, tooLong); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("reading questions: %w", err), out.Flush())
		}
		if in.Buffered() == 0 { // whoever asks one at a time waits for the answer
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// readLine appends the next line to buf; of one that is too long, the start.
func readLine(in *bufio.Reader, buf []byte) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(buf)+len(part) <= longestLine {
			buf = append(buf, part...)
		} else {
			tooLong = true
		}
		if err != bufio.ErrBufferFull {
			return buf, tooLong, err
		}
	}
}

type lines struct {
	options Options
	line    []byte
}

func (l *lines) answer(out *bufio.Writer, text []byte, tooLong bool) error {
	var q question
	var reply any
	var err error
	if tooLong {
		err = fmt.Errorf("a line has at most %d bytes", longestLine)
	} else if err = decode(text, &q); err == nil {
		reply, err = l.times(&q)
	}
	if err != nil {
		reply = &failure{q.ID, err.Error()}
	}
	data, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	out.Write(data)
	return out.WriteByte('\n')
}

// decode reads a question. Its id is kept, if it can be read, even where the
// rest is wrong.
func decode(text []byte, q *question) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(q)
	if err == nil {
		if _, extra := d.Token(); extra != io.EOF {
			err = errors.New("more than one value on the line")
		}
	}
	if err != nil {
		var id struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(text, &id) == nil {
			q.ID = id.ID
		}
		return fmt.Errorf(`a line is one object {"id","rule","after","count"}: %w`, err)
	}
	return nil
}

func (l *lines) times(q *question) (*times, error) {
	if q.Rule == nil {
		return nil, errors.New(`"rule" is missing`)
	}
	after := l.options.after()
	if q.After != nil {
		var err error
		if after, err = time.Parse(time.RFC3339, *q.After); err != nil {
			return nil, fmt.Errorf(`"after" is %q; it is an RFC 3339 time such as 2026-03-29T00:30:00Z`, *q.After)
		}
	}
	count := l.options.Count
	if count == 0 {
		count = DefaultCount
	}
	if q.Count != nil {
		count = *q.Count
	}
	if count < 0 || count > MaxCount {
		return nil, fmt.Errorf(`"count" is %d; allowed: 0 to %d`, count, MaxCount)
	}
	r, err := l.options.parse(*q.Rule, after)
	if err != nil {
		return nil, err
	}
	t, err := l.ask(r, after, count)
	if err != nil {
		return nil, err
	}
	t.ID = q.ID
	return t, nil
}

func (l *lines) ask(r *rules.Rule, after time.Time, count int) (*times, error) {
	if count == 0 {
		return &times{Next: []string{}}, nil
	}
	return nextTimes(r, after, count)
}
