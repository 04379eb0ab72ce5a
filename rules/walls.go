package rules

import "slices"

// stretch is a range of instants [from, to) in which a clock shows the wall times t+off. After a gap, for as long as the gap
// was, a rule may name others for the same instants, which the gap left out: t+lost. Elsewhere, lost is off.
type stretch struct{ from, to, lost, off int64 }

// stretchAt returns the stretch that contains an instant, by the clock to which the days of the rule belong.
func (r *Rule) stretchAt(t int64) stretch {
	sp := r.days().at(t)
	end := sp.from + sp.off - sp.before
	switch {
	case r.zone == utc || sp.before >= sp.off || r.policy.skip && len(r.single.odd) == 0:
		return stretch{sp.from, sp.to, sp.off, sp.off}
	case t < end:
		return stretch{sp.from, min(sp.to, end), sp.before, sp.off}
	}
	return stretch{end, sp.to, sp.off, sp.off}
}

// days returns the first and the last day to which the wall times of an instant may belong.
func (s *stretch) days(t int64) (first, last int) {
	first, _ = splitCivil(t + s.lost)
	last, _ = splitCivil(t + s.off)
	return first, last
}

// walls returns the wall times for which an occurrence stands: the time that the
// clock shows or, after a gap, the time that the rule names and the clock left
// out. They are both if the rule names both.
func (r *Rule) walls(x int64) (list [2]int64, n int) {
	s := r.stretchAt(x)
	if s.lost == s.off {
		list[0] = x + s.off
		return list, 1
	}
	for _, w := range [2]int64{x + s.lost, x + s.off} {
		if r.names(w, r.policy.skip && w == x+s.lost) || w == x+s.off && r.freeAt(x) {
			list[n] = w
			n++
		}
	}
	if n == 0 {
		list[0], n = x+s.off, 1
	}
	return list, n
}

// names reports whether a single date has a wall time or, unless such times are
// skipped, a recurrence that is pinned to the wall clock.
func (r *Rule) names(c int64, skipped bool) bool {
	if single := slices.Contains(r.single.walls, c); single || skipped {
		return single
	}
	b := budget{searchSteps}
	_, pinned := r.pinnedIn(c, c+1, &b)
	return pinned
}

// freeAt reports whether a recurrence that follows elapsed time has an instant.
func (r *Rule) freeAt(x int64) bool {
	b := budget{searchSteps}
	for i := range r.series {
		if s := &r.series[i]; !s.pinned && s.contains(x, &b) {
			return true
		}
	}
	return false
}
