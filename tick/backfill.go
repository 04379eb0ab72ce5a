package tick

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// Range selects the nominal times of a backfill.
type Range struct {
	From, To time.Time // both included; a zero To is the instant up to which nominal times are decided
	Limit    int       // at most this number of times, the oldest first
	Again    bool      // also choose times that lie in the interval of a run
	store.Author
}

// Backfill requests runs for past nominal times: those of the range that lie in no run's interval yet.
// The interval of each run begins at the nominal time before it. Times that are not decided yet are
// left to the next tick.
func Backfill(ctx context.Context, s *store.Store, job string, r Range) (made []store.Run, chosen decide.Chosen, err error) {
	made, err = s.Backfill(ctx, job, r.within(), r.Again, r.Author, func(f store.BackfillInput) (_ []store.Interval, err error) {
		chosen, err = decide.Backfill(&f, r.From, r.To, r.Limit)
		return chosen.Intervals, err
	})
	return made, chosen, err
}

// BackfillDryRun returns what Backfill would choose now, and requests no run.
func BackfillDryRun(ctx context.Context, s *store.Store, job string, r Range) (decide.Chosen, error) {
	f, err := s.BackfillInput(ctx, job, r.within(), r.Again)
	if err != nil {
		return decide.Chosen{}, err
	}
	return decide.Backfill(&f, r.From, r.To, r.Limit)
}

// within is where runs may cover times of the range.
func (r *Range) within() store.Interval {
	if r.To.IsZero() {
		return store.Interval{Start: r.From, End: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	}
	return store.Interval{Start: r.From, End: r.To}
}
