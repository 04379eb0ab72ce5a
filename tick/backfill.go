package tick

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// Range says which nominal times a backfill takes.
type Range struct {
	From, To time.Time // both of them belong to it; a zero To is what has been decided
	Limit    int       // at most this number, the oldest
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
	made, err = s.Backfill(ctx, job, within, r.Again, r.Author, func(f store.BackfillInput) (chosen []store.Interval, err error) {
		chosen, more, err = decide.Backfill(&f, r.From, r.To, r.Limit)
		return chosen, err
	})
	return made, more, err
}
