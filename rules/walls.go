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
	case r.zone == utc || sp.before >= sp.off || !r.namesLost():
		return stretch{sp.from, sp.to, sp.off, sp.off}
	case t < end:
		return stretch{sp.from, min(sp.to, end), sp.before, sp.off}
	}
	return stretch{end, sp.to, sp.off, sp.off}
}

// namesLost reports whether an occurrence may stand for a wall time that a gap left out.
func (r *Rule) namesLost() bool {
	pinned := func(s series) bool { return s.pinned }
	return len(r.single.odd) > 0 || !r.policy.skip && slices.ContainsFunc(r.series, pinned)
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

// evenPart is a range of instants [from, to) whose wall times all move to another day in the same way. Those of one of these
// instants would move to the instants at, if they are wall times of that day, and the rule names them. Those of a later
// instant move to later ones, by the same distance.
type evenPart struct {
	from, to int64
	at       [4]int64
	n        int
}

// evenly returns the even part around an instant, for the wall times of a day that move to another one.
func (r *Rule) evenly(x int64, day, to int) evenPart {
	z, s, by := r.days(), r.stretchAt(x), joinCivil(to-day, 0)
	part := evenPart{from: s.from, to: s.to}
	for i, off := range [2]int64{s.off, s.lost} {
		if i > 0 && s.lost == s.off {
			break
		}
		d, sec := splitCivil(x + off)
		part.from, part.to = max(part.from, x-int64(sec)), min(part.to, x-int64(sec)+secondsPerDay)
		switch {
		case d != day:
		case by == 0:
			part.at[0], part.n = x, 1
		default:
			before, after := z.even(x + off + by)
			part.from, part.to = max(part.from, x-before), min(part.to, x+after)
			at, n := r.movedWall(x + off + by)
			part.n += copy(part.at[part.n:], at[:n])
		}
	}
	return part
}

// even returns how many seconds before a wall time, and after it, the clock begins or ends to leave out or to repeat wall
// times: between, all have as many instants. It looks at one day before and after.
func (z *zone) even(c int64) (before, after int64) {
	before, after = secondsPerDay, secondsPerDay
	for s := z.at(c - widest - secondsPerDay); s.to < c+widest+secondsPerDay; s = z.at(s.to) {
		for _, edge := range [2]int64{s.to + s.off, s.to + s.after} {
			if edge <= c {
				before = min(before, c-edge)
			} else {
				after = min(after, edge-c)
			}
		}
	}
	return before, after
}
