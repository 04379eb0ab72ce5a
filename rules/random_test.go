package rules

import (
	"math/rand/v2"
)

// randomRecur makes a valid rule that has enough occurrences.
func randomRecur(g *rand.Rand) recur {
	r := recur{freq: frequency(g.IntN(7)), interval: 1, until: noUntil}
	if g.IntN(2) == 0 {
		r.interval = 1 + g.IntN([...]int{400, 90, 30, 9, 5, 5, 3}[r.freq])
	}
	if g.IntN(3) == 0 {
		r.wkst = int8(g.IntN(7))
	}
	chance := func(n int) bool { return g.IntN(n) == 0 }
	some := func(n, low, high int) (set uint64) {
		for range 1 + g.IntN(n) {
			set |= 1 << (low + g.IntN(high-low+1))
		}
		return set
	}
	if chance(4) {
		r.months = uint16(some(6, 1, 12))
	}
	if r.freq != weekly && chance(3) {
		if r.mdays = uint32(some(5, 1, 31)); chance(2) {
			r.nmdays = uint32(some(3, 1, 31))
		}
	}
	if chance(3) {
		r.wdays = uint8(some(4, 0, 6))
	}
	if r.freq >= monthly && chance(4) {
		for range 1 + g.IntN(3) {
			n := int8(1 + g.IntN(5))
			if r.freq == yearly && chance(2) {
				n = int8(1 + g.IntN(53))
			}
			if chance(2) {
				n = -n
			}
			r.nth = append(r.nth, nthDay{n, int8(g.IntN(7))})
		}
	} else if r.freq == yearly && chance(3) {
		for range 1 + g.IntN(4) {
			n := int16(1 + g.IntN(53))
			if chance(3) {
				n = -n
			}
			r.weeks = append(r.weeks, n)
		}
	}
	if (r.freq == yearly || r.freq < daily) && chance(5) {
		for range 20 + g.IntN(60) {
			n := int16(1 + g.IntN(366))
			if chance(3) {
				n = -n
			}
			r.yeardays = append(r.yeardays, n)
		}
	}
	if chance(3) {
		r.hours = uint32(some(5, 0, 23))
		if chance(2) {
			r.hours |= uint32(some(2, 0, 4)) // the hours in which clocks change
		}
	}
	if chance(3) {
		r.minutes = some(5, 0, 59)
	}
	if chance(4) {
		r.seconds = some(3, 0, 59)
	}
	if chance(5) && (r.months != 0 || r.namesDays() || r.hours != 0 || r.minutes != 0 || r.seconds != 0) {
		for range 1 + g.IntN(3) {
			n := int16(1 + g.IntN(6))
			if chance(2) {
				n = -n
			}
			r.pos = append(r.pos, n)
		}
	}
	if r.freq >= monthly && len(r.yeardays) == 0 && chance(5) {
		r.skip = skip(1 + g.IntN(2))
	}
	return r
}
