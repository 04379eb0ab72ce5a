package simulate

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// moment is a run: its nominal time, or 0, and when it begins, in microseconds.
type moment struct{ nominal, started int64 }

func (m moment) at() time.Time { return time.UnixMicro(m.started).UTC() }

// Difference says what would run differently under two sets of definitions.
type Difference struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Before int       `json:"runs_before"`
	After  int       `json:"runs_after"`
	Equal  int       `json:"jobs_alike"` // jobs that run at the same times in both
	Jobs   []Moved   `json:"jobs"`
	More   bool      `json:"more"` // some jobs have more times than are listed
}

// Moved is a job that runs at other times.
type Moved struct {
	Job     string      `json:"job"`
	Change  string      `json:"change"` // added, removed or changed
	Before  int         `json:"runs_before"`
	After   int         `json:"runs_after"`
	Added   []time.Time `json:"added"` // the first ones
	Removed []time.Time `json:"removed"`
	Moved   []Move      `json:"moved"`
	// Times counts all times that differ, including those that are not listed.
	Times int `json:"times"`
}

// Move is a run that begins at another time. It has the same nominal time, or it replaces the other run on that day.
type Move struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Compare simulates two inputs, and finds what runs differently.
func Compare(ctx context.Context, before, after Input, o Options) (*Difference, error) {
	if o.starts = true; o.Zone == nil {
		o.Zone = time.UTC
	}
	was, names, err := starts(ctx, before, o)
	if err != nil {
		return nil, err
	}
	became, more, err := starts(ctx, after, o)
	if err != nil {
		return nil, err
	}
	d := &Difference{From: o.From, To: o.To, Jobs: []Moved{}}
	names = append(names, more...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, ran := was[name]
		y, runs := became[name]
		m := Moved{Job: name, Change: "changed", Before: len(x), After: len(y), Added: []time.Time{}, Removed: []time.Time{}, Moved: []Move{}}
		d.Before, d.After = d.Before+len(x), d.After+len(y)
		switch m.compare(x, y, o); {
		case !ran:
			m.Change = "added"
		case !runs:
			m.Change = "removed"
		case m.Times == 0:
			d.Equal++
			continue
		}
		d.More = m.cut(o.Keep) || d.More
		d.Jobs = append(d.Jobs, m)
	}
	return d, nil
}

// starts returns the beginnings of the runs of each job, in order.
func starts(ctx context.Context, in Input, o Options) (map[string][]moment, []string, error) {
	l, err := walk(ctx, in, o)
	if err != nil {
		return nil, nil, err
	}
	byJob, names := map[string][]moment{}, make([]string, 0, len(l.list))
	for _, e := range l.list {
		name := e.job.FullName()
		names = append(names, name)
		slices.SortFunc(e.facts.starts, func(x, y moment) int {
			return cmp.Or(cmp.Compare(x.started, y.started), cmp.Compare(x.nominal, y.nominal))
		})
		byJob[name] = e.facts.starts
	}
	return byJob, names, nil
}

// compare finds the differences between the runs of a job. First it pairs runs that have the same nominal
// time and begin at another time. Then, for each day on which as many runs are gone as are new, it pairs
// these in order.
func (m *Moved) compare(x, y []moment, o Options) {
	gone, fresh := without(x, y), without(y, x)
	at := map[int64]int{}
	for i, f := range fresh {
		if f.nominal != 0 {
			at[f.nominal] = i + 1
		}
	}
	used := make([]bool, len(fresh))
	move := func(g, f moment) { m.Moved = append(m.Moved, Move{g.at(), f.at()}) }
	gone = slices.DeleteFunc(gone, func(g moment) bool {
		i := at[g.nominal]
		if g.nominal == 0 || i == 0 || used[i-1] {
			return false
		}
		used[i-1] = true
		move(g, fresh[i-1])
		return true
	})
	days := func(list []moment, skip func(int) bool) map[string][]moment {
		byDay := map[string][]moment{}
		for i, f := range list {
			if !skip(i) {
				day := f.at().In(o.Zone).Format(time.DateOnly)
				byDay[day] = append(byDay[day], f)
			}
		}
		return byDay
	}
	goneOf := days(gone, func(int) bool { return false })
	freshOf := days(fresh, func(i int) bool { return used[i] })
	for day, list := range goneOf {
		if other := freshOf[day]; len(other) == len(list) {
			for i := range list {
				move(list[i], other[i])
			}
			delete(freshOf, day)
			continue
		}
		for _, g := range list {
			m.Removed = append(m.Removed, g.at())
		}
	}
	for _, list := range freshOf {
		for _, f := range list {
			m.Added = append(m.Added, f.at())
		}
	}
	slices.SortFunc(m.Removed, time.Time.Compare)
	slices.SortFunc(m.Added, time.Time.Compare)
	slices.SortFunc(m.Moved, func(x, y Move) int { return x.From.Compare(y.From) })
	m.Times = len(m.Added) + len(m.Removed) + len(m.Moved)
}

// without returns the moments of a list that are not in another list. Both lists are in order.
func without(list, other []moment) (left []moment) {
	for _, f := range list {
		for len(other) > 0 && (other[0].started < f.started || other[0].started == f.started && other[0].nominal < f.nominal) {
			other = other[1:]
		}
		if len(other) > 0 && other[0] == f {
			other = other[1:]
			continue
		}
		left = append(left, f)
	}
	return left
}

// cut keeps the first times, and reports whether there are more.
func (m *Moved) cut(keep int) bool {
	more := len(m.Added) > keep || len(m.Removed) > keep || len(m.Moved) > keep
	m.Added, m.Removed, m.Moved = m.Added[:min(len(m.Added), keep)], m.Removed[:min(len(m.Removed), keep)], m.Moved[:min(len(m.Moved), keep)]
	return more
}
