package report

import (
	"io"
	"strings"
)

// gap is the number of blanks between two columns.
const gap = 2

// table aligns columns. Its first row is the heading. On a terminal that is too narrow, columns get narrower or
// are left out, the least important ones first: see manners.
type table struct {
	w    io.Writer
	rows [][]string // characters that could control a terminal are escaped
	note string     // printed below the table: the part that was removed from its cells

	message int // the width that the column ERROR keeps, if it is the purpose of the table; 0: the width in manners
}

func newTable(w io.Writer, heading ...string) *table {
	t := &table{w: w}
	t.row(heading...)
	return t
}

func (t *table) row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Line(c)
		if row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// flush prints the table.
func (t *table) flush() error {
	if o, ok := t.w.(*Output); ok && o.Width > 0 {
		t.fit(o.Width)
	}
	widths := t.widths()
	var b strings.Builder
	for n, row := range t.rows {
		for i, c := range row {
			if n == 0 {
				b.WriteString(heading(t.w, c))
			} else {
				b.WriteString(paint(t.w, t.rows[0][i], c))
			}
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-cells(c)+gap))
			}
		}
		b.WriteByte('\n')
	}
	if t.note != "" {
		b.WriteString(t.note + "\n")
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// widths has the width of each column.
func (t *table) widths() []int {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], cells(c))
		}
	}
	return widths
}

// sum is the width of a table with these columns.
func sum(widths []int) int {
	n := gap * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}
