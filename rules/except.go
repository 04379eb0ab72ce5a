package rules

import "slices"

// ruledOut reports whether EXDATE or EXRULE removes an instant from the set. If so, it returns the last instant in a
// direction, 1 or -1, up to which they remove all occurrences: an answer lies beyond it. Without that, a search would
// visit each occurrence that an EXRULE removes, and use up its budget in a weekend of seconds.
func (r *Rule) ruledOut(t, dir int64, b *budget) (through int64, out bool) {
	if _, found := slices.BinarySearch(r.exdates, t); found {
		return t, true
	}
	for i := range r.barred {
		if s := &r.barred[i]; s.contains(t, b) {
			return r.removedThrough(s, t, dir, b), true
		}
	}
	return t, false
}

// removedThrough returns the last instant in a direction up to which an EXRULE, which removes the instant t, removes all
// occurrences. The times of a recurrence that it does not cover bound it, as RDATEs do.
func (r *Rule) removedThrough(s *series, t, dir int64, b *budget) int64 {
	covered := len(r.series) == 0
	for i := range r.series {
		covered = covered || s.covers(&r.series[i])
	}
	if !covered {
		return t
	}
	from, through := s.stretch(t)
	for i := range r.series {
		o := &r.series[i]
		if s.covers(o) {
			continue
		}
		if dir < 0 {
			if at, ok := o.prev(t-1, b); ok {
				from = max(from, at+1)
			}
		} else if at, ok := o.next(t+1, b); ok {
			through = min(through, at-1)
		}
	}
	if dir < 0 {
		if at, _ := slices.BinarySearch(r.rdates, t); at > 0 {
			from = max(from, r.rdates[at-1]+1)
		}
		return from
	}
	if at, _ := slices.BinarySearch(r.rdates, t+1); at < len(r.rdates) {
		through = min(through, r.rdates[at]-1)
	}
	return through
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
	if !k.windowed() || k.unit >= secondsPerDay { // no window begins or ends within a day
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
