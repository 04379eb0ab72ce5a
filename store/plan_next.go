package store

import (
	"context"
	"math"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// candidate is a job that a need has found, and since when it is due.
type candidate struct {
	job int64
	due time.Time
}

// pagesAhead is the number of pages that one statement reads where it has to read all jobs of the need, to find and to sort the
// first ones: see readsAll. Read page by page, the cost would grow with the square of the jobs. A job that another session decides
// meanwhile is decided once more, as one that needs nothing.
const pagesAhead = 100

// readsAll reports whether the statement of a need reads all of its jobs, however few it returns. The other statements stop
// at their limit.
func (n Need) readsAll() bool { return n == ScheduleChanged || n == PauseChanged || n == Check }

// Next reads the next jobs that need a decision, at most limit, without a lock. It returns false if there are none. It
// reads again if the statement lost against another one after its first rows, as it may in a session that is
// serializable by default.
func (s *Store) Next(ctx context.Context, p *Page, limit int) (more bool, err error) {
	p.jobs, p.due = nil, nil // not cleared in place: a copy of the page may still be in use
	switch {
	case len(p.ahead) > 0: // a decision needs the time of its own page
		if p.now, err = s.Now(ctx); err != nil {
			return false, err
		}
	case p.last:
		return false, nil
	default:
		var read Page
		err = s.db.Retry(ctx, func() (err error) {
			read = *p
			return s.find(ctx, &read, limit)
		})
		if *p = read; err != nil {
			return false, err
		}
	}
	here := min(limit, len(p.ahead))
	for _, c := range p.ahead[:here] {
		if !p.Without[c.job] {
			p.jobs, p.due = append(p.jobs, c.job), append(p.due, c.due)
		}
	}
	p.ahead = p.ahead[here:]
	return len(p.jobs) > 0 || len(p.ahead) > 0 || !p.last, nil
}

// find reads the jobs of the next page, or of several ones.
func (s *Store) find(ctx context.Context, p *Page, limit int) error {
	if !p.begun {
		p.at, p.begun = engine.Earliest{}, true
	}
	p.ahead = nil
	seen, rows := make(map[int64]bool, limit), 0
	if p.need.readsAll() {
		limit *= pagesAhead
	}
	a := engine.Args{"now": s.now(), "at": p.at, "up_to": p.upTo, "startup": p.StartupID, "start": OccurrenceStart(p.StartupID), "zones": p.Zones, "owner": engine.Null(p.Owner), "id": p.id, "limit": limit, "window": window, "wide": int64(math.MaxInt64)}
	if p.wide {
		a["wide"] = p.id
	}
	var job, id int64
	var run string
	var due, woken engine.Moment
	columns := []any{engine.At(&p.now), &job, &due, &id}
	if p.need == RunWakes {
		columns = append(columns[:3], &run, &woken)
	}
	err := s.db.Query(ctx, p.need.statement(), a, engine.Reads(columns...).Each(func(string) {
		if due.Set() {
			p.at = due.Raw
		}
		p.id = id
		if p.need == RunWakes {
			p.id, due = engine.ID(run), woken
		}
		rows++
		if !seen[job] {
			seen[job] = true
			p.ahead = append(p.ahead, candidate{job, due.Time})
		}
	}))
	p.last = rows < limit
	return err
}
