package rules

import "math/bits"

// budget limits the work of one call. Every loop of the engine that has no small
// constant limit spends one step on each turn, and gives up when no step is left.
// The caller that made the budget then reports ErrUndecided.
type budget struct{ left int }

const (
	// A step costs 10-100 ns. A rule that fires spends a few steps. A rule that
	// would need more steps than this is refused when it is parsed.
	searchSteps = 100_000
	// The search for the end of a COUNT, and the proof that a rule never fires,
	// happen once, when a rule is parsed; they may walk occurrences.
	proofSteps = 400_000
	// All recurrences of a text together may cost this much to parse, however many
	// they are: it is enough for one that needs all of the above.
	parseSteps = 2_000_000
	// Count may walk occurrences, too, if it cannot compute.
	countSteps = 2_000_000
)

func (b *budget) spend() bool {
	b.left--
	return b.left >= 0
}

func (b *budget) over() bool { return b.left < 0 }

// charge takes what a part of the work, which had n steps, has spent.
func (b *budget) charge(n int, part *budget) { b.left -= n - part.left }

// grid is one recurrence without zone, BYSETPOS, COUNT and UNTIL. It has the
// civil times whose day is admitted by one of the filters, whose second of the
// day is in the clock, and that lie in a window. Windows represent INTERVAL for
// the frequencies of fixed length: unit seconds every step seconds, counted from
// base.
type grid struct {
	allDays    bool
	days       []dayFilter
	clock      clock
	unit, step int64
	base       int64

	// Limits the days to those that these months own; see dayFilter.shift.
	owned              bool
	ownFirst, ownAfter int
}

func (g *grid) windowed() bool { return g.step > g.unit }

// month returns the admitted days of a month, bit n for day n.
func (g *grid) month(ym int) (set uint32) {
	for i := range g.days {
		f := &g.days[i]
		if g.owned && (ym+f.shift < g.ownFirst || ym+f.shift >= g.ownAfter) {
			continue
		}
		set |= f.days(ym)
	}
	return set
}

// seek returns the nearest month, in the direction dir, that a filter may admit.
func (g *grid) seek(ym, dir int) int {
	best := g.days[0].seek(ym, dir)
	for i := 1; i < len(g.days); i++ {
		if m := g.days[i].seek(ym, dir); (m < best) == (dir > 0) {
			best = m
		}
	}
	return best
}

const noDay = 1 << 40

// dayFrom returns the first admitted day in [day, last], or noDay.
func (g *grid) dayFrom(day, last int, b *budget) int {
	if g.allDays {
		if day > last {
			return noDay
		}
		return day
	}
	year, month, mday := dateOf(day)
	ym := year*12 + month - 1
	set := g.month(ym) >> mday << mday
	begin := day - mday // the day before the first of the month
	for set == 0 {
		ym = g.seek(ym+1, +1)
		if ym >= noMonth || !b.spend() {
			return noDay
		}
		if begin = dayOf(ym/12, ym%12+1, 1) - 1; begin >= last {
			return noDay
		}
		set = g.month(ym)
	}
	if found := begin + bits.TrailingZeros32(set); found <= last {
		return found
	}
	return noDay
}

// dayUntil returns the last admitted day in [first, day], or -noDay.
func (g *grid) dayUntil(day, first int, b *budget) int {
	if g.allDays {
		if day < first {
			return -noDay
		}
		return day
	}
	year, month, mday := dateOf(day)
	ym := year*12 + month - 1
	set := g.month(ym) & (2<<mday - 1)
	begin := day - mday
	for set == 0 {
		ym = g.seek(ym-1, -1)
		if ym < firstYear*12 || !b.spend() {
			return -noDay
		}
		begin = dayOf(ym/12, ym%12+1, 1) - 1
		if begin+31 < first {
			return -noDay
		}
		set = g.month(ym)
	}
	if found := begin + bits.Len32(set) - 1; found >= first {
		return found
	}
	return -noDay
}

// nthDay returns the admitted day that has n other admitted days before it in
// [first, last].
func (g *grid) nthDay(n, first, last int, b *budget) (int, bool) {
	for first <= last && b.spend() {
		year, month, mday := dateOf(first)
		set, begin, length := uint32(1)<<(daysInMonth(year, month)+1)-2, first-mday, daysInMonth(year, month)
		if !g.allDays {
			set = g.month(year*12 + month - 1)
		}
		set &= dayRange(mday, min(31, last-begin))
		if have := bits.OnesCount32(set); n >= have {
			n, first = n-have, begin+length+1
			continue
		}
		for ; n > 0; n-- {
			set &= set - 1
		}
		return begin + bits.TrailingZeros32(set), true
	}
	return 0, false
}

// nthDayBack returns the admitted day that has n other admitted days after it in
// [first, last].
func (g *grid) nthDayBack(n, first, last int, b *budget) (int, bool) {
	for first <= last && b.spend() {
		year, month, mday := dateOf(last)
		set, begin := uint32(1)<<(mday+1)-2, last-mday
		if !g.allDays {
			set &= g.month(year*12 + month - 1)
		}
		set &= dayRange(max(1, first-begin), 31)
		if have := bits.OnesCount32(set); n >= have {
			n, last = n-have, begin
			continue
		}
		for ; n > 0; n-- {
			set &^= 1 << (bits.Len32(set) - 1)
		}
		return begin + bits.Len32(set) - 1, true
	}
	return 0, false
}

// matchFrom returns the first time in [c, hi) that days and clock admit.
func (g *grid) matchFrom(c, hi int64, b *budget) (int64, bool) {
	day, sec := splitCivil(c)
	last, _ := splitCivil(hi - 1)
	for range 2 {
		found := g.dayFrom(day, last, b)
		if found == noDay {
			return 0, false
		}
		if found > day {
			sec = 0
		}
		if s := g.clock.next(sec); s >= 0 {
			at := joinCivil(found, s)
			return at, at < hi
		}
		day, sec = found+1, 0
	}
	return 0, false
}

// matchUntil returns the last time in [lo, c] that days and clock admit.
func (g *grid) matchUntil(c, lo int64, b *budget) (int64, bool) {
	day, sec := splitCivil(c)
	first, _ := splitCivil(lo)
	for range 2 {
		found := g.dayUntil(day, first, b)
		if found == -noDay {
			return 0, false
		}
		if found < day {
			sec = secondsPerDay - 1
		}
		if s := g.clock.prev(sec); s >= 0 {
			at := joinCivil(found, s)
			return at, at >= lo
		}
		day, sec = found-1, secondsPerDay-1
	}
	return 0, false
}

// futile is the number of hops between matches and windows after which it is
// worth checking whether the two can meet at all.
const futile = 64

// next returns the first time of the grid in [c, hi). off is added to base: it is
// for windows that count elapsed time while the caller asks on the clock of an
// offset.
func (g *grid) next(c, hi, off int64, b *budget) (int64, bool) {
	for hops := 0; c < hi && b.spend(); hops++ {
		m, ok := g.matchFrom(c, hi, b)
		if !ok || !g.windowed() {
			return m, ok
		}
		k := floorMod(m-g.base-off, g.step)
		if k < g.unit {
			return m, true
		}
		if c = m + g.step - k; hops == futile && !g.meets(off) {
			return 0, false
		}
	}
	return 0, false
}

// prev returns the last time of the grid in [lo, c].
func (g *grid) prev(c, lo, off int64, b *budget) (int64, bool) {
	for hops := 0; c >= lo && b.spend(); hops++ {
		m, ok := g.matchUntil(c, lo, b)
		if !ok || !g.windowed() {
			return m, ok
		}
		k := floorMod(m-g.base-off, g.step)
		if k < g.unit {
			return m, true
		}
		if c = m - k + g.unit - 1; hops == futile && !g.meets(off) {
			return 0, false
		}
	}
	return 0, false
}

// meets reports whether any second of the clock can lie in a window. It compares
// the two modulo the common divisor of the window distance and the day.
func (g *grid) meets(off int64) bool {
	common := gcd(g.step, secondsPerDay)
	if g.unit >= common {
		return true
	}
	base := floorMod(g.base+off, common)
	if g.unit == 1 {
		return g.clock.hits(base, common)
	}
	for s := range g.unit {
		if g.clock.hits(base+s, common) {
			return true
		}
	}
	return false
}
