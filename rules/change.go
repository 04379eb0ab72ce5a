package rules

import "slices"

// met says how a rule meets a clock change.
type met struct {
	// hit: a pinned recurrence or a single date has a wall time that the change leaves out or repeats. policy is what
	// happens to that time.
	hit    bool
	policy policy

	free  bool // a recurrence is free
	lost  bool // a free one has a time that the clock passes over, and none in its place
	twice bool // a free one has a time that the clock shows twice
}

// singleDates are the single dates of a rule as wall times of its clock. The instants that they became do not show which times
// the text names.
type singleDates struct {
	walls  []int64
	odd    []int64 // those that the clock leaves out or repeats
	policy policy  // by which the odd ones were read
}

// noteDate remembers a single wall time.
func (r *Rule) noteDate(c int64) {
	r.single.walls = append(r.single.walls, c)
	if _, n := r.zone.instants(c); n != 1 {
		r.single.odd, r.single.policy = append(r.single.odd, c), r.policy
		r.single.policy.skip = false // see zone.meant
	}
}

// noteInstants remembers single dates that the text does not name by the clock of the rule.
func (r *Rule) noteInstants(list []int64) {
	for _, t := range list {
		r.single.walls = append(r.single.walls, r.zone.civil(t))
	}
}

// skips reports whether no time of the rule stands for a wall time, since the clock leaves it out. A single date does.
func (r *Rule) skips(c int64) bool {
	_, n := r.zone.instants(c)
	return n == 0 && r.policy.skip && !slices.Contains(r.single.walls, c)
}

// lostDates returns the single wall times that the clock leaves out, if days are removed or moved: their days, and the times to
// which they move, are those of the text. So the canonical text keeps them.
func (r *Rule) lostDates() (walls []int64) {
	if !r.takesDays() {
		return nil
	}
	for _, c := range r.single.odd {
		if _, n := r.zone.instants(c); n == 0 {
			walls = append(walls, c)
		}
	}
	slices.Sort(walls)
	return slices.Compact(walls)
}

// meetsChange examines the change at the end of a span.
func (r *Rule) meetsChange(s *span) (m met, err error) {
	lo, hi := s.to+min(s.off, s.after), s.to+max(s.off, s.after)
	b := budget{searchSteps}
	for c := lo; c < hi; {
		day, _ := splitCivil(c)
		end := min(hi, joinCivil(day+1, 0))
		r.meetsOn(day, c, end, s.after > s.off, &m, &b)
		c = end
	}
	for i := range r.series {
		if sr := &r.series[i]; !sr.pinned {
			lost, twice := sr.freeAround(s, lo, hi)
			m.free, m.lost, m.twice = true, m.lost || lost, m.twice || twice
		}
	}
	if b.over() {
		return met{}, ErrUndecided
	}
	return m, nil
}

// meetsOn examines the wall times [lo, hi) of one day, which a change leaves out (gap) or repeats. Those that EXDATE or EXRULE
// removes do not count. Where the calendar moves times, those count that move to the day. On a day without work, a time of the
// rule counts only if it is lost before it moves: else it takes place on another day, or not at all.
func (r *Rule) meetsOn(day int, lo, hi int64, gap bool, m *met, b *budget) {
	works := r.calendar == nil || r.calendar.works(day)
	if !works && !(r.moves() && gap && r.policy.skip) {
		return
	}
	first, last := day, day
	if works && r.moves() {
		first, last = r.sources(day)
	}
	for d := first; d <= last; d++ {
		by := joinCivil(day-d, 0)
		if r.excludesDay(d) {
			continue
		}
		tries := budget{searchSteps} // if they are used up, the times count: nobody may miss a warning
		keeps := func(c int64, p policy) bool { return r.keeps(c, p, &tries) }
		within := func(c int64) bool { return c+by >= lo && c+by < hi }
		odd := func(c int64) bool { return within(c) && keeps(c, r.single.policy) }
		if works && d == day && slices.ContainsFunc(r.single.odd, odd) {
			m.hit, m.policy = true, r.single.policy
		}
		date := func(t int64) bool { return within(r.zone.civil(t)) && keeps(r.zone.civil(t), r.policy) }
		single := d != day && slices.ContainsFunc(r.rdates, date)
		c, pinned := r.pinnedIn(lo-by, hi-by, b)
		for pinned && !keeps(c, r.policy) {
			c, pinned = r.pinnedIn(c+1, hi-by, &tries)
		}
		if single || pinned || tries.over() {
			m.hit, m.policy = true, r.policy
		}
	}
}

// keeps reports whether EXDATE and EXRULE leave one of the instants that a wall time means.
func (r *Rule) keeps(c int64, p policy, b *budget) bool {
	return slices.ContainsFunc(r.zone.meant(c, p), func(t int64) bool {
		_, out := r.ruledOut(t, 1, b)
		return !out
	})
}

// pinnedIn returns the first wall time in [lo, hi) of the recurrences that are pinned to the wall clock.
func (r *Rule) pinnedIn(lo, hi int64, b *budget) (first int64, found bool) {
	for i := range r.series {
		s := &r.series[i]
		if !s.pinned || hi+widest < s.start || lo-widest > s.end {
			continue
		}
		if c, ok := s.onWall(lo, hi, 0, b); ok {
			first, found, hi = c, true, c
		}
	}
	return first, found
}

// freeAround examines the wall times [lo, hi) that a change leaves out or repeats for a free series. If they are too many,
// it takes them for times that are neither lost nor repeated.
func (s *series) freeAround(sp *span, lo, hi int64) (lost, twice bool) {
	b := budget{searchSteps}
	if sp.after > sp.off {
		for c, ok := s.grid.next(lo, hi, sp.off, &b); ok; c, ok = s.grid.next(c+1, hi, sp.off, &b) {
			if t := c - sp.off; t >= s.start && t <= s.end && len(s.pos) == 0 && !s.contains(t, &b) {
				return !b.over(), false
			}
		}
		return false, false
	}
	for t, ok := s.next(lo-sp.off, &b); ok && t < sp.to; t, ok = s.next(t+1, &b) {
		if s.contains(t+hi-lo, &b) {
			return false, true
		}
	}
	return false, false
}

// remark says in words what happens to the wall times that a change leaves out or repeats.
func (m *met) remark(gap bool) string {
	_, ambiguous := m.policy.names()
	switch {
	case m.hit && gap && m.policy.skip:
		return "times that the change leaves out are skipped"
	case m.hit && gap:
		return "times that the change leaves out move forward by its length"
	case m.hit && ambiguous == "both":
		return "times that exist twice fire twice"
	case m.hit:
		return "times that exist twice fire once, at the " + ambiguous
	case m.lost:
		return "times that the change leaves out do not run"
	case m.free && gap:
		return "the rule follows elapsed time, so it loses nothing"
	case m.twice:
		return "the rule follows elapsed time, so repeated times fire twice"
	case m.free:
		return "the rule follows elapsed time, so it repeats nothing"
	}
	return "the rule has no time that the change leaves out or repeats"
}
