package engine

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5/pgproto3"
)

// inParts gives at most size bytes at a time.
type inParts struct {
	from io.Reader
	size int
}

func (r inParts) Read(p []byte) (int, error) { return r.from.Read(p[:min(len(p), r.size)]) }

// However the bytes come, messages are seen where they begin: long ones become shorter, others stay as they are, and a COPY is refused once.
func TestLongMessagesAreShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", mostMessage/2+1)
	var sent []byte
	for _, m := range []pgproto3.BackendMessage{
		&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("a")}}},
		&pgproto3.DataRow{Values: [][]byte{[]byte("short"), nil, []byte(long[:mostMessage/2])}},
		&pgproto3.DataRow{Values: [][]byte{[]byte("1"), nil, []byte(long), {}, []byte(long), []byte("after")}},
		&pgproto3.CopyInResponse{},
		&pgproto3.CopyData{Data: []byte(long)},
		&pgproto3.NoticeResponse{Severity: "NOTICE", Message: long, Hint: "be brief"},
		&pgproto3.ErrorResponse{Severity: "ERROR", Code: "P0001", Message: "no", Detail: long, Hint: long[:100]},
		&pgproto3.ReadyForQuery{TxStatus: 'I'},
	} {
		var err error
		if sent, err = m.Encode(sent); err != nil {
			t.Fatal(err)
		}
	}
	kept := long[:mostValue+1]
	const field = mostField - 1 // the byte before it counts
	want := []string{"*pgproto3.RowDescription", fmt.Sprintf("row short|NULL|%s", long[:mostMessage/2]), "row 1|NULL|" + kept + "||" + kept + "|after", "*pgproto3.CopyInResponse", "copy ",
		"NOTICE " + long[:field] + "… be brief", "P0001 no " + long[:field] + "… " + long[:100], "ready"}
	for _, from := range []func(io.Reader) io.Reader{
		iotest.HalfReader, iotest.DataErrReader,
		func(r io.Reader) io.Reader { return inParts{r, 3} }, func(r io.Reader) io.Reader { return inParts{r, 8192} }, func(r io.Reader) io.Reader { return r },
	} {
		var told bytes.Buffer
		f := postgresReads(true)(from(bytes.NewReader(sent)), &told)
		for i, want := range want {
			m, err := f.Receive()
			if err != nil {
				t.Fatal(i, err)
			}
			var got string
			switch m := m.(type) {
			case *pgproto3.DataRow:
				texts := make([]string, len(m.Values))
				for i, v := range m.Values {
					if texts[i] = string(v); v == nil {
						texts[i] = "NULL"
					}
				}
				got = "row " + strings.Join(texts, "|")
			case *pgproto3.CopyData:
				got = "copy " + string(m.Data)
			case *pgproto3.NoticeResponse:
				got = m.Severity + " " + m.Message + " " + m.Hint
			case *pgproto3.ErrorResponse:
				got = m.Code + " " + m.Message + " " + m.Detail + " " + m.Hint
			case *pgproto3.ReadyForQuery:
				got = "ready"
			default:
				got = fmt.Sprintf("%T", m)
			}
			if got != want {
				t.Fatalf("message %d: %d bytes: %.100q, want %d: %.100q", i, len(got), got, len(want), want)
			}
		}
		if _, err := f.Receive(); err == nil {
			t.Error("there is more")
		}
		if n := strings.Count(told.String(), copyRefused); n != 1 {
			t.Errorf("a COPY is refused %d times", n)
		}
	}
}
