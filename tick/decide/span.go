package decide

import (
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// walked bounds how many times are visited to find the last run that max_runs leaves.
const walked = 10_000

// endless is after all times of rules.
var endless = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Span says between which instants the times of a job count, from now on; a zero last means that there is no end. If cut is set,
// there are times after last, but which of them is the last one is not known.
func (n *Nominal) Span(now time.Time, v *store.JobStatus) (first, last time.Time, cut bool) {
	first, last = later(now, v.NotBefore), v.NotAfter
	if v.Paused != nil {
		first = later(first, v.Paused.Until)
	}
	if v.MaxRuns == 0 {
		return first, last, false
	}
	left := v.MaxRuns - v.RunsMade
	list := n.Before(now, first, endless, v, int(min(left, walked)))
	switch {
	case len(list) == 0:
		return first, first.Add(-time.Second), false
	case len(list) < walked && int64(len(list)) < left: // the rules end before that
		return first, last, false
	case int64(len(list)) == left:
		return first, list[left-1], false
	}
	t, err := n.unpaused(v.SchedulePauses).nth(left-walked, list[walked-1], v.Skips)
	switch {
	case err != nil:
		return first, list[walked-1], true
	case t.IsZero():
		return first, last, false
	}
	return first, t, false
}

// nth finds the time with that number after another time, by counting; zero: the rules end before it.
func (n *Nominal) nth(number int64, after time.Time, skips []store.Skip) (time.Time, error) {
	const year = 365 * 24 * time.Hour
	lo := after
	var hi time.Time
	for length := year; ; length = min(2*length, 100*year) { // the time is after lo
		hi = earlier(lo.Add(length), endless)
		found, err := n.counted(lo, hi, skips)
		if err != nil {
			return hi, err
		}
		if found >= number {
			break
		}
		if number -= found; hi.Equal(endless) {
			return time.Time{}, nil
		}
		lo = hi
	}
	for hi.Sub(lo) > time.Second { // and not after hi
		mid := lo.Add(hi.Sub(lo) / 2).Truncate(time.Second)
		found, err := n.counted(lo, mid, skips)
		if err != nil {
			return hi, err
		}
		if found >= number {
			hi = mid
		} else {
			number, lo = number-found, mid
		}
	}
	return hi, nil
}

// count returns how many times in (from, through] are not skipped: at most "most". It visits the times if they cannot be counted.
func (n *Nominal) count(from, through time.Time, skips []store.Skip, most int64) (int64, error) {
	found, err := n.counted(from, through, skips)
	if err == nil {
		return min(found, most), nil
	}
	for found = 0; found < most; found++ {
		if from, err = n.nextKept(from, skips); err != nil || from.IsZero() || from.After(through) {
			return found, err
		}
	}
	return found, nil
}

// counted is count without visiting the times. The error wraps rules.ErrUndecided if that is not possible: several rules may share
// times, and some rules are too complicated.
func (n *Nominal) counted(from, through time.Time, skips []store.Skip) (int64, error) {
	if len(n.rules) != 1 {
		return 0, rules.ErrUndecided
	}
	from = later(from, later(n.job.NotBefore, n.rules[0].opens).Add(-instant))
	if !n.job.NotAfter.IsZero() {
		through = earlier(through, n.job.NotAfter)
	}
	found, err := n.rules[0].Count(from, through)
	seen := map[time.Time]bool{}
	for _, k := range skips {
		if at := k.At.UTC(); err == nil && !seen[at] && at.After(from) && !at.After(through) {
			var out bool
			if out, err = n.skipped(at, skips); out {
				found--
			}
			seen[at] = true
		}
	}
	return found, err
}
