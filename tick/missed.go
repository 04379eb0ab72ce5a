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
	// First and Last are the first and the last of them; zero where they are not known.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
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
		m := MissedTimes{JobGap: g}
		if err := m.count(ctx, s); err != nil {
			return nil, err
		}
		if m.Times == nil || *m.Times > 0 {
			missed = append(missed, m)
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

// count finds the nominal times of the gap: those of its rule, without those that have a run.
func (m *MissedTimes) count(ctx context.Context, s *store.Store) error {
	r, err := rules.Parse(m.Rule, rules.Defaults{})
	if err != nil {
		return nil //nolint:nilerr // somebody wrote the row by hand: the gap counts, its times do not
	}
	n, err := r.Count(m.From, m.Through)
	if err != nil {
		return nil //nolint:nilerr // too many to visit
	}
	if n == 0 {
		m.Times = &n
		return nil
	}
	list, err := s.NominalRuns(ctx, m.JobID, m.From, m.Through, mostRuns)
	if err != nil || len(list) == mostRuns {
		return err
	}
	const before = time.Microsecond // Next is after an instant, and Prev before it
	ran := map[int64]bool{}
	for _, t := range list {
		if of, err := r.Count(t.Add(-before), t); err == nil && of > 0 {
			ran[t.Unix()] = true
			n--
		}
	}
	m.Times = &n
	for m.First, err = r.Next(m.From); err == nil && ran[m.First.Unix()]; {
		m.First, err = r.Next(m.First)
	}
	for m.Last, _ = r.Prev(m.Through.Add(before)); ran[m.Last.Unix()]; {
		if m.Last, err = r.Prev(m.Last); err != nil {
			break
		}
	}
	if n <= 0 || err != nil {
		m.First, m.Last = time.Time{}, time.Time{}
	}
	return nil
}
