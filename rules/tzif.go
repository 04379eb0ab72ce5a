package rules

import (
	"encoding/binary"
	"errors"
	"math"
)

// shift is a change of a zone's offset, to off seconds east of UTC at an instant.
type shift struct{ at, off int64 }

var errZoneData = errors.New("damaged zone data")

// readTZif reads a compiled zone (RFC 9636): the offset before its first change,
// its changes, and the rule for the time after the last one. It uses the second
// of the two blocks, which has 64-bit times.
func readTZif(data string) (first int64, list []shift, tail tzRule, err error) {
	const header = 44
	be := binary.BigEndian
	counts := func(at int) (n [6]int) {
		for i := range n {
			n[i] = int(be.Uint32([]byte(data[at+20+4*i:])))
		}
		return n // isutc, isstd, leap, time, type, char
	}
	if len(data) < header || data[:4] != "TZif" || data[4] < '2' {
		return 0, nil, tail, errZoneData
	}
	n := counts(0)
	at := header + n[3]*5 + n[4]*6 + n[5] + n[2]*8 + n[1] + n[0]
	if len(data) < at+header {
		return 0, nil, tail, errZoneData
	}
	n = counts(at)
	times := at + header
	index := times + n[3]*8
	types := index + n[3]
	foot := types + n[4]*6 + n[5] + n[2]*12 + n[1] + n[0]
	if len(data) < foot+2 || data[foot] != '\n' || data[len(data)-1] != '\n' || n[4] == 0 {
		return 0, nil, tail, errZoneData
	}
	offset := func(kind int) int64 { return int64(int32(be.Uint32([]byte(data[types+6*kind:])))) }
	first = offset(0)
	list = make([]shift, 0, n[3]+2*(tabledYear-2000))
	last := first
	for i := range n[3] {
		t := int64(be.Uint64([]byte(data[times+8*i:])))
		off := offset(int(data[index+i]))
		if off != last {
			list = append(list, shift{t, off})
		}
		last = off
	}
	tail, err = readTZRule(data[foot+1:len(data)-1], last)
	if tail.since = -1 << 62; n[3] > 0 {
		tail.since = int64(be.Uint64([]byte(data[index-8:])))
	}
	return first, list, tail, err
}

// tzRule is the rule after a zone's last listed change: two changes a year, or
// one offset.
type tzRule struct {
	std, dst   int64
	start, end tzDay
	changes    bool
	since      int64 // it holds after this instant
}

// tzDay says when in a year an offset changes: on the nth weekday of a month (the
// fifth is the last), or on a day of the year, at seconds of local time.
type tzDay struct {
	kind              byte // 'M', 'J' (1-365, never February 29th) or 'N' (0-365)
	month, week, wday int
	day               int
	at                int64
}

// civil returns the local time of the change in a year.
func (d *tzDay) civil(year int) int64 {
	var day int
	switch d.kind {
	case 'M':
		first := dayOf(year, d.month, 1)
		day = first + int(floorMod(int64(d.wday-weekdayOf(first)), 7)) + 7*(d.week-1)
		if day >= first+daysInMonth(year, d.month) {
			day -= 7
		}
	case 'J':
		day = dayOf(year, 1, 1) + d.day - 1
		if isLeap(year) && d.day >= 60 {
			day++
		}
	default:
		day = dayOf(year, 1, 1) + d.day
	}
	return joinCivil(day, 0) + d.at
}

// year returns the two changes of a year, in order.
func (z *tzRule) year(y int) [2]shift {
	on := shift{z.start.civil(y) - z.std, z.dst}
	off := shift{z.end.civil(y) - z.dst, z.std}
	if on.at < off.at {
		return [2]shift{on, off}
	}
	return [2]shift{off, on}
}

// readTZRule reads a POSIX TZ string such as CET-1CEST,M3.5.0,M10.5.0/3, with
// the hours -167 to 167 of RFC 9636 §3.3.1. Without one, the last offset stays.
func readTZRule(text string, last int64) (z tzRule, err error) {
	if text == "" {
		return tzRule{std: last}, nil
	}
	p := tzReader{text: text, ok: true}
	p.name()
	z.std = -p.time()
	if p.text == "" {
		return z, p.err()
	}
	p.name()
	if z.dst, z.changes = z.std+3600, true; p.text != "" && p.text[0] != ',' {
		z.dst = -p.time()
	}
	z.start, z.end = p.day(), p.day()
	if p.text != "" {
		p.ok = false
	}
	return z, p.err()
}

// tzReader reads the parts of a TZ string one by one.
type tzReader struct {
	text string
	ok   bool
}

func (p *tzReader) err() error {
	if !p.ok {
		return errZoneData
	}
	return nil
}

func (p *tzReader) peek() byte {
	if p.text == "" {
		return 0
	}
	return p.text[0]
}

func (p *tzReader) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.text = p.text[1:]
	return true
}

// name skips an abbreviation: letters, or anything in <>.
func (p *tzReader) name() {
	quoted := p.take('<')
	i := 0
	for i < len(p.text) && (quoted && p.text[i] != '>' || !quoted && (p.text[i]|0x20 >= 'a' && p.text[i]|0x20 <= 'z')) {
		i++
	}
	p.text = p.text[i:]
	p.ok = p.ok && i >= 3 && (!quoted || p.take('>'))
}

func (p *tzReader) number() (n int) {
	digits := 0
	for p.peek() >= '0' && p.peek() <= '9' && digits < 4 {
		n, digits = n*10+int(p.text[0]-'0'), digits+1
		p.text = p.text[1:]
	}
	p.ok = p.ok && digits > 0
	return n
}

// time reads [+-]h[h[h]][:mm[:ss]] as seconds.
func (p *tzReader) time() int64 {
	sign := int64(1)
	if p.take('-') {
		sign = -1
	} else {
		p.take('+')
	}
	t := int64(p.number()) * 3600
	if p.take(':') {
		t += int64(p.number()) * 60
		if p.take(':') {
			t += int64(p.number())
		}
	}
	return sign * t
}

func (p *tzReader) day() (d tzDay) {
	p.ok = p.ok && p.take(',')
	switch {
	case p.take('M'):
		d.kind, d.month = 'M', p.number()
		p.ok = p.take('.') && p.ok
		d.week = p.number()
		p.ok = p.take('.') && p.ok
		d.wday = (p.number() + 6) % 7 // the string counts from Sunday
		p.ok = p.ok && d.month >= 1 && d.month <= 12 && d.week >= 1 && d.week <= 5
	case p.take('J'):
		d.kind, d.day = 'J', p.number()
	default:
		d.kind, d.day = 'N', p.number()
	}
	d.at = 2 * 3600
	if p.take('/') {
		d.at = p.time()
	}
	return d
}

// tabledYear is the last year whose spans a zone keeps in a table. Later spans
// are computed from the rule when a caller asks for them.
const tabledYear = 2060

// spansOf joins the changes into spans without holes, up to tabledYear.
func spansOf(first int64, list []shift, tail *tzRule) []span {
	if tail.changes {
		day, _ := splitCivil(max(tail.since, firstInstant))
		from, _, _ := dateOf(day)
		for y := from; y <= tabledYear; y++ {
			for _, c := range tail.year(y) {
				if n := len(list); c.at > tail.since && (n == 0 || c.off != list[n-1].off) {
					list = append(list, c)
				}
			}
		}
	}
	spans := make([]span, 0, len(list)+1)
	s := span{from: math.MinInt64 / 2, off: first, before: first}
	for _, c := range list {
		s.to, s.after = c.at, c.off
		spans = append(spans, s)
		s = span{from: c.at, off: c.off, before: s.off}
	}
	if s.to, s.after = math.MaxInt64/2, s.off; tail.changes {
		return spans // the last listed change begins a span that the rule ends
	}
	return append(spans, s)
}

// span computes the span that contains an instant after the table.
func (z *tzRule) span(t int64) span {
	day, _ := splitCivil(t + z.std)
	y, _, _ := dateOf(day)
	var list [6]shift
	for i := range 3 {
		two := z.year(y - 1 + i)
		list[2*i], list[2*i+1] = two[0], two[1]
	}
	i := len(list) - 2
	for i > 1 && t < list[i].at {
		i--
	}
	return span{from: list[i].at, to: list[i+1].at, off: list[i].off, before: list[i-1].off, after: list[i+1].off}
}
