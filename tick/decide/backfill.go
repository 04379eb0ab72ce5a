package decide

import (
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Chosen is what a backfill asks for.
type Chosen struct {
	Intervals []store.Interval // their ends are the nominal times
	More      time.Time        // the first nominal time beyond the limit
	// KeptSince is the instant before which the runs of the job are not kept, if the backfill asks for times before it at which
	// the job may have run.
	KeptSince time.Time
}

// Backfill chooses the nominal times that a backfill asks for, each with its data interval. These are
// the oldest times in [from, to] that do not lie in the interval of any run yet, at most limit of them.
// A zero to is the instant up to which nominal times are decided; later times are left to the next
// tick.
func Backfill(f *store.BackfillInput, from, to time.Time, limit int) (c Chosen, err error) {
	subject := "job " + f.Job.FullName()
	decided := f.Job.DecidedThrough
	if decided.IsZero() { // no pass has seen the job: its own times come after its creation
		decided = f.Job.CreatedAt
	}
	decided = earlier(f.Now, decided) // the clock may have been ahead
	switch {
	case len(f.Rules) == 0:
		return c, &store.FieldError{Subject: subject, Field: "schedule", Problem: "it has none, so it has no nominal times; `dbjobs job run-now` requests a run"}
	case from.After(f.Now):
		return c, &store.FieldError{Subject: "backfill", Field: "from", Problem: fmt.Sprintf("%s is in the future: the database's clock says %s", from.Format(time.RFC3339), f.Now.Format(time.RFC3339))}
	case to.IsZero():
		to = decided
	case to.Before(from):
		return c, &store.FieldError{Subject: "backfill", Field: "to", Problem: "is before from"}
	case to.After(f.Now):
		return c, &store.FieldError{Subject: "backfill", Field: "to", Problem: fmt.Sprintf("%s is in the future: the database's clock says %s", to.Format(time.RFC3339), f.Now.Format(time.RFC3339))}
	}
	to = earlier(to, decided)
	n, err := NewNominal(&f.Job.Job, f.Rules)
	if err != nil {
		return c, err
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
		if len(c.Intervals) == limit {
			c.More = t
			break
		}
		start, err := n.prev(t)
		if err != nil {
			return c, err
		}
		c.Intervals = append(c.Intervals, store.Interval{Start: start, End: t})
		if t.After(f.Job.CreatedAt) && t.Before(f.KeptSince) {
			c.KeptSince = f.KeptSince
		}
	}
	return c, err
}
