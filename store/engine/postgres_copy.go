package engine

import (
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// copyRefused is what the server says of a COPY FROM STDIN: "COPY from stdin failed: ".
const copyRefused = "no client sends rows to a step; copy from a file of the server, or use INSERT"

// refusesCopies makes a frontend that answers each COPY FROM STDIN with a refusal. The driver does not answer, and would
// wait for ever together with the server. Only the server knows for certain that a text has such a statement.
func refusesCopies(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(&copyRefuser{from: r, to: w}, w)
}

var _ pgconn.BuildFrontendFunc = refusesCopies

// copyRefuser reads what a server sends, and sees where each message begins.
type copyRefuser struct {
	from io.Reader
	to   io.Writer
	head []byte // of a message that begins: its kind, and its length without the kind
	rest int    // bytes of a message that are still to come
}

const copyInResponse = 'G'

// Read reads, and sends the refusal as soon as the server waits for rows.
func (c *copyRefuser) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	for read := p[:n]; len(read) > 0; {
		if skip := min(c.rest, len(read)); skip > 0 {
			read, c.rest = read[skip:], c.rest-skip
			continue
		}
		const head, length = 5, 4
		k := min(head-len(c.head), len(read))
		c.head, read = append(c.head, read[:k]...), read[k:]
		if len(c.head) < head {
			break
		}
		kind := c.head[0]
		c.rest = int(binary.BigEndian.Uint32(c.head[1:])) - length
		if c.head = c.head[:0]; kind != copyInResponse {
			continue
		}
		refusal, failed := (&pgproto3.CopyFail{Message: copyRefused}).Encode(nil)
		if failed == nil {
			_, failed = c.to.Write(refusal)
		}
		if failed != nil {
			return n, failed
		}
	}
	return n, err
}
