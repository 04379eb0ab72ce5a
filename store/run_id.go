package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// NewRunID returns a UUIDv7 (RFC 9562 section 5.7) of the database's instant, so ids sort by the time of their
// decision. seq keeps the order within one instant: there are 4,096 ids per millisecond, and further ids get a later
// time.
func NewRunID(now time.Time, seq int) string {
	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli()+int64(seq>>12))<<16)
	binary.BigEndian.PutUint16(b[6:8], 0x7000|uint16(seq&0xfff))
	b[8] = 0x80 | b[8]&0x3f
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}
