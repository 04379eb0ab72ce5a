package rules

import "math/bits"

const (
	allHours   = 1<<24 - 1
	allSixties = 1<<60 - 1
)

// clock is the set of seconds of a day at which a rule may fire: every
// combination of its hours, minutes and seconds. A bit stands for a value.
type clock struct {
	hours         uint32
	minutes, secs uint64
}

// next returns the first second of the day at or after sec, or -1.
func (k *clock) next(sec int) int {
	h, m, s := sec/3600, sec/60%60, sec%60
	if k.hours>>h&1 != 0 {
		if k.minutes>>m&1 != 0 {
			if rest := k.secs >> s; rest != 0 {
				return sec + bits.TrailingZeros64(rest)
			}
		}
		if rest := k.minutes >> (m + 1); rest != 0 {
			return h*3600 + (m+1+bits.TrailingZeros64(rest))*60 + bits.TrailingZeros64(k.secs)
		}
	}
	rest := k.hours >> (h + 1)
	if rest == 0 {
		return -1
	}
	return (h+1+bits.TrailingZeros32(rest))*3600 + bits.TrailingZeros64(k.minutes)*60 + bits.TrailingZeros64(k.secs)
}

// prev returns the last second of the day at or before sec, or -1.
func (k *clock) prev(sec int) int {
	h, m, s := sec/3600, sec/60%60, sec%60
	if k.hours>>h&1 != 0 {
		if k.minutes>>m&1 != 0 {
			if rest := k.secs & (2<<s - 1); rest != 0 {
				return h*3600 + m*60 + bits.Len64(rest) - 1
			}
		}
		if rest := k.minutes & (1<<m - 1); rest != 0 {
			return h*3600 + (bits.Len64(rest)-1)*60 + bits.Len64(k.secs) - 1
		}
	}
	rest := k.hours & (1<<h - 1)
	if rest == 0 {
		return -1
	}
	return (bits.Len32(rest)-1)*3600 + (bits.Len64(k.minutes)-1)*60 + bits.Len64(k.secs) - 1
}

// size is the number of seconds of a day in the set.
func (k *clock) size() int64 {
	return int64(bits.OnesCount32(k.hours) * bits.OnesCount64(k.minutes) * bits.OnesCount64(k.secs))
}

// nth returns the second of the set that has n others before it; 0 <= n < size.
func (k *clock) nth(n int) int {
	perMinute := bits.OnesCount64(k.secs)
	perHour := perMinute * bits.OnesCount64(k.minutes)
	return nthBit(uint64(k.hours), n/perHour)*3600 + nthBit(k.minutes, n%perHour/perMinute)*60 + nthBit(k.secs, n%perMinute)
}

func nthBit(set uint64, n int) int {
	for ; n > 0; n-- {
		set &= set - 1
	}
	return bits.TrailingZeros64(set)
}

// rank is the number of seconds in the set before sec, which may be 86400.
func (k *clock) rank(sec int) int64 {
	h, m, s := sec/3600, sec/60%60, sec%60
	perMinute := bits.OnesCount64(k.secs)
	perHour := perMinute * bits.OnesCount64(k.minutes)
	n := bits.OnesCount32(k.hours&(1<<h-1)) * perHour
	if k.hours>>h&1 != 0 {
		n += bits.OnesCount64(k.minutes&(1<<m-1)) * perMinute
		if k.minutes>>m&1 != 0 {
			n += bits.OnesCount64(k.secs & (1<<s - 1))
		}
	}
	return int64(n)
}

// hits reports whether a second of the set is congruent to want modulo g,
// where g divides 86400.
func (k *clock) hits(want, g int64) bool {
	for hs := k.hours; hs != 0; hs &= hs - 1 {
		for ms := k.minutes; ms != 0; ms &= ms - 1 {
			at := int64(bits.TrailingZeros32(hs)*3600 + bits.TrailingZeros64(ms)*60)
			for s := floorMod(want-at, g); s < 60; s += g {
				if k.secs>>s&1 != 0 {
					return true
				}
			}
		}
	}
	return false
}
