package rules

import "slices"

// ruledOut reports whether EXDATE or EXRULE removes an instant from the set. If so, it returns the instants between
// which they remove all occurrences: an answer lies outside of them. Without that, a search would visit each
// occurrence that an EXRULE removes, and use up its budget in a weekend of seconds.
func (r *Rule) ruledOut(t int64, b *budget) (from, through int64, out bool) {
	if _, found := slices.BinarySearch(r.exdates, t); found {
		return t, t, true
	}
	for i := range r.barred {
		s := &r.barred[i]
		if !s.contains(t, b) {
			continue
		}
		for j := range r.series {
			if !s.covers(&r.series[j]) {
				return t, t, true
			}
		}
		from, through = s.stretch(t)
		at, _ := slices.BinarySearch(r.rdates, t)
		if at > 0 {
			from = max(from, r.rdates[at-1]+1)
		}
		if at, _ = slices.BinarySearch(r.rdates, t+1); at < len(r.rdates) {
			through = min(through, r.rdates[at]-1)
		}
		return from, through, true
	}
	return t, t, false
}

func (s *series) contains(t int64, b *budget) bool {
	at, ok := s.next(t, b)
	return ok && at == t
}

// covers reports whether, in the hours of the days that the series admits, it has all times of another one.
func (s *series) covers(o *series) bool {
	k, g := &s.grid, &o.grid
	if len(s.pos) > 0 || g.clock.minutes&^k.clock.minutes|g.clock.secs&^k.clock.secs != 0 {
		return false
	}
	if !k.windowed() {
		return true
	}
	return s.pinned == o.pinned && g.windowed() && g.step%k.step == 0 && floorMod(g.base-k.base, k.step)+g.unit <= k.unit
}

// stretch returns the instants around one of the series that lie in hours which the series admits, all on one day, and
// in one span of the zone. It leaves out what a clock change repeats or has moved.
func (s *series) stretch(t int64) (from, through int64) {
	sp := s.z.at(t)
	list, _ := s.pieces(&sp)
	from, through = max(list[0].lo-sp.off, s.start), min(list[0].hi-sp.off-1, s.end)
	if gap := sp.off - sp.before; gap > 0 {
		from = max(from, sp.from+gap)
	}
	if t < from || t > through {
		return t, t
	}
	day, sec := splitCivil(t + sp.off)
	first, after, hours := sec/3600, sec/3600+1, s.grid.clock.hours
	for first > 0 && hours>>(first-1)&1 != 0 {
		first--
	}
	for after < 24 && hours>>after&1 != 0 {
		after++
	}
	return max(from, joinCivil(day, first*3600)-sp.off), min(through, joinCivil(day, after*3600)-sp.off-1)
}
