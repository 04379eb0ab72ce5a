package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// onHoliday says what happens to an occurrence on a day that is no working day of
// the rule's calendar.
type onHoliday int

const (
	holidaySkip     onHoliday = iota // the occurrence does not exist, as with EXDATE
	holidayNext                      // the occurrence moves to the next working day
	holidayPrevious                  // the occurrence moves to the last working day before
)

var holidayNames = [...]string{"skip", "next", "previous"}

// setCalendar gives a rule a calendar. The days of the calendar are days of the
// rule's wall clock. For a rule that counts elapsed time, they are days of the
// default zone.
func (r *Rule) setCalendar(c *Calendar, on string, z *zone) error {
	if c == nil {
		if on != "" {
			return fmt.Errorf("on_holiday is %q, but there is no calendar", on)
		}
		return nil
	}
	i := max(0, slices.Index(holidayNames[:], on))
	if on != "" && on != holidayNames[i] {
		return fmt.Errorf("on_holiday is %q; allowed: %s", on, strings.Join(holidayNames[:], ", "))
	}
	if r.calendar != nil {
		return fmt.Errorf("the rule has a calendar in its text, so it cannot be given another one")
	}
	r.calendar, r.onHoliday, r.dayZone = c, onHoliday(i), z
	return nil
}

// days returns the zone to which the days of EXDATE and of the calendar belong.
func (r *Rule) days() *zone {
	if r.zone == utc && r.dayZone != nil {
		return r.dayZone
	}
	return r.zone
}

// moves reports whether the calendar moves occurrences.
func (r *Rule) moves() bool { return r.calendar != nil && r.onHoliday != holidaySkip }

// takesDays reports whether days are removed from the set, or moved.
func (r *Rule) takesDays() bool { return len(r.exdays) > 0 || r.calendar != nil }

// dayTaken reports whether EXDATE or the calendar removes the day of an instant.
// If so, it returns the instants between which all instants belong to that day:
// an answer lies outside of them.
func (r *Rule) dayTaken(t int64) (from, to int64, taken bool) {
	if len(r.exdays) == 0 && (r.calendar == nil || r.onHoliday != holidaySkip) {
		return t, t, false
	}
	sp := r.days().at(t)
	day, _ := splitCivil(t + sp.off)
	if _, taken = slices.BinarySearch(r.exdays, day); !taken && r.calendar != nil && r.onHoliday == holidaySkip {
		taken = !r.calendar.works(day)
	}
	begin := joinCivil(day, 0) - sp.off
	return max(begin, sp.from), min(begin+secondsPerDay, sp.to) - 1, taken
}

// moved returns the first occurrence at or after t (dir 1), or the last one at
// or before t (dir -1), of a rule whose calendar moves occurrences.
//
// A working day has its own occurrences, and those of the holidays that move to
// it, which are the days in a row next to it. So moving keeps the order of days,
// and moved goes through the working days that have occurrences. Within a day,
// the order of instants may change if the clock changes: moved then takes the
// best one.
func (r *Rule) moved(t, dir int64, b *budget) (best int64, found bool) {
	z := r.days()
	day, _ := splitCivil(z.civil(t))
	day, ok := r.calendar.working(day-int(dir), int(dir)) // a fold at midnight may show the day before again
	for ok && b.spend() {
		first, last := r.sources(day)
		x, any := r.rawOnDay(first, last, dir, b)
		if !any {
			break
		}
		if day, ok = r.target(x); !ok || found && dir*z.edge(day, dir) > dir*best {
			break
		}
		first, last = r.sources(day)
		for d := first; d <= last; d++ {
			if at, ok := r.movedWithin(d, day, t, dir, b); ok && (!found || dir*at < dir*best) {
				best, found = at, true
			}
		}
		day, ok = r.calendar.working(day+int(dir), int(dir))
	}
	return best, found && !b.over() && best >= firstHeld && best <= lastHeld
}

// target returns the working day on which an instant's occurrence takes place.
func (r *Rule) target(t int64) (int, bool) {
	day, _ := splitCivil(r.days().civil(t))
	return r.targetOf(day)
}

func (r *Rule) targetOf(day int) (int, bool) {
	if r.onHoliday == holidayNext {
		return r.calendar.working(day, 1)
	}
	return r.calendar.working(day, -1)
}

// sources returns the days whose occurrences take place on a working day: the day
// itself, and the holidays before or after it.
func (r *Rule) sources(day int) (first, last int) {
	first, last = day, day
	if r.onHoliday == holidayNext {
		for n := 0; n < farthest && !r.calendar.works(first-1); n++ {
			first--
		}
		return first, last
	}
	for n := 0; n < farthest && !r.calendar.works(last+1); n++ {
		last++
	}
	return first, last
}

// rawOnDay returns the first occurrence, before it is moved, on the day first or
// later (dir 1), or the last one on the day last or earlier (dir -1).
func (r *Rule) rawOnDay(first, last int, dir int64, b *budget) (int64, bool) {
	z, from := r.days(), first
	if dir < 0 {
		from = last
	}
	for t := z.edge(from, dir); b.spend(); {
		x, ok := r.rawAt(t, dir, b)
		if !ok {
			return 0, false
		}
		if day, _ := splitCivil(z.civil(x)); dir*int64(day) >= dir*int64(from) {
			return x, true
		}
		t = x + dir
	}
	return 0, false
}

func (r *Rule) rawAt(t, dir int64, b *budget) (int64, bool) {
	if dir > 0 {
		return r.rawNext(t, b)
	}
	return r.rawPrev(t, b)
}

// edge returns an instant before which no instant of a day lies (dir 1), or after
// which none lies (dir -1). If the clock does not change, the instant is near the
// day.
func (z *zone) edge(day int, dir int64) int64 {
	c := joinCivil(day, 0)
	low, high := z.offsets(c)
	if dir > 0 {
		return c - high
	}
	return c + secondsPerDay - 1 - low
}

// offsets returns the lowest and the highest offset that a zone has around a day
// that begins at a wall time.
func (z *zone) offsets(c int64) (low, high int64) {
	sp := z.at(c - widest - secondsPerDay)
	low, high = sp.off, sp.off
	for sp.to <= c+widest+2*secondsPerDay {
		sp = z.at(sp.to)
		low, high = min(low, sp.off), max(high, sp.off)
	}
	return low, high
}

// movedWithin returns the answer of moved for the occurrences of one day that
// move to a working day, or stay on it.
func (r *Rule) movedWithin(day, to int, t, dir int64, b *budget) (best int64, found bool) {
	z, by := r.days(), joinCivil(to-day, 0)
	low, high := z.offsets(joinCivil(day, 0))
	low2, high2 := z.offsets(joinCivil(to, 0))
	slack := max(high, high2) - min(low, low2) // how far the order of instants may change
	begin, end := z.edge(day, dir), z.edge(day, -dir)
	if near := t - by - dir*slack; dir*near > dir*begin {
		begin = near
	}
	for x := begin; dir*x <= dir*end && b.spend(); x += dir {
		var ok bool
		if x, ok = r.rawAt(x, dir, b); !ok || dir*x > dir*end || found && dir*(x+by)-slack > dir*best {
			break
		}
		if d, _ := splitCivil(z.civil(x)); d != day {
			continue
		}
		list, n := r.movedTo(x, by)
		for _, at := range list[:n] {
			if dir*at >= dir*t && (!found || dir*at < dir*best) {
				best, found = at, true
			}
		}
	}
	return best, found
}

// movedTo returns the instants at which an occurrence takes place when its wall
// time is moved. In general it is one. It is none if the clock leaves out the new
// wall time and the policy skips such times. It is several if the clock repeats
// the new wall time and the policy means both, or if two times of the rule fell
// on this occurrence.
func (r *Rule) movedTo(x, by int64) (list [4]int64, n int) {
	if by == 0 {
		list[0] = x
		return list, 1
	}
	z := r.days()
	walls, count := r.walls(x)
	for _, c := range walls[:count] {
		at, real := z.instants(c + by)
		switch {
		case real == 2 && r.policy.first && r.policy.last:
			list[n], list[n+1] = at[0], at[1]
			n += 2
		case real == 0 && r.policy.skip:
		default:
			list[n] = z.resolve(c+by, r.policy)
			n++
		}
	}
	return list, n
}

// walls returns the wall times for which an occurrence stands: the time that the
// clock shows or, after a gap, the time that the rule names and the clock left
// out.
func (r *Rule) walls(x int64) (list [2]int64, n int) {
	sp := r.days().at(x)
	c, lost := x+sp.off, x+sp.before
	if r.zone == utc || sp.before >= sp.off || r.policy.skip || x >= sp.from+sp.off-sp.before {
		list[0] = c
		return list, 1
	}
	for _, w := range [2]int64{lost, c} {
		if r.names(w) {
			list[n] = w
			n++
		}
	}
	if n == 0 {
		list[0], n = c, 1
	}
	return list, n
}

// names reports whether a recurrence that is pinned to the wall clock has a wall
// time.
func (r *Rule) names(c int64) bool {
	b := budget{searchSteps}
	return r.pinnedIn(c, c+1, &b)
}

// calendarSentence says what the calendar does.
func (r *Rule) calendarSentence() string {
	what := [...]string{"It is left out", "It moves to the next working day", "It moves to the last working day before"}[r.onHoliday]
	which := "that is no working day"
	if r.calendar.Name != "" {
		which += " of the calendar " + r.calendar.Name
	}
	return what + " where it falls on a day " + which + "."
}

// A Holiday is an occurrence that the rule's calendar removes or moves.
type Holiday struct {
	At      time.Time `json:"at"`                // the time without the calendar
	Day     string    `json:"day"`               // its day, as 2026-12-25
	Name    string    `json:"name,omitempty"`    // why the day is no working day; empty: the calendar does not say
	Instead string    `json:"instead,omitempty"` // the day to which the occurrence moves; empty: it is skipped
}

// Text returns the holiday for people: "2026-12-25 skipped: Christmas Day", or
// "2026-12-28 instead of 2026-12-25: Christmas Day".
func (h *Holiday) Text() string {
	s := h.Day + " skipped"
	if h.Instead != "" {
		s = h.Instead + " instead of " + h.Day
	}
	if h.Name != "" {
		s += ": " + h.Name
	}
	return s
}

// Holidays returns the days with an occurrence in (from, to] that the calendar
// removes or moves: at most limit, each with its first such occurrence. It leaves
// out a day that is only a weekday without work, if its occurrence is skipped or
// moves to a time that the rule has in any case. names is the calendar from which
// the names of the days come; nil: the rule's own.
func (r *Rule) Holidays(from, to time.Time, limit int, names *Calendar) (list []Holiday, err error) {
	if r.calendar == nil {
		return nil, nil
	}
	if names == nil {
		names = r.calendar
	}
	plain := *r
	plain.calendar = nil
	z := r.days()
	for t := floor(from) + 1; len(list) < limit; t++ {
		b := budget{searchSteps}
		var ok bool
		if t, ok = plain.rawNext(t, &b); !ok && b.over() {
			return list, ErrUndecided
		}
		if !ok || t > floor(to) {
			break
		}
		sp := z.at(t)
		day, _ := splitCivil(t + sp.off)
		if r.calendar.works(day) { // to the next holiday
			n := 1
			for ; n < farthest && r.calendar.works(day+n); n++ {
			}
			t = max(t, z.edge(day+n, 1)-1)
			continue
		}
		if h, told := r.holiday(t, day, &plain, names, &b); told {
			list = append(list, h)
		}
		t = min(joinCivil(day+1, 0)-sp.off, sp.to) - 1
	}
	return list, nil
}

// holiday returns what happens to an occurrence on a day without work. told
// reports whether that is worth mentioning. plain is the rule without the
// calendar.
func (r *Rule) holiday(t int64, day int, plain *Rule, names *Calendar, b *budget) (h Holiday, told bool) {
	date := time.Unix(joinCivil(day, 0), 0).UTC()
	h = Holiday{At: time.Unix(t, 0).UTC(), Day: date.Format(time.DateOnly)}
	h.Name, _ = names.Holiday(date)
	target, ok := r.targetOf(day)
	if !ok || !r.moves() {
		return h, r.calendar.named(day)
	}
	moved, n := r.movedTo(t, joinCivil(target-day, 0))
	if n == 0 { // the clock of the new day leaves the time out
		return h, true
	}
	h.Instead = time.Unix(joinCivil(target, 0), 0).UTC().Format(time.DateOnly)
	if !r.calendar.named(day) {
		at, ok := plain.rawNext(moved[0], b)
		return h, !ok || at != moved[0]
	}
	return h, true
}
