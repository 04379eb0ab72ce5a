package rules

// BYSETPOS (RFC 5545 §3.3.10) chooses from the times of one period of the
// frequency: a year, month, week, day, hour, minute or second. Periods are
// stretches of wall time for a pinned series, and of instants for a free one;
// below, both are called time. Periods are whole, so DTSTART does not cut off the
// first one.

// period says how time is divided: by the calendar, or in fixed lengths.
type period struct {
	months int   // 12 or 1; 0 if the length is fixed
	length int64 // seconds
	base   int64
}

// bounds returns the period [lo, hi) that contains a time. For a period of the
// calendar, it also returns the number of its first month.
func (p *period) bounds(c int64) (lo, hi int64, ym int) {
	if p.months == 0 {
		lo = c - floorMod(c-p.base, p.length)
		return lo, lo + p.length, 0
	}
	day, _ := splitCivil(c)
	year, month, _ := dateOf(day)
	ym = year*12 + month - 1
	ym -= ym % p.months
	return p.monthStart(ym), p.monthStart(ym + p.months), ym
}

func (p *period) monthStart(ym int) int64 {
	return joinCivil(dayOf(ym/12, ym%12+1, 1), 0)
}

// posNext returns the first chosen time in [c, hi).
func (s *series) posNext(c, hi int64, b *budget) (int64, bool) {
	for c < hi && b.spend() {
		m, ok := s.unchosenNext(c, hi, b)
		if !ok {
			return 0, false
		}
		lo, end, ym := s.period.bounds(m)
		if at, ok := s.chosenFrom(c, lo, end, ym, b); ok && at < end {
			return at, at < hi
		}
		c = end
	}
	return 0, false
}

// posPrev returns the last chosen time in [lo, c].
func (s *series) posPrev(c, lo int64, b *budget) (int64, bool) {
	for c >= lo && b.spend() {
		m, ok := s.unchosenPrev(c, lo, b)
		if !ok {
			return 0, false
		}
		begin, end, ym := s.period.bounds(m)
		if at, ok := s.chosenUntil(c, begin, end, ym, b); ok && at >= begin {
			return at, at >= lo
		}
		c = begin - 1
	}
	return 0, false
}

// unchosenNext returns the first time of the series without BYSETPOS in [c, hi).
func (s *series) unchosenNext(c, hi int64, b *budget) (int64, bool) {
	if s.pinned {
		return s.grid.next(c, hi, 0, b)
	}
	return s.walk(c, hi, b)
}

func (s *series) unchosenPrev(c, lo int64, b *budget) (int64, bool) {
	if s.pinned {
		return s.grid.prev(c, lo, 0, b)
	}
	return s.walkBack(c, lo, b)
}

// chosenFrom returns the earliest chosen time at or after c of the period. If
// SKIP moves days out of their period, it also asks the periods beside it.
func (s *series) chosenFrom(c, lo, hi int64, ym int, b *budget) (best int64, found bool) {
	s.eachChosen(lo, hi, ym, b, func(at int64) {
		if at >= c && (!found || at < best) {
			best, found = at, true
		}
	})
	return best, found
}

// chosenUntil returns the latest chosen time at or before c of the period.
func (s *series) chosenUntil(c, lo, hi int64, ym int, b *budget) (best int64, found bool) {
	s.eachChosen(lo, hi, ym, b, func(at int64) {
		if at <= c && (!found || at > best) {
			best, found = at, true
		}
	})
	return best, found
}

func (s *series) eachChosen(lo, hi int64, ym int, b *budget, yield func(int64)) {
	if !s.moved {
		for _, n := range s.pos {
			if at, ok := s.nth(&s.grid, int(n), lo, hi, b); ok {
				yield(at)
			}
		}
		return
	}
	months := s.period.months
	for _, own := range [3]int{ym - months, ym, ym + months} {
		g := s.grid
		g.owned, g.ownFirst, g.ownAfter = true, own, own+months
		// A day moves by one day, so no time that a period owns lies farther out.
		from, to := s.period.monthStart(own)-secondsPerDay, s.period.monthStart(own+months)+secondsPerDay
		for _, n := range s.pos {
			if at, ok := s.nth(&g, int(n), from, to, b); ok && at >= lo && at < hi {
				yield(at)
			}
		}
	}
}

// nth returns the nth time of [lo, hi), counted from the end if n is negative.
// For days it uses the numbers of days, so that BYSETPOS=-366 costs no more than
// the masks of a few months. Within an hour it walks.
func (s *series) nth(g *grid, n int, lo, hi int64, b *budget) (at int64, ok bool) {
	if s.pinned && (s.period.months > 0 || s.period.length >= secondsPerDay) {
		first, _ := splitCivil(lo)
		last, _ := splitCivil(hi - 1)
		size := int(g.clock.size())
		if n > 0 {
			day, ok := g.nthDay((n-1)/size, first, last, b)
			return joinCivil(day, g.clock.nth((n-1)%size)), ok
		}
		day, ok := g.nthDayBack((-n-1)/size, first, last, b)
		return joinCivil(day, g.clock.nth(size-1-(-n-1)%size)), ok
	}
	for ; n > 0; n-- {
		if s.pinned {
			at, ok = g.next(lo, hi, 0, b)
		} else {
			at, ok = s.walk(lo, hi, b)
		}
		if !ok {
			return 0, false
		}
		lo = at + 1
	}
	for ; n < 0; n++ {
		if s.pinned {
			at, ok = g.prev(hi-1, lo, 0, b)
		} else {
			at, ok = s.walkBack(hi-1, lo, b)
		}
		if !ok {
			return 0, false
		}
		hi = at
	}
	return at, ok
}
