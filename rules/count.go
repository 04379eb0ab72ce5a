package rules

import (
	"math/bits"
	"slices"
	"time"
)

// Count returns the number of occurrences in (from, to]. For one recurrence with
// single dates, it computes the number from the number of days and visits no
// occurrences: a year of a secondly rule costs microseconds. For several
// recurrences that overlap, and for BYSETPOS, it visits each occurrence. If there
// are too many to visit, the error wraps ErrUndecided.
func (r *Rule) Count(from, to time.Time) (int64, error) {
	b := budget{countSteps}
	n := r.count(floor(from)+1, floor(to), &b)
	if b.over() {
		return 0, ErrUndecided
	}
	return n, nil
}

// count counts the occurrences in [lo, hi].
func (r *Rule) count(lo, hi int64, b *budget) (n int64) {
	lo, hi = max(lo, firstHeld), min(hi, lastHeld)
	if len(r.series) > 1 || len(r.barred) > 0 || r.takesDays() {
		for {
			at, ok := r.next(lo, b)
			if !ok || at > hi {
				return n
			}
			n, lo = n+1, at+1
		}
	}
	if len(r.series) == 1 {
		n = r.series[0].count(lo, hi, b)
	}
	within := func(list []int64) []int64 {
		i, _ := slices.BinarySearch(list, lo)
		j, _ := slices.BinarySearch(list, hi+1)
		return list[i:max(i, j)]
	}
	recurs := func(t int64) bool { return len(r.series) == 1 && r.series[0].contains(t, b) }
	for _, t := range within(r.rdates) {
		if !recurs(t) {
			n++
		}
	}
	for _, t := range within(r.exdates) {
		if _, given := slices.BinarySearch(r.rdates, t); given || recurs(t) {
			n--
		}
	}
	return n
}

// count counts the instants of the series in [lo, hi].
func (s *series) count(lo, hi int64, b *budget) (n int64) {
	if len(s.pos) == 0 {
		c := counter{grid: &s.grid}
		return c.series(s, lo, hi, b)
	}
	for lo <= hi {
		at, ok := s.next(lo, b)
		if !ok || at > hi {
			break
		}
		n, lo = n+1, at+1
	}
	return n
}

// series counts the instants of a series without BYSETPOS in [lo, hi].
func (k *counter) series(s *series, lo, hi int64, b *budget) (n int64) {
	lo, hi = max(lo, s.start, firstInstant), min(hi, s.end, endInstant-1)
	for lo <= hi && b.spend() {
		sp := s.z.at(lo)
		n += k.span(s, &sp, lo, min(hi+1, sp.to), b)
		lo = sp.to
	}
	return n
}

// span counts the instants in [lo, hi) of one span. A time that is moved
// forward out of a gap may fall on another time of the series; the two count
// once.
func (k *counter) span(s *series, sp *span, lo, hi int64, b *budget) int64 {
	list, pieces := s.pieces(sp)
	within := func(p piece) (from, to int64) {
		from, to = max(lo+p.off, p.lo), min(hi+p.off, p.hi)
		return from, max(from, to)
	}
	from, to := within(list[0])
	off := int64(0)
	if !s.pinned {
		off = sp.off
	}
	n := k.count(from, to, off, b)
	if pieces < 2 {
		return n
	}
	from, to = within(list[1])
	moved := k.count(from, to, off, b)
	for c, left := from, moved; left > 0 && b.spend(); left-- {
		at, ok := k.next(c, to, off, b)
		if !ok {
			break
		}
		same := at - list[1].off + list[0].off
		if twin, ok := k.next(same, same+1, off, b); ok && twin == same && same >= list[0].lo && same < list[0].hi {
			moved--
		}
		c = at + 1
	}
	return n + moved
}

// maxMemo is the longest cycle of days whose counts are remembered.
const maxMemo = 8192

// counter counts a grid by days. If windows cut days, the count of a day depends
// on its place in the cycle after which windows and days line up again. The
// counter remembers that count (plus one) for each place, separately for each
// offset.
type counter struct {
	*grid
	off   int64
	memo  []int64
	memos map[int64][]int64
}

// count counts the times of the grid in [lo, hi); see grid.next for off.
func (k *counter) count(lo, hi, off int64, b *budget) (n int64) {
	if lo >= hi {
		return 0
	}
	k.turnTo(off)
	day, sec := splitCivil(lo)
	last, until := splitCivil(hi)
	if sec > 0 {
		stop := secondsPerDay
		if day == last {
			stop = until
		}
		if k.dayFrom(day, day, b) == day {
			n += k.part(day, sec, stop, b)
		}
		day++
	}
	n += k.days(day, last, b)
	if day <= last && until > 0 && k.dayFrom(last, last, b) == last {
		n += k.part(last, 0, until, b)
	}
	return n
}

// turnTo prepares the counter for windows at an offset.
func (k *counter) turnTo(off int64) {
	if k.off = off; !k.windowed() {
		return
	}
	cycle := k.step / gcd(k.step, secondsPerDay)
	if cycle > maxMemo {
		return
	}
	if k.memos == nil {
		k.memos = make(map[int64][]int64, 2)
	}
	if k.memo = k.memos[off]; k.memo == nil {
		k.memo = make([]int64, cycle)
		k.memos[off] = k.memo
	}
}

// days counts the whole days first..after-1.
func (k *counter) days(first, after int, b *budget) (n int64) {
	switch {
	case first >= after:
		return 0
	case k.allDays && !k.windowed():
		return int64(after-first) * k.clock.size()
	case k.unit < secondsPerDay && k.step >= 2*secondsPerDay:
		return k.sparse(joinCivil(first, 0), joinCivil(after, 0), b)
	case k.unit >= secondsPerDay && k.windowed():
		return k.wholeDays(first, after, b)
	}
	return k.byMonth(first, after, !k.windowed(), b)
}

// wholeDays counts day by day or week by week, in windows that do not cut days.
func (k *counter) wholeDays(first, after int, b *budget) (n int64) {
	lo, hi := joinCivil(first, 0), joinCivil(after, 0)
	for w := lo - floorMod(lo-k.base-k.off, k.step); w < hi && b.spend(); w += k.step {
		from, _ := splitCivil(max(w, lo))
		to, _ := splitCivil(min(w+k.unit, hi))
		n += k.byMonth(from, to, true, b)
	}
	return n
}

// byMonth counts the days first..after-1, either whole days or days that windows
// cut.
func (k *counter) byMonth(first, after int, whole bool, b *budget) (n int64) {
	for first < after && b.spend() {
		year, month, mday := dateOf(first)
		length := daysInMonth(year, month)
		set := uint32(1)<<(length+1) - 2
		if !k.allDays {
			set = k.month(year*12 + month - 1)
		}
		begin := first - mday
		set &= dayRange(mday, min(31, after-1-begin))
		if whole {
			n += int64(bits.OnesCount32(set)) * k.clock.size()
		} else {
			for ; set != 0 && !b.over(); set &= set - 1 {
				n += k.day(begin+bits.TrailingZeros32(set), b)
			}
		}
		first = begin + length + 1
	}
	return n
}

// sparse counts window by window. It is for windows that do not meet most days.
func (k *counter) sparse(lo, hi int64, b *budget) (n int64) {
	for lo < hi {
		m, ok := k.next(lo, hi, k.off, b)
		if !ok {
			break
		}
		day, sec := splitCivil(m)
		stop := min(m-floorMod(m-k.base-k.off, k.step)+k.unit, joinCivil(day+1, 0), hi)
		n += k.clock.rank(int(stop-joinCivil(day, 0))) - k.clock.rank(sec)
		lo = stop
	}
	return n
}

// day counts a whole day.
func (k *counter) day(day int, b *budget) int64 {
	if k.memo == nil {
		return k.part(day, 0, secondsPerDay, b)
	}
	b.left--
	at := &k.memo[floorMod(int64(day), int64(len(k.memo)))]
	if *at == 0 {
		*at = k.part(day, 0, secondsPerDay, b) + 1
	}
	return *at - 1
}

// part counts the seconds [from, to) of an admitted day.
func (k *counter) part(day, from, to int, b *budget) (n int64) {
	if !k.windowed() {
		return k.clock.rank(to) - k.clock.rank(from)
	}
	midnight := joinCivil(day, 0)
	lo, hi := midnight+int64(from), midnight+int64(to)
	for w := lo - floorMod(lo-k.base-k.off, k.step); w < hi && b.spend(); w += k.step {
		start, stop := max(w, lo), min(w+k.unit, hi)
		if start < stop {
			n += k.clock.rank(int(stop-midnight)) - k.clock.rank(int(start-midnight))
		}
	}
	return n
}

// countAfter lets the COUNTs of a rule that begins at its creation, made, count the times after it: a job owes no other. The
// canonical text, whose DTSTART is the creation, counts from there, so its COUNTs are larger. A creation that is zero is the beginning
// of the rule. One in the first pass of a fold comes before the beginning, where the policy reads it as a time of the last pass.
func (r *Rule) countAfter(made time.Time) {
	r.past = map[*recur]int{}
	b := budget{searchSteps} // a rule that uses it up has no time near that moment
	for _, list := range [2][]recur{r.includes, r.excludes} {
		for i := range list {
			c := &list[i]
			if c.count == 0 {
				continue
			}
			s := compile(c, r.zone, r.policy, r.start)
			most := int64(partBounds["COUNT"].high - c.count)
			until := floor(made)
			if made.IsZero() {
				until = s.start
			}
			past := int(min(s.count(s.start, until, &b), most))
			c.count += past
			r.past[c] = past
		}
	}
}

// countEnd finds the instant of the nth occurrence, which ends the series. For a
// small n it walks; for a large one it counts and bisects.
func (s *series) countEnd(n int64, all *budget) (int64, error) {
	b := budget{proofSteps}
	defer all.charge(proofSteps, &b)
	if n <= 64 || len(s.pos) > 0 {
		for t := s.start; ; {
			at, ok := s.next(t, &b)
			if !ok {
				return s.lastOf(&b)
			}
			if n--; n == 0 {
				return at, nil
			}
			t = at + 1
		}
	}
	if years := (endCivil-s.start)/(365*secondsPerDay) + 1; n/366/s.grid.clock.size() > years {
		return s.lastOf(&b) // the calendar ends before n occurrences
	}
	if g := &s.grid; g.windowed() && g.unit == 1 && n > (endInstant-s.start)/g.step+1 {
		return s.lastOf(&b)
	} else if g.windowed() && g.unit == 1 && g.allDays && g.clock.size() == secondsPerDay && !s.pinned {
		return s.start + (n-1)*g.step, nil // elapsed time, and nothing else
	}
	k := counter{grid: &s.grid}
	lo, hi := s.start, int64(0) // n occurrences are still to come at or after lo
	for length := int64(secondsPerDay); hi == 0; length *= 2 {
		end := min(lo+length, endInstant)
		if have := k.series(s, lo, end, &b); have >= n {
			hi = end
		} else if end == endInstant || b.over() {
			return s.lastOf(&b)
		} else {
			n, lo = n-have, end+1
		}
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if have := k.series(s, lo, mid, &b); have >= n {
			hi = mid
		} else {
			n, lo = n-have, mid+1
		}
	}
	if b.over() {
		return 0, ErrUndecided
	}
	return lo, nil
}

// lastOf returns the end of a series that has fewer occurrences than its COUNT.
func (s *series) lastOf(b *budget) (int64, error) {
	if b.over() {
		return 0, ErrUndecided
	}
	return endCivil - 1, nil
}
