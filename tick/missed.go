package tick

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// MissedTimes are nominal times of a job that were decided not to run.
type MissedTimes struct {
	store.JobGap
	// Times is the number of these nominal times; nil: the rule is not known well enough to count them.
	Times *int64 `json:"times,omitempty"`
	// First and Last are the first and the last of these times; zero: they are not known.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`

	rule *rules.Rule // nil: it is not known
}

// mostRuns bounds how many runs are read at a time, and for one gap, and how many times are compared with those of another gap.
const mostRuns = 10_000

// countedTogether is how many gaps are counted with one look at the runs. The newest come first, so they are of about one time.
const countedTogether = 100

// Missed lists gaps of all jobs, or of one job, with the number of nominal times in each gap. It lists the gaps that end at
// since or later, the newest first, at most limit. A gap without a nominal time is left out: it only says up to where times
// were decided, or all of its times have been made up for, or two rules of the job give them and the gap of the other one
// has them.
func Missed(ctx context.Context, s *store.Store, job string, since time.Time, limit int) ([]MissedTimes, error) {
	for read := limit; ; read *= 2 { // each gap that is left out makes room for an older one
		list, err := gapsOf(ctx, s, job, since, read)
		if err != nil {
			return nil, err
		}
		missed, err := counted(ctx, s, list, limit)
		if err != nil || len(missed) == limit || len(list) < read {
			return missed, err
		}
	}
}

// gapsOf reads the newest gaps of all jobs, or of one job: fewer than limit only if there are no others.
func gapsOf(ctx context.Context, s *store.Store, job string, since time.Time, limit int) ([]store.JobGap, error) {
	if job == "" {
		return s.RecentGaps(ctx, since, limit)
	}
	list, err := s.Gaps(ctx, job, limit)
	return slices.DeleteFunc(list, func(g store.JobGap) bool { return g.Through.Before(since) }), err
}

// counted counts the nominal times of gaps, and returns the first ones that have some: at most limit.
func counted(ctx context.Context, s *store.Store, list []store.JobGap, limit int) ([]MissedTimes, error) {
	missed := []MissedTimes{}
	for page := range slices.Chunk(list, countedTogether) {
		ran, err := ranIn(ctx, s, page)
		if err != nil {
			return nil, err
		}
		for _, g := range page {
			m := MissedTimes{JobGap: g}
			if err := m.count(ctx, s, ran, missed); err != nil {
				return nil, err
			}
			if m.Times == nil || *m.Times > 0 {
				missed = append(missed, m)
			}
			if len(missed) == limit {
				return missed, nil
			}
		}
	}
	return missed, nil
}

// ranIn returns the nominal times that have a run, by job, from the first to the last of these gaps; nil: there are too many.
func ranIn(ctx context.Context, s *store.Store, gaps []store.JobGap) (map[int64][]time.Time, error) {
	from, through, jobs := gaps[0].From, gaps[0].Through, []int64{}
	for _, g := range gaps {
		if g.From.Before(from) {
			from = g.From
		}
		if g.Through.After(through) {
			through = g.Through
		}
		jobs = append(jobs, g.JobID)
	}
	slices.Sort(jobs)
	ran, n, err := s.NominalRuns(ctx, slices.Compact(jobs), from, through, mostRuns)
	if n == mostRuns {
		return nil, err
	}
	return ran, err
}

// ran returns those of these times that are of the gap; without times, it reads them. all is false if there are too many.
func (m *MissedTimes) ran(ctx context.Context, s *store.Store, times map[int64][]time.Time) (list []time.Time, all bool, err error) {
	if times == nil {
		times, n, err := s.NominalRuns(ctx, []int64{m.JobID}, m.From, m.Through, mostRuns)
		return times[m.JobID], n < mostRuns, err
	}
	for _, t := range times[m.JobID] {
		if t.After(m.From) && !t.After(m.Through) {
			list = append(list, t)
		}
	}
	return list, true, nil
}

// count finds the nominal times of the gap: the times of its rule, except those that have a run, or that are in one of the
// gaps before it. times are from ranIn.
func (m *MissedTimes) count(ctx context.Context, s *store.Store, times map[int64][]time.Time, before []MissedTimes) error {
	r, err := rules.Parse(m.Rule, rules.Defaults{})
	if err != nil {
		return nil //nolint:nilerr // somebody has written the row by hand: the gap is listed without its times
	}
	n, err := r.Count(m.From, m.Through)
	if err != nil {
		return nil //nolint:nilerr // there are too many times to count
	}
	if n == 0 {
		m.Times = &n
		return nil
	}
	list, all, err := m.ran(ctx, s, times)
	if err != nil || !all {
		return err
	}
	m.rule = r
	out := map[int64]bool{}
	for i := range before {
		for _, t := range m.shared(&before[i]) {
			out[t.Unix()] = true
		}
	}
	for _, t := range list {
		if fires(r, t) {
			out[t.Unix()] = true
		}
	}
	n -= int64(len(out))
	m.Times = &n
	for m.First, err = r.Next(m.From); err == nil && out[m.First.Unix()]; {
		m.First, err = r.Next(m.First)
	}
	for m.Last, _ = r.Prev(m.Through.Add(instant)); out[m.Last.Unix()]; {
		if m.Last, err = r.Prev(m.Last); err != nil {
			break
		}
	}
	if n <= 0 || err != nil {
		m.First, m.Last = time.Time{}, time.Time{}
	}
	return nil
}

const instant = time.Microsecond // Next gives times after an instant, and Prev times before it

// fires reports whether a rule gives a time.
func fires(r *rules.Rule, t time.Time) bool {
	n, err := r.Count(t.Add(-instant), t)
	return err == nil && n > 0
}

// shared returns the times that another gap of the job has, too, for the same reason. Where there are too many to compare, it
// returns none.
func (m *MissedTimes) shared(o *MissedTimes) (both []time.Time) {
	from, to := m.From, m.Through
	if o.From.After(from) {
		from = o.From
	}
	if o.Through.Before(to) {
		to = o.Through
	}
	if o.JobID != m.JobID || o.Reason != m.Reason || o.rule == nil || !from.Before(to) {
		return nil
	}
	few, other := m.rule, o.rule
	n, err := few.Count(from, to)
	if of, wrong := other.Count(from, to); wrong == nil && (err != nil || of < n) {
		few, other, n, err = other, few, of, nil
	}
	if err != nil || n > mostRuns {
		return nil
	}
	for t, err := few.Next(from); err == nil && !t.IsZero() && !t.After(to); t, err = few.Next(t) {
		if fires(other, t) {
			both = append(both, t)
		}
	}
	return both
}
