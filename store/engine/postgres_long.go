package engine

import (
	"bytes"
	"encoding/binary"
)

// Bounds of a message of the server. A message that is longer than mostMessage becomes a shorter one.
const (
	mostMessage = 1 << 20
	mostField   = 64 << 10 // bytes of the text of an error or of a notice; a record keeps less
)

// The kinds of messages whose length has no other bound than that of a value.
const (
	dataRow        = 'D'
	copyData       = 'd'
	errorResponse  = 'E'
	noticeResponse = 'N'
)

// longMessage is a message of which the beginning of each value, or of each text, is kept. Nobody reads the rest.
type longMessage struct {
	kind byte
	rest int    // bytes that are still to come
	body []byte // that is kept
	part []byte // of a number in a row: the number of columns, or the length of a value
	left int    // bytes of a value that are still to come
	room int    // how many of them are kept; of a text, how many bytes of it are
	cut  bool   // a part of the text is not kept
}

// shortens returns what shortens a message; nil: it stays as it is.
func shortens(kind byte, length int) *longMessage {
	if length <= mostMessage {
		return nil
	}
	switch kind {
	case dataRow, copyData, errorResponse, noticeResponse:
		return &longMessage{kind: kind, rest: length}
	}
	return nil
}

// take takes the bytes of the message from those that were read, and returns the others.
func (l *longMessage) take(read []byte) (after []byte) {
	k := min(l.rest, len(read))
	read, after = read[:k], read[k:]
	l.rest -= k
	switch l.kind {
	case dataRow:
		l.row(read)
	case errorResponse, noticeResponse:
		l.texts(read)
	}
	return after
}

// row keeps one byte more of a value than a record has of it, which shows that it was longer.
func (l *longMessage) row(read []byte) {
	for len(read) > 0 {
		if k := min(l.left, len(read)); k > 0 {
			kept := min(l.room, k)
			l.body = append(l.body, read[:kept]...)
			read, l.left, l.room = read[k:], l.left-k, l.room-kept
			continue
		}
		size := 4
		if len(l.body) == 0 {
			size = 2 // the number of columns, which is followed by the values
		}
		k := min(size-len(l.part), len(read))
		l.part, read = append(l.part, read[:k]...), read[k:]
		if len(l.part) < size {
			return
		}
		if size == 4 {
			l.left = max(0, int(int32(binary.BigEndian.Uint32(l.part)))) // -1 is NULL
			if l.room = min(l.left, mostValue+1); l.left > l.room {
				binary.BigEndian.PutUint32(l.part, uint32(l.room))
			}
		}
		l.body, l.part = append(l.body, l.part...), l.part[:0]
	}
}

// texts keeps the beginning of each text. A text ends with a zero; the byte before it, which says what it is, counts with it.
func (l *longMessage) texts(read []byte) {
	for len(read) > 0 {
		end := bytes.IndexByte(read, 0)
		text := read
		if end >= 0 {
			text = read[:end]
		}
		kept := min(mostField-l.room, len(text))
		l.body, l.room, read = append(l.body, text[:kept]...), l.room+kept, read[len(text):]
		l.cut = l.cut || kept < len(text)
		if end < 0 {
			continue
		}
		if l.cut { // marked, so that the rest of a secret is hidden, too: see secret.Cut
			l.body = append(l.body, "…"...)
		}
		l.body, l.room, l.cut, read = append(l.body, 0), 0, false, read[1:]
	}
}

// append appends the shorter message.
func (l *longMessage) append(to []byte) []byte {
	to = append(to, l.kind)
	to = binary.BigEndian.AppendUint32(to, uint32(4+len(l.body)))
	return append(to, l.body...)
}
