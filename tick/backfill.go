package tick

import (
	"context"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Nominal are the nominal times of a job by its definition as it stands.
type Nominal struct {
	job   *store.Job
	rules []*rules.Rule
}

// NewNominal reads the rules of a job.
func NewNominal(j *store.Job, list []store.Rule) (*Nominal, error) {
	n := &Nominal{job: j}
	if err := resolveStart(j); err != nil {
		return nil, err
	}
	parse := newParser("", "")
	for i := range list {
		r, err := parse.current(&list[i], j)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.FullName(), err)
		}
		n.rules = append(n.rules, r)
	}
	return n, nil
}

// Next is the first nominal time after an instant; zero where there is none.
func (n *Nominal) Next(after time.Time) (first time.Time, err error) {
	if t := n.job.NotBefore.Add(-instant); !n.job.NotBefore.IsZero() && t.After(after) {
		after = t
	}
	for _, r := range n.rules {
		t, err := r.Next(after)
		if err != nil {
			return first, fmt.Errorf("rule %s: %w", r, err)
		}
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !n.job.NotAfter.IsZero() && first.After(n.job.NotAfter) {
		return time.Time{}, nil
	}
	return first, nil
}

// prev is the last time of a rule before an instant, also before the job's validity: an interval begins there.
func (n *Nominal) prev(before time.Time) (last time.Time, err error) {
	for _, r := range n.rules {
		t, err := r.Prev(before)
		if err != nil {
			return last, fmt.Errorf("rule %s: %w", r, err)
		}
		last = later(last, t)
	}
	return last, nil
}

// Range says which nominal times a backfill takes.
type Range struct {
	From, To time.Time // both of them belong to it; a zero To is what has been decided
	Limit    int       // at most so many, the oldest
	Again    bool      // also those that lie in the interval of a run
	store.Author
}

// Backfill asks for runs of past nominal times: those of the range that lie in no run's interval yet, each with its own
// interval, from the nominal time before it. What is not decided yet is left to the next tick. more is the first nominal
// time beyond the limit.
func Backfill(ctx context.Context, s *store.Store, job string, r Range) (made []store.Run, more time.Time, err error) {
	within := store.Interval{Start: r.From, End: r.To}
	if within.End.IsZero() {
		within.End = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	made, err = s.Backfill(ctx, job, within, r.Again, r.Author, func(f store.Filling) (chosen []store.Interval, err error) {
		chosen, more, err = r.choose(&f)
		return chosen, err
	})
	return made, more, err
}

func (r *Range) choose(f *store.Filling) (chosen []store.Interval, more time.Time, err error) {
	subject := "job " + f.Job.FullName()
	decided := later(f.Job.CreatedAt, f.Job.DecidedThrough)
	to := r.To
	switch {
	case len(f.Rules) == 0:
		return nil, more, &store.FieldError{Subject: subject, Field: "schedule", Problem: "it has none, and no nominal times; `dbjobs job run-now` asks for a run"}
	case to.IsZero():
		to = decided
	case to.Before(r.From):
		return nil, more, &store.FieldError{Subject: "backfill", Field: "to", Problem: "lies before from"}
	case to.After(f.Now):
		return nil, more, &store.FieldError{Subject: "backfill", Field: "to", Problem: fmt.Sprintf("%s lies in the future: the database's clock says %s", to.Format(time.RFC3339), f.Now.Format(time.RFC3339))}
	}
	to = earlier(to, decided)
	n, err := NewNominal(&f.Job.Job, f.Rules)
	if err != nil {
		return nil, more, err
	}
	covered := f.Covered
	t, err := n.Next(r.From.Add(-instant))
	for ; err == nil && !t.IsZero() && !t.After(to); t, err = n.Next(t) {
		for len(covered) > 0 && covered[0].End.Before(t) {
			covered = covered[1:]
		}
		if len(covered) > 0 && t.After(covered[0].Start) {
			t = covered[0].End // no need to look at each time in it
			continue
		}
		if len(chosen) == r.Limit {
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
