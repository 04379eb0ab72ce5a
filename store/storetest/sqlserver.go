package storetest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
)

// SQLServer speaks the protocol of a SQL Server, and has nothing behind it. It answers each text with
// tokens of the protocol that a test gives. The tests have no real server. So they show how such
// answers are handled, and not what a real server would answer.
type SQLServer struct {
	URL string

	answer func(text string) []byte
	mu     sync.Mutex
	texts  []string
	stops  int
}

// Answers that are not tokens.
var (
	Silence = []byte("silence") // no answer, until the statement is stopped
	Hangup  = []byte("hangup")  // the connection ends
)

// Types of packets of the protocol, and of tokens.
const (
	tdsBatch, tdsCall, tdsReply, tdsAttention, tdsLogin, tdsPrelogin = 1, 3, 4, 6, 16, 18

	tdsColumns, tdsError, tdsInfo, tdsLoginAck, tdsRow, tdsDone = 0x81, 0xaa, 0xab, 0xad, 0xd1, 0xfd

	doneMore, doneError, doneCount, doneAttention = 1, 2, 16, 32
)

// NewSQLServer listens until the test ends. answer gets the text of each batch. For a call it gets all
// that is sent, as text.
func NewSQLServer(t testing.TB, answer func(text string) []byte) *SQLServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &SQLServer{URL: "sqlserver://ann:geheimnis@" + l.Addr().String() + "?database=shop&encrypt=disable", answer: answer}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = s.serve(conn) // the client ends it
			}()
		}
	}()
	return s
}

// Texts returns the texts that have arrived, and how often a client asked to stop one.
func (s *SQLServer) Texts() (texts []string, stops int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(texts, s.texts...), s.stops
}

func (s *SQLServer) serve(conn net.Conn) error {
	silent := false // a text waits for its answer
	for {
		kind, body, err := tdsMessage(conn)
		if err != nil {
			return err
		}
		var out []byte
		switch kind {
		case tdsPrelogin: // version, and no encryption
			out = []byte{0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0, 0, 0, 0, 2}
		case tdsLogin:
			name := ucs2("none")
			ack := append([]byte{1, 0x74, 0, 0, 4, byte(len(name) / 2)}, name...)
			out = append(sized(tdsLoginAck, append(ack, 16, 0, 0, 0)), Done(0)...)
		case tdsAttention:
			if silent { // on a slow machine, the client may send this once more, when no text waits
				s.mu.Lock()
				s.stops++
				s.mu.Unlock()
			}
			silent = false
			out = done(doneAttention, 0)
		case tdsBatch, tdsCall:
			text := fromUCS2(body)
			s.mu.Lock()
			s.texts = append(s.texts, text)
			s.mu.Unlock()
			out = s.answer(text)
			silent = string(out) == string(Silence)
		}
		switch string(out) {
		case string(Silence):
			continue
		case string(Hangup):
			return errors.New("hung up")
		}
		head := []byte{tdsReply, 1, 0, 0, 0, 0, 1, 0}
		binary.BigEndian.PutUint16(head[2:], uint16(len(head)+len(out)))
		if _, err := conn.Write(append(head, out...)); err != nil {
			return err
		}
	}
}

// tdsMessage reads a message, which may be in several packets.
func tdsMessage(conn net.Conn) (kind byte, body []byte, err error) {
	head := make([]byte, 8)
	for head[1]&1 == 0 {
		if _, err := io.ReadFull(conn, head); err != nil {
			return 0, nil, err
		}
		part := make([]byte, int(binary.BigEndian.Uint16(head[2:]))-len(head))
		if _, err := io.ReadFull(conn, part); err != nil {
			return 0, nil, err
		}
		body = append(body, part...)
	}
	return head[0], body, nil
}

// Done ends an answer.
func Done(rows int) []byte { return done(doneCount, rows) }

// Then ends the answer to one of several statements of a text.
func Then(rows int) []byte { return done(doneCount|doneMore, rows) }

// Failed ends an answer with an error in it.
func Failed() []byte { return done(doneError, 0) }

func done(status, rows int) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{tdsDone}, uint16(status))
	b = append(b, 0, 0) // of no certain command
	return binary.LittleEndian.AppendUint64(b, uint64(rows))
}

// Message returns a message of the server. From level 11 on it is an error.
func Message(number, state, level int, procedure string, line int, text string) []byte {
	kind := byte(tdsInfo)
	if level > 10 {
		kind = tdsError
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(number))
	b = append(b, byte(state), byte(level))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(ucs2(text))/2))
	b = append(append(b, ucs2(text)...), 0) // and no name of a server
	b = append(append(b, byte(len(ucs2(procedure))/2)), ucs2(procedure)...)
	return sized(kind, binary.LittleEndian.AppendUint32(b, uint32(line)))
}

// Row returns a result of one row. A value is an int, a [16]byte for a unique identifier, or a time.Time for a datetime2(7).
func Row(columns []string, values ...any) []byte {
	b := []byte{tdsColumns, byte(len(columns)), 0}
	row := []byte{tdsRow}
	for i, name := range columns {
		kind, size, value := byte(0x26), byte(0), binary.LittleEndian.AppendUint32(nil, 0)
		switch v := values[i].(type) {
		case int:
			binary.LittleEndian.PutUint32(value, uint32(v))
		case [16]byte:
			kind, value = 0x24, v[:]
		case time.Time:
			day := v.Truncate(24 * time.Hour)
			value = binary.LittleEndian.AppendUint64(nil, uint64(v.Sub(day)/100))[:5]
			value = append(value, binary.LittleEndian.AppendUint32(nil, uint32((day.Unix()-time.Time{}.Unix())/(24*60*60)))[:3]...)
			kind, size = 0x2a, 7 // the digits of a second
		}
		if size == 0 {
			size = byte(len(value))
		}
		b = append(b, 0, 0, 0, 0, 0, 0, kind, size, byte(len(name)))
		b = append(b, ucs2(name)...)
		row = append(append(row, byte(len(value))), value...)
	}
	return append(b, row...)
}

func sized(kind byte, b []byte) []byte {
	return append(binary.LittleEndian.AppendUint16([]byte{kind}, uint16(len(b))), b...)
}

func ucs2(s string) (b []byte) {
	for _, c := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

// fromUCS2 returns the parts of a message that are text, wherever they begin.
func fromUCS2(b []byte) string {
	var text strings.Builder
	for i := 0; i+1 < len(b); i++ {
		if b[i] >= ' ' && b[i] < 127 && b[i+1] == 0 {
			text.WriteByte(b[i])
			i++
		}
	}
	return text.String()
}
