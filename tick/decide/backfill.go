package decide

import (
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Backfill chooses the nominal times that a backfill asks for, each with its data interval. These are
// the oldest times in [from, to] that do not lie in the interval of any run yet, at most limit of them.
// A zero to is the instant up to which nominal times are decided; later times are left to the next
// tick. more is the first nominal time beyond the limit.
func Backfill(f *store.BackfillInput, from, to time.Time, limit int) (chosen []store.Interval, more time.Time, err error) {
	subject := "job " + f.Job.FullName()
	decided := later(f.Job.CreatedAt, f.Job.DecidedThrough)
	switch {
	case len(f.Rules) == 0:
		return nil, more, &store.FieldError{Subject: subject, Field: "schedule", Problem: "it has none, so it has no nominal times; `dbjobs job run-now` requests a run"}
	case from.After(f.Now):
		return nil, more, &store.FieldError{Subject: "backfill", Field: "from", Problem: fmt.Sprintf("%s is in the future: the database's clock says %s", from.Format(time.RFC3339), f.Now.Format(time.RFC3339))}
	case to.IsZero():
		to = decided
	case to.Before(from):
		return nil, more, &store.FieldError{Subject: "backfill", Field: "to", Problem: "is before from"}
	case to.After(f.Now):
		return nil, more, &store.FieldError{Subject: "backfill", Field: "to", Problem: fmt.Sprintf("%s is in the future: the database's clock says %s", to.Format(time.RFC3339), f.Now.Format(time.RFC3339))}
	}
	to = earlier(to, decided)
	n, err := NewNominal(&f.Job.Job, f.Rules)
	if err != nil {
		return nil, more, err
	}
	covered := f.Covered
	t, err := n.Next(from.Add(-instant))
	for ; err == nil && !t.IsZero() && !t.After(to); t, err = n.Next(t) {
		for len(covered) > 0 && covered[0].End.Before(t) {
			covered = covered[1:]
		}
		if len(covered) > 0 && t.After(covered[0].Start) {
			t = covered[0].End // no need to look at each time in the interval
			continue
		}
		if len(chosen) == limit {
			return chosen, t, nil
		}
		start, err := n.prev(t)
		if err != nil {
			return nil, more, err
		}
		chosen = append(chosen, store.Interval{Start: start, End: t})
	}
	return chosen, more, err
}
