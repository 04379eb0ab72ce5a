package tick

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// MissedTimes are nominal times of a job that were decided not to run.
type MissedTimes struct {
	store.JobGap
	// Times is how many they are; nil: the rule is not known well enough to count.
	Times *int64 `json:"times,omitempty"`
}

// mostRuns bounds the runs that are looked at for one gap.
const mostRuns = 10_000

// Missed lists the gaps of all jobs, or of one, that reach to an instant or beyond it, the newest first, with how many nominal
// times lie in each. A gap in which none lies is left out: it says only up to where was decided.
func Missed(ctx context.Context, s *store.Store, job string, since time.Time, limit int) ([]MissedTimes, error) {
	var list []store.JobGap
	var err error
	if job == "" {
		list, err = s.RecentGaps(ctx, since, limit)
	} else {
		list, err = gapsOf(ctx, s, job, since, limit)
	}
	if err != nil {
		return nil, err
	}
	missed := []MissedTimes{}
	for _, g := range list {
		n, err := missedIn(ctx, s, &g.Gap)
		if err != nil {
			return nil, err
		}
		if n == nil || *n > 0 {
			missed = append(missed, MissedTimes{g, n})
		}
	}
	return missed, nil
}

func gapsOf(ctx context.Context, s *store.Store, job string, since time.Time, limit int) (list []store.JobGap, err error) {
	v, err := s.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	gaps, err := s.Gaps(ctx, job, limit)
	for _, g := range gaps {
		if !g.Through.Before(since) {
			list = append(list, store.JobGap{Gap: g, Job: v.FullName()})
		}
	}
	return list, err
}

// missedIn counts the nominal times of a gap: those of its rule, without those that have a run.
func missedIn(ctx context.Context, s *store.Store, g *store.Gap) (*int64, error) {
	r, err := rules.Parse(g.Rule, rules.Defaults{})
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // somebody wrote the row by hand: the gap counts, its times do not
	}
	n, err := r.Count(g.From, g.Through)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // too many to visit
	}
	if n == 0 {
		return &n, nil
	}
	ran, err := s.NominalRuns(ctx, g.JobID, g.From, g.Through, mostRuns)
	if err != nil || len(ran) == mostRuns {
		return nil, err
	}
	for _, t := range ran {
		if of, err := r.Count(t.Add(-time.Microsecond), t); err == nil && of > 0 {
			n--
		}
	}
	return &n, nil
}
