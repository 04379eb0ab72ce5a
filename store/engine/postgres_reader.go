package engine

import (
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// copyRefused is what the server says of a COPY FROM STDIN: "COPY from stdin failed: ".
const copyRefused = "no client sends rows to a step; copy from a file of the server, or use INSERT"

// postgresReads makes frontends that answer each COPY FROM STDIN with a refusal. The driver does not answer, and would wait for ever
// together with the server. Only the server knows for certain that a text has such a statement. The driver also keeps each message
// in memory as a whole: with short, long ones come shortened.
func postgresReads(short bool) pgconn.BuildFrontendFunc {
	return func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(&postgresReader{from: r, to: w, short: short}, w)
	}
}

// postgresReader reads what a server sends, and sees where each message begins.
type postgresReader struct {
	from  io.Reader
	to    io.Writer
	short bool         // long messages come shortened
	ready []byte       // not read by the driver yet
	kept  []byte       // the memory of ready
	head  []byte       // of a message that begins: its kind, and its length without the kind
	rest  int          // bytes of a message that are still to come, and pass as they are
	long  *longMessage // nil: no message is being shortened
}

const copyInResponse = 'G'

// Read reads, and sends the refusal as soon as the server waits for rows. It gives the driver no part of the head of a message,
// because the message may become a shorter one.
func (c *postgresReader) Read(p []byte) (n int, err error) {
	for len(c.ready) == 0 && err == nil {
		if n, err = c.from.Read(p); n > 0 {
			c.ready = c.kept[:0]
			if failed := c.see(p[:n]); failed != nil {
				err = failed
			}
			c.kept = c.ready
		}
	}
	n = copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, err
}

// see adds what the driver gets of the bytes that were read.
func (c *postgresReader) see(read []byte) error {
	const head, length = 5, 4
	for len(read) > 0 {
		switch {
		case c.long != nil:
			if read = c.long.take(read); c.long.rest == 0 {
				c.ready, c.long = c.long.append(c.ready), nil
			}
		case c.rest > 0:
			k := min(c.rest, len(read))
			c.ready, read, c.rest = append(c.ready, read[:k]...), read[k:], c.rest-k
		default:
			k := min(head-len(c.head), len(read))
			c.head, read = append(c.head, read[:k]...), read[k:]
			if len(c.head) < head {
				return nil
			}
			body := int(binary.BigEndian.Uint32(c.head[1:])) - length
			if c.short {
				c.long = shortens(c.head[0], body)
			}
			if c.long == nil {
				c.ready, c.rest = append(c.ready, c.head...), body
			}
			refuses := c.head[0] == copyInResponse
			if c.head = c.head[:0]; !refuses {
				continue
			}
			refusal, err := (&pgproto3.CopyFail{Message: copyRefused}).Encode(nil)
			if err == nil {
				_, err = c.to.Write(refusal)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
