package rules

import (
	"slices"
	"time"
)

// naiveZone reads a zone with package time.
type naiveZone struct {
	loc  *time.Location
	near map[int64][]int64 // by day: the offsets of the days around it
}

func naiveLoad(name string) naiveZone {
	if name == "UTC" {
		return naiveZone{time.UTC, map[int64][]int64{}}
	}
	data, _ := zoneData(name)
	loc, err := time.LoadLocationFromTZData(name, []byte(data))
	if err != nil {
		panic(err)
	}
	return naiveZone{loc, map[int64][]int64{}}
}

func (z naiveZone) wall(t int64) int64 {
	_, off := time.Unix(t, 0).In(z.loc).Zone()
	return t + int64(off)
}

// instants returns the instants at which the wall clock shows c. If there are none, it returns the instant by the
// offset before the gap, and false.
func (z naiveZone) instants(c int64) (list []int64, exists bool) {
	offsets := z.offsets(c)
	for _, off := range offsets {
		if z.wall(c-off) == c {
			list = append(list, c-off)
		}
	}
	if len(list) > 0 {
		slices.Sort(list)
		return list, true
	}
	back := c
	for ; ; back -= 60 {
		if at, ok := z.reading(back, offsets); ok {
			return []int64{at + c - back}, false
		}
	}
}

func (z naiveZone) offsets(c int64) []int64 {
	day := c / 86400
	list, known := z.near[day]
	if !known {
		for t := (day - 2) * 86400; t <= (day+3)*86400; t += 900 {
			if off := z.wall(t) - t; !slices.Contains(list, off) {
				list = append(list, off)
			}
		}
		z.near[day] = list
	}
	return list
}

func (z naiveZone) reading(c int64, offsets []int64) (best int64, ok bool) {
	for _, off := range offsets {
		if z.wall(c-off) == c && (!ok || c-off > best) {
			best, ok = c-off, true
		}
	}
	return best, ok
}

// naiveRead applies the clock-change policy to wall times.
func (z naiveZone) naiveRead(walls []int64, p policy) (list []int64) {
	for _, c := range walls {
		at, exists := z.instants(c)
		switch {
		case !exists && p.skip:
		case !exists || len(at) == 1 || p.first && !p.last:
			list = append(list, at[0])
		case p.last && !p.first:
			list = append(list, at[len(at)-1])
		default:
			list = append(list, at...)
		}
	}
	return list
}
