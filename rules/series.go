package rules

// series is one recurrence in a zone: a grid of wall times that becomes instants,
// limited by start and end.
//
// A pinned series reads its grid on the wall clock: a time in a gap moves forward
// or is left out, and a time in a fold is read as the policy says. The others are
// free: every instant at which the wall clock shows a time of the grid belongs to
// them, and their windows count elapsed time.
type series struct {
	z          *zone
	policy     policy
	pinned     bool
	grid       grid
	start, end int64 // instants, both included; end lies past the calendar if nothing ends the series

	pos    []int16 // BYSETPOS; empty if there is none
	period period
	most   int64 // an upper limit for the times of a period
	moved  bool  // whether RFC 7529 SKIP moves days between periods
}

const (
	firstInstant = firstCivil - 2*secondsPerDay
	endInstant   = endCivil + 2*secondsPerDay
)

// piece is a range [lo, hi) of wall time that a span reads as the instants c-off.
type piece struct{ lo, hi, off int64 }

// pieces returns the wall times of a series that a span contains: those that the
// span owns and, after a gap, those that fell into the gap and were moved
// forward.
func (s *series) pieces(sp *span) (list [2]piece, n int) {
	lo, hi := max(sp.from, firstInstant)+sp.off, min(sp.to, endInstant)+sp.off
	if !s.pinned {
		list[0] = piece{lo, hi, sp.off}
		return list, 1
	}
	if sp.before > sp.off && !s.policy.last {
		lo = sp.from + sp.before // the first reading of the fold was the chosen one
	}
	if sp.after < sp.off && !s.policy.first {
		hi = sp.to + sp.after // the second reading of the fold will be the chosen one
	}
	list[0] = piece{max(lo, firstCivil), min(hi, endCivil), sp.off}
	if sp.before < sp.off && !s.policy.skip {
		list[1] = piece{sp.from + sp.before, min(sp.from+sp.off, sp.to+sp.before), sp.before}
		return list, 2
	}
	return list, 1
}

// next returns the first instant of the series at or after t.
func (s *series) next(t int64, b *budget) (int64, bool) {
	if t = max(t, s.start); t > s.end {
		return 0, false
	}
	var at int64
	var ok bool
	if len(s.pos) > 0 && !s.pinned {
		at, ok = s.posNext(t, endInstant, b)
	} else {
		at, ok = s.walk(t, s.end+1, b)
	}
	return at, ok && at <= s.end
}

// prev returns the last instant of the series at or before t.
func (s *series) prev(t int64, b *budget) (int64, bool) {
	if t = min(t, s.end); t < s.start {
		return 0, false
	}
	var at int64
	var ok bool
	if len(s.pos) > 0 && !s.pinned {
		at, ok = s.posPrev(t, firstInstant, b)
	} else {
		at, ok = s.walkBack(t, s.start, b)
	}
	return at, ok && at >= s.start
}

// walk goes from span to span and returns the first instant in [t, hi). For a
// free series it ignores BYSETPOS.
func (s *series) walk(t, hi int64, b *budget) (int64, bool) {
	hi = min(hi, endInstant)
	for t < hi && b.spend() {
		sp := s.z.at(t)
		list, n := s.pieces(&sp)
		best, found := hi, false
		for _, p := range list[:n] {
			c, ok := s.onWall(max(t+p.off, p.lo), min(p.hi, hi+p.off), p.off, b)
			if ok && c-p.off < best {
				best, found = c-p.off, true
			}
		}
		if found {
			return best, true
		}
		var ok bool
		if t, ok = s.leap(sp.to, b); !ok {
			return 0, false
		}
	}
	return 0, false
}

// widest is larger than any offset that a zone has ever had, in seconds.
const widest = 16 * 3600

// leap skips spans that cannot contain an instant of the series: it returns a
// time at or after t before which there is no such instant. It returns false if
// there is none at all.
func (s *series) leap(t int64, b *budget) (int64, bool) {
	if g := &s.grid; !s.pinned && g.windowed() {
		if k := floorMod(t-g.base, g.step); k >= g.unit {
			t += g.step - k
		}
	}
	c, hi := max(t-widest, firstCivil), min(endCivil, s.end+widest)
	if c >= hi {
		return 0, false
	}
	var ok bool
	if s.pinned {
		c, ok = s.onWall(c, hi, 0, b)
	} else {
		c, ok = s.grid.matchFrom(c, hi, b)
	}
	return max(t, c-widest), ok
}

// walkBack is walk in the other direction: the last instant in [lo, t].
func (s *series) walkBack(t, lo int64, b *budget) (int64, bool) {
	lo = max(lo, firstInstant)
	for t = min(t, endInstant-1); t >= lo && b.spend(); {
		sp := s.z.at(t)
		list, n := s.pieces(&sp)
		best, found := lo-1, false
		for _, p := range list[:n] {
			c, ok := s.onWallBack(min(t+p.off, p.hi-1), max(p.lo, lo+p.off), p.off, b)
			if ok && c-p.off > best {
				best, found = c-p.off, true
			}
		}
		if found {
			return best, true
		}
		var ok bool
		if t, ok = s.leapBack(sp.from-1, b); !ok {
			return 0, false
		}
	}
	return 0, false
}

// leapBack is leap in the other direction.
func (s *series) leapBack(t int64, b *budget) (int64, bool) {
	if g := &s.grid; !s.pinned && g.windowed() {
		if k := floorMod(t-g.base, g.step); k >= g.unit {
			t -= k - g.unit + 1
		}
	}
	c, lo := min(t+widest, endCivil-1), max(firstCivil, s.start-widest)
	if c < lo {
		return 0, false
	}
	var ok bool
	if s.pinned {
		c, ok = s.onWallBack(c, lo, 0, b)
	} else {
		c, ok = s.grid.matchUntil(c, lo, b)
	}
	return min(t, c+widest), ok
}

// onWall returns the first wall time of the series in [c, hi).
func (s *series) onWall(c, hi, off int64, b *budget) (int64, bool) {
	switch {
	case c >= hi:
		return 0, false
	case !s.pinned:
		return s.grid.next(c, hi, off, b)
	case len(s.pos) > 0:
		return s.posNext(c, hi, b)
	}
	return s.grid.next(c, hi, 0, b)
}

// onWallBack returns the last wall time of the series in [lo, c].
func (s *series) onWallBack(c, lo, off int64, b *budget) (int64, bool) {
	switch {
	case c < lo:
		return 0, false
	case !s.pinned:
		return s.grid.prev(c, lo, off, b)
	case len(s.pos) > 0:
		return s.posPrev(c, lo, b)
	}
	return s.grid.prev(c, lo, 0, b)
}
