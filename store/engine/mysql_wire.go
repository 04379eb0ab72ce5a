package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// mysqlWire is a connection that sees the commands of the driver. It sends other commands in place of some, because
// the driver has no COM_RESET_CONNECTION. It also sends several commands at once, although the driver sends each
// one only after the answer to the one before. When the driver comes to a command that was sent already, the
// command is not sent again. The driver gets the answer to a command only after it has come to that command.
type mysqlWire struct {
	net.Conn
	greeted bool
	number  int64 // of the session, from the server's greeting; 0: none was found

	coming []mysqlCommand // the commands that the driver sends next
	joined []byte         // all of them, for one trip; nil: each is sent when the driver comes to it
	behind bool           // they are sent in one trip with the command that the driver sends before them
	sent   bool           // they were sent, in one trip

	framed bool // the driver gets one packet at a time
	left   int  // bytes of that packet that the driver still has to get
	buf    []byte
	unread []byte // of buf
}

// mysqlCommand is a command as the driver sends it, and the command that is sent in its place. The
// answers to both have the same form.
type mysqlCommand struct{ driver, wire string }

// The first byte of a command is its kind.
const (
	mysqlInitDB = "\x02"
	mysqlQuery  = "\x03"
	mysqlPing   = "\x0e"
	mysqlReset  = "\x1f"
)

// mysqlPacket returns the bytes of a command as it is sent. The command is shorter than 16 MB.
func mysqlPacket(command, text string) string {
	n := len(command) + len(text)
	return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), 0}) + command + text
}

// queryOnWire returns the command for a statement that is sent as the driver sends it.
func queryOnWire(text string) mysqlCommand {
	packet := mysqlPacket(mysqlQuery, text)
	return mysqlCommand{packet, packet}
}

// joined returns the bytes that are sent in place of commands in one trip.
func joined(commands []mysqlCommand) []byte {
	var all bytes.Buffer
	for _, c := range commands {
		all.WriteString(c.wire)
	}
	return all.Bytes()
}

var errUnwired = errors.New("the connection is not one whose commands are seen")

// expect says which commands the driver is going to send. With joined, they are sent in one trip. With
// behind, this trip begins with the command that the driver sends before them.
func (w *mysqlWire) expect(commands []mysqlCommand, joined []byte, behind bool) {
	w.coming, w.joined, w.behind, w.sent = commands, joined, behind, false
}

// underway reports whether commands were sent to which the driver has not come yet.
func (w *mysqlWire) underway() bool { return w.sent && len(w.coming) > 0 }

// Write writes what the driver sends. If this is not the expected command, it is an error, and the
// server gets nothing.
func (w *mysqlWire) Write(p []byte) (int, error) {
	switch {
	case w.behind && isMySQLQuery(p):
		w.behind = false
		return w.writeJoined(p)
	case w.behind: // such as a statement to be prepared
		w.expect(nil, nil, false)
	}
	if len(w.coming) == 0 {
		if w.framed = len(w.unread) > 0; w.framed {
			return 0, fmt.Errorf("%w: %d bytes answer nothing", errUnwired, len(w.unread))
		}
		return w.Conn.Write(p)
	}
	next := w.coming[0]
	if string(p) != next.driver {
		return 0, fmt.Errorf("%w: %d bytes instead of the %d that were to come", errUnwired, len(p), len(next.driver))
	}
	var err error
	switch {
	case w.sent:
	case w.joined != nil:
		_, err = w.writeJoined(nil)
	default:
		_, err = w.Conn.Write([]byte(next.wire))
	}
	if err != nil {
		return 0, err
	}
	w.coming = w.coming[1:]
	return len(p), nil
}

// writeJoined writes the bytes that the driver sends, and then the expected commands. n is how many
// bytes of the driver were written.
func (w *mysqlWire) writeJoined(p []byte) (n int, err error) {
	w.sent, w.framed = true, true
	n, err = w.Conn.Write(append(bytes.Clone(p), w.joined...))
	return min(n, len(p)), err
}

// isMySQLQuery reports whether these bytes are one whole command with the text of a statement.
func isMySQLQuery(p []byte) bool {
	return len(p) > 4 && p[3] == 0 && string(p[4:5]) == mysqlQuery && packetLength(p) == len(p)
}

// packetLength returns the length of a packet, with its head of 4 bytes.
func packetLength(p []byte) int {
	return 4 + int(p[0]) + int(p[1])<<8 + int(p[2])<<16
}

// Read reads the bytes that the driver may have now. The driver's buffer must be empty when it sends
// the next command.
func (w *mysqlWire) Read(p []byte) (int, error) {
	if !w.framed {
		n, err := w.Conn.Read(p)
		if !w.greeted {
			w.greeted, w.number = true, greeted(p[:n])
		}
		return n, err
	}
	const head = 4
	if w.left == 0 {
		if err := w.fill(head); err != nil {
			return 0, err
		}
		w.left = packetLength(w.unread)
	}
	if err := w.fill(1); err != nil {
		return 0, err
	}
	n := copy(p[:min(len(p), w.left)], w.unread)
	w.unread, w.left = w.unread[n:], w.left-n
	return n, nil
}

// fill reads until at least n bytes are unread.
func (w *mysqlWire) fill(n int) error {
	if len(w.unread) >= n {
		return nil
	}
	if w.buf == nil {
		w.buf = make([]byte, 2<<10)
	}
	have := copy(w.buf, w.unread)
	more, err := io.ReadAtLeast(w.Conn, w.buf[have:], n-have)
	w.unread = w.buf[:have+more]
	return err
}

// greeted returns the number of the session from the first packet of a server. The number comes after
// the version of the protocol and the version of the server, which ends with a zero byte.
func greeted(p []byte) int64 {
	const version, head, number = 10, 5, 4
	if len(p) < head || p[head-1] != version {
		return 0
	}
	_, rest, ok := bytes.Cut(p[head:], []byte{0})
	if !ok || len(rest) < number {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(rest))
}

// SyscallConn lets the driver see that the server has ended the connection.
func (w *mysqlWire) SyscallConn() (syscall.RawConn, error) {
	if c, ok := w.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errUnwired
}

// wireOf is the key in the context in which the driver dials. Its value is the connection that the wire is for.
type wireOf struct{}

func dialMySQL(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	job, ok := ctx.Value(wireOf{}).(*mysqlJobConn)
	if err != nil || !ok {
		return c, err
	}
	job.wire = &mysqlWire{Conn: c}
	return job.wire, nil
}
