package report

import (
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// manner says how a column gets narrower when a table is wider than the terminal.
type manner struct {
	cut  func(string, int) string // shortens a cell; nil: the cells keep their length
	min  int                      // the width that it keeps
	soft bool                     // shortened before columns that are not soft
	rank int                      // columns with a rank are left out, the lowest first
}

// manners has the columns that get narrower, by their heading. Other columns keep their width.
var manners = map[string]manner{
	"RUN":              {cut: cutMiddle, min: 20},
	"ID":               {rank: 1},
	"JOB":              {cut: cutMiddle, min: 16},
	"JOBS":             {cut: cutEnd, min: 12, soft: true, rank: 10},
	"NAME":             {cut: cutMiddle, min: 16},
	"STEP":             {cut: cutMiddle, min: 12, rank: 5},
	"PAUSED":           {cut: cutMiddle, min: 20},
	"SCHEDULE":         {cut: cutEnd, min: 12, soft: true, rank: 8},
	"RULE":             {cut: cutEnd, min: 16, soft: true, rank: 13},
	"ERROR":            {cut: cutEnd, min: 16, soft: true},
	"REASON":           {cut: cutEnd, min: 16, soft: true},
	"WHAT":             {cut: cutEnd, min: 20, soft: true},
	"VALUE":            {cut: cutEnd, min: 20, soft: true},
	"NEEDS A DECISION": {cut: cutEnd, min: 20, soft: true},
	"STATE":            {cut: cutWords, min: 9, soft: true},
	"ZONE":             {cut: cutMiddle, min: 10, rank: 9},
	"OWNER":            {cut: cutMiddle, min: 8, rank: 2},
	"OWNERS":           {cut: cutEnd, min: 8},
	"BY":               {cut: cutMiddle, min: 6, rank: 3},
	"FROM":             {cut: cutMiddle, min: 16, rank: 3},
	"STARTED":          {rank: 4},
	"LAST RUN":         {rank: 5},
	"OVERDUE":          {cut: cutMiddle, min: 16, rank: 7},
	"FAILING":          {cut: cutMiddle, min: 16},
	"PARKED":           {cut: cutMiddle, min: 16},
	"RUNNING":          {cut: cutMiddle, min: 16},
	"TRIGGER":          {cut: cutMiddle, min: 16},
	"SILENT":           {cut: cutMiddle, min: 16},
	"WAITING FOR":      {cut: cutMiddle, min: 30},
	"SEVERITY":         {rank: 1},
	"TRY":              {rank: 3},
	"NUMBER":           {rank: 4},
	"LINE":             {rank: 6},
	"SUCH AS":          {cut: cutMiddle, min: 16, rank: 10},
	"BECAUSE":          {cut: cutEnd, min: 16, soft: true},
	"ROWS":             {rank: 6},
	"TOOK":             {rank: 11},
	"FAILED IN A ROW":  {rank: 12},
	"RESULT":           {rank: 13},
	"SCHEDULED FOR":    {rank: 14},
}

// manner returns how a column of this table gets narrower. The first column says what a row is about, so it is
// never left out.
func (t *table) manner(column int) manner {
	m := manners[t.rows[0][column]]
	if t.rows[0][column] == "ERROR" && t.message > 0 {
		m.min = t.message
	}
	if column == 0 && m.cut != nil {
		m.cut, m.min = cutMiddle, max(m.min, 20)
	}
	if column == 0 {
		m.soft, m.rank = false, 0
	}
	return m
}

// fit makes the table fit the width, as far as possible. First, ids and times become as short as they can be
// without ambiguity. Then empty columns are removed. Then columns are removed by rank, until the others fit after
// they are shortened.
func (t *table) fit(width int) {
	if sum(t.widths()) <= width {
		return
	}
	t.shortIDs()
	var gone []string
	if i := slices.Index(t.rows[0], "ID"); i > 0 && sum(t.readable()) > width { // the label of the run is enough
		gone = append(gone, "ID")
		t.drop(i)
	}
	if sum(t.readable()) > width {
		t.dropEmpty()
	}
	full, times := t.rows, ""
	for _, withYear := range []bool{true, false} {
		if sum(t.readable()) > width {
			t.rows, times = shortTimes(full, withYear)
		}
	}
	gone = t.squeeze(width, gone)
	t.note = times
	if len(gone) > 0 {
		room := wrapped("There is no room for "+strings.Join(gone, ", ")+".", width)
		t.note = strings.TrimPrefix(t.note+"\n"+strings.Join(room, "\n"), "\n")
	}
}

// dropEmpty removes columns that are empty in each row.
func (t *table) dropEmpty() {
	for i := len(t.rows[0]) - 1; i > 0; i-- {
		if !slices.ContainsFunc(t.rows[1:], func(r []string) bool { return r[i] != "-" }) {
			t.drop(i)
		}
	}
}

// squeeze removes columns, empty ones first, until the others fit the width after they are shortened. It adds the
// names of the removed columns that were not empty to gone.
func (t *table) squeeze(width int, gone []string) []string {
	if sum(t.widths()) <= width {
		return gone
	}
	t.dropEmpty()
	for sum(t.least()) > width {
		first := -1
		for i := range t.rows[0] {
			if rank := t.manner(i).rank; rank > 0 && (first < 0 || rank < t.manner(first).rank) {
				first = i
			}
		}
		if first < 0 {
			break // the terminal wraps the lines
		}
		gone = append(gone, t.rows[0][first])
		t.drop(first)
	}
	t.shorten(width)
	return gone
}

// readable returns the width of each column with as much of a long text as a reader takes in at a glance. While
// there is room for that, times stay whole.
func (t *table) readable() []int {
	const glance = 50
	widths := t.widths()
	for i := range widths {
		if m := t.manner(i); m.soft {
			widths[i] = min(widths[i], max(m.min, glance))
		}
	}
	return widths
}

// shorten makes cells shorter until the table has the width. It shortens soft columns first, and the widest of
// them before the others.
func (t *table) shorten(width int) {
	widths, least := t.widths(), t.least()
	for _, soft := range []bool{true, false} {
		for sum(widths) > width {
			widest := -1
			for i := range widths {
				if t.manner(i).soft == soft && widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
	for i := range widths {
		if cut := t.manner(i).cut; cut != nil {
			for _, row := range t.rows[1:] {
				row[i] = cut(row[i], widths[i])
			}
		}
	}
}

// least returns the smallest width of each column.
func (t *table) least() []int {
	least := t.widths()
	for i, h := range t.rows[0] {
		if m := t.manner(i); m.cut != nil {
			least[i] = min(least[i], max(m.min, cells(h)))
		}
	}
	return least
}

func (t *table) drop(column int) {
	for i, row := range t.rows {
		t.rows[i] = slices.Delete(row, column, column+1)
	}
}

// shortIDs shortens the ids of runs that have no number, as in JOB#ID. It keeps as much of their start as makes
// all of them different.
func (t *table) shortIDs() {
	if t.rows[0][0] != "RUN" {
		return
	}
	id := func(row []string) string { return row[0][strings.LastIndexByte(row[0], '#')+1:] }
	var ids []string
	for _, row := range t.rows[1:] {
		if uuid.MatchString(id(row)) {
			ids = append(ids, id(row))
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	n := 8
	for i := 1; i < len(ids); i++ {
		same := 0
		for ids[i-1][same] == ids[i][same] {
			same++
		}
		n = max(n, same+1)
	}
	for _, row := range t.rows[1:] {
		if uuid.MatchString(id(row)) {
			row[0] = strings.TrimRight(row[0][:len(row[0])-36+n], "-")
		}
	}
}

var uuid = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// shortTimes returns the rows without the part that all times share: the offset from UTC and, unless withYear is
// set, the year. The note then states the shared part.
func shortTimes(rows [][]string, withYear bool) (short [][]string, note string) {
	years, offsets := map[string]bool{}, map[string]bool{}
	each := func(change func(cell *string, at time.Time)) {
		for _, row := range short {
			for i := range row {
				if at, err := time.Parse(time.RFC3339, row[i]); err == nil && manners[rows[0][i]].cut == nil { // a time, and not a text that looks like one
					change(&row[i], at)
				}
			}
		}
	}
	for _, row := range rows {
		short = append(short, slices.Clone(row))
	}
	each(func(_ *string, at time.Time) {
		years[at.Format("2006")] = true
		offsets[at.Format("Z07:00")] = true
	})
	layout, shared := "2006-01-02 15:04:05", []string{}
	if !withYear && len(years) == 1 {
		layout = "01-02 15:04:05"
		for year := range years {
			shared = append(shared, "of the year "+year)
		}
	}
	if len(offsets) == 1 {
		for offset := range offsets {
			shared = append(shared, "in UTC"+strings.TrimPrefix(offset, "Z"))
		}
	} else {
		layout += "Z07:00"
	}
	if len(shared) == 0 {
		return short, ""
	}
	each(func(cell *string, at time.Time) { *cell = at.Format(layout) })
	return short, "All times are " + strings.Join(shared, " and ") + "."
}
