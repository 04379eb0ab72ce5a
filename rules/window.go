package rules

import (
	"fmt"
	"math/bits"
)

// window is the part of the calendar form that names several times of a day: `every N UNIT from H:MM[:SS] to H:MM[:SS]`. The times are
// from, and each N units after it up to to. Where to is before from, it is a time of the next day.
type window struct {
	n        int
	unit     frequency
	from, to int // seconds of the day
}

// windowLines bounds the recurrences that a window becomes. It is as many as the fourth weekday needs with the hardest number of
// minutes. Of the numbers of seconds, it leaves out those that fit neither into a minute nor into an hour.
const windowLines = 5 * 24

// readWindow reads what follows the first `every`.
func (w *words) readWindow() (x window, err error) {
	amount, unit, counted, err := w.amount()
	if err != nil {
		return x, err
	}
	freq, ok := intervalUnit(unit, counted)
	if x = (window{n: amount, unit: freq}); !ok || freq >= daily {
		return x, w.refuse(unit, "the times of a day are `every N UNIT from H:MM to H:MM`; units: s, m, h, second(s), minute(s), hour(s)")
	}
	if !w.take("from") {
		return x, w.refuse(w.next(), "expected the times of the day here: `from H:MM[:SS] to H:MM[:SS]`")
	}
	if x.from, err = w.timeOfDay("from"); err != nil {
		return x, err
	}
	if !w.take("to") {
		return x, w.refuse(w.next(), "expected the last time of the day here: `to H:MM[:SS]`")
	}
	if x.to, err = w.timeOfDay("to"); err != nil {
		return x, err
	}
	if x.step() > int64(x.length()) {
		return x, w.refuse(w.text[w.at:w.end], "there is one time from %s to here; write `at %[1]s`", clockText(x.from, x.from%60 > 0))
	}
	return x, nil
}

func (x *window) step() int64 { return int64(x.n) * frequencySeconds[x.unit] }

// pastMidnight reports whether the window ends on the day after the one on which it begins.
func (x *window) pastMidnight() bool { return x.to < x.from }

func (x *window) length() int {
	if x.pastMidnight() {
		return x.to + secondsPerDay - x.from
	}
	return x.to - x.from
}

// afterMidnight returns at which second of the next day the window, if it goes past midnight, has its first time there.
func (x *window) afterMidnight() int {
	step := int(x.step())
	return x.from + (secondsPerDay-x.from+step-1)/step*step - secondsPerDay
}

// recurs returns the recurrences that have the times of the window on the days of a recurrence.
func (x *window) recurs(days *recur) (list []recur) {
	var hours [24][60]uint64 // the seconds of each minute of each hour
	for at := range x.length()/int(x.step()) + 1 {
		sec := (x.from + at*int(x.step())) % secondsPerDay
		hours[sec/3600][sec/60%60] |= 1 << (sec % 60)
	}
	done := map[[60]uint64]bool{{}: true}
	for _, minutes := range hours {
		if done[minutes] {
			continue
		}
		done[minutes] = true
		c := *days
		for h := range hours {
			if hours[h] == minutes {
				c.hours |= 1 << h
			}
		}
		for m := range minutes {
			if minutes[m] == 0 {
				continue
			}
			c.minutes, c.seconds = 0, minutes[m]
			for other := m; other < len(minutes); other++ {
				if minutes[other] == c.seconds {
					c.minutes |= 1 << other
					minutes[other] = 0
				}
			}
			list = append(list, c.onPositions()...)
		}
	}
	return list
}

// onPositions returns recurrences without BYSETPOS for one of months that has it. BYSETPOS would count times, and not days.
func (r *recur) onPositions() (list []recur) {
	if len(r.pos) == 0 {
		return []recur{*r}
	}
	byDays := map[uint32]uint8{} // the weekdays that are the day of that position on each of the same days of the month
	for w := range 7 {
		var set uint32
		for day := 1; day <= 28 && r.wdays>>w&1 != 0; day++ {
			if r.positionOf(day, w) == int(r.pos[0]) {
				set |= 1 << day
			}
		}
		byDays[set] |= 1 << w & r.wdays
	}
	for w := range 7 {
		for set, wdays := range byDays {
			if bits.TrailingZeros8(wdays) != w || set == 0 {
				continue
			}
			c := *r
			if c.wdays, c.pos = wdays, nil; r.pos[0] > 0 {
				c.mdays = set
			} else {
				c.nmdays = set
			}
			list = append(list, c)
		}
	}
	return list
}

// positionOf returns which day of the recurrence's weekdays a day of the month is, if it is a weekday w. For a position from the end of
// the month, day counts from there, too.
func (r *recur) positionOf(day, w int) int {
	step := -1
	if r.pos[0] < 0 {
		step = 1
	}
	n := 0
	for i := range day {
		n += int(r.wdays >> ((w + step*i%7 + 7) % 7) & 1)
	}
	return -step * n
}

// phrase says at which times of a day.
func (x *window) phrase() string {
	often := periodNames[x.unit]
	if x.n > 1 {
		often = counted(x.n, often)
	}
	odd := x.from%60+x.to%60 > 0
	s := fmt.Sprintf("every %s from %s to %s", often, clockText(x.from, odd), clockText(x.to, odd))
	if x.pastMidnight() {
		s += " of the next day,"
	}
	return s
}
