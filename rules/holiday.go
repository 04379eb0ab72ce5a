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

// WithoutCalendar returns a canonical text without the lines that its calendar added.
func WithoutCalendar(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool {
		return strings.HasPrefix(l, xOnHoliday) || strings.HasPrefix(l, xWorkingDays) || strings.HasPrefix(l, xHolidays)
	})
	return strings.Join(lines, "\n")
}

// days returns the zone to which the days of the calendar belong. Those of EXDATE
// belong to the zone of the rule, so that they do not depend on the calendar.
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

// dayTaken reports whether EXDATE or the calendar removes the days of all wall
// times for which an instant stands. If so, it returns the instants between which
// all instants belong to these days: an answer lies outside of them.
func (r *Rule) dayTaken(t int64) (from, to int64, taken bool) {
	if len(r.exdays) == 0 && (r.calendar == nil || r.onHoliday != holidaySkip) {
		return t, t, false
	}
	if day, _ := splitCivil(t); r.days() != r.zone && r.excludesDay(day) { // the rule is kept in UTC
		begin := joinCivil(day, 0)
		return begin, begin + secondsPerDay - 1, true
	}
	walls, n := r.walls(t)
	for _, c := range walls[:n] {
		day, _ := splitCivil(c)
		if !r.excludesWall(day) && (r.calendar == nil || r.onHoliday != holidaySkip || r.calendar.works(day)) {
			return t, t, false
		}
	}
	s := r.stretchAt(t)
	first, last := s.days(t)
	from, to = max(s.from, joinCivil(last, 0)-s.lost), min(s.to, joinCivil(first+1, 0)-s.off)-1
	return min(from, t), max(to, t), true // where the wall times belong to two days, it is one instant
}

// excludesDay reports whether EXDATE removes a day.
func (r *Rule) excludesDay(day int) bool {
	_, out := slices.BinarySearch(r.exdays, day)
	return out
}

// excludesWall reports whether EXDATE removes a day of the wall times of an instant. The instant may
// stand for times of another day, too, which stay.
func (r *Rule) excludesWall(day int) bool { return r.days() == r.zone && r.excludesDay(day) }

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
		source, any := r.rawDay(first, last, dir, b)
		if !any {
			break
		}
		if day, ok = r.targetOf(source); !ok || found && dir*z.edge(day, dir) > dir*best {
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

// targetOf returns the working day on which the occurrences of a day take place.
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

// rawDay returns a day from first on (dir 1) before which no day from first on has
// an occurrence, not counting moves. If dir is -1, it is a day up to last after
// which none has one. It returns false if there is no such occurrence at all.
func (r *Rule) rawDay(first, last int, dir int64, b *budget) (int, bool) {
	from := first
	if dir < 0 {
		from = last
	}
	for t := r.days().edge(from, dir); b.spend(); {
		x, ok := r.rawAt(t, dir, b)
		if !ok {
			return 0, false
		}
		s := r.stretchAt(x)
		low, high := s.days(x)
		if dir > 0 && high >= first {
			return max(low, first), true
		} else if dir < 0 && low <= last {
			return min(high, last), true
		}
		if t = min(s.to, joinCivil(first, 0)-s.off); dir < 0 { // no other instant of the stretch is nearer to the day
			t = max(s.from, joinCivil(last+1, 0)-s.lost) - 1
		}
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
	for x := begin; dir*x <= dir*end && b.spend(); {
		var ok bool
		if x, ok = r.rawAt(x, dir, b); !ok || dir*x > dir*end || found && dir*(x+by)-slack > dir*best {
			break
		}
		list, n := r.movedTo(x, day, to)
		for _, at := range list[:n] {
			if dir*at >= dir*t && (!found || dir*at < dir*best) {
				best, found = at, true
			}
		}
		even := r.evenly(x, day, to)
		from := x
		if x = even.to; dir < 0 {
			x = even.from - 1
		}
		for _, at := range even.at[:even.n] { // the next instants whose times may be better
			step := max(1, dir*(t-at))
			if !found || dir*at+step < dir*best {
				x = dir * min(dir*x, dir*from+step)
			}
		}
	}
	return best, found
}

// movedTo returns the instants at which the occurrence of a day takes place when
// its wall time is moved to another day, or stays. In general it is one. It is none
// if the occurrence is not one of that day, if EXDATE removes the day, or if the
// clock leaves out the new wall time and the policy skips such times. It is several
// if the clock repeats the new wall time and the policy means both, or if two times
// of the rule fell on this occurrence.
func (r *Rule) movedTo(x int64, day, to int) (list [4]int64, n int) {
	walls, count := r.walls(x)
	for _, c := range walls[:count] {
		if d, _ := splitCivil(c); d != day || r.excludesWall(d) {
			continue
		}
		if day == to {
			list[0] = x
			return list, 1
		}
		at, some := r.movedWall(c + joinCivil(to-day, 0))
		n += copy(list[n:], at[:some])
	}
	return list, n
}

// movedWall returns the instants at which an occurrence takes place whose new wall time is c.
func (r *Rule) movedWall(c int64) (at [2]int64, n int) {
	z := r.days()
	at, n = z.instants(c)
	switch {
	case n == 2 && r.policy.first && r.policy.last:
		return at, 2
	case n == 0 && r.policy.skip:
		return at, 0
	}
	at[0] = z.resolve(c, r.policy)
	return at, 1
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
		walls, n := r.walls(t)
		off := false
		for _, c := range walls[:n] {
			day, _ := splitCivil(c)
			if r.calendar.works(day) || r.excludesWall(day) {
				continue
			}
			off = true
			h, told := r.holiday(t, day, &plain, names, &b)
			known := slices.ContainsFunc(list[max(0, len(list)-2):], func(o Holiday) bool { return o.Day == h.Day })
			if told && !known && len(list) < limit {
				list = append(list, h)
			}
		}
		s := r.stretchAt(t)
		switch first, last := s.days(t); {
		case first < last: // the next instant may be of the first day
		case off:
			t = min(joinCivil(last+1, 0)-s.off, s.to) - 1
		default: // to the next holiday
			n := 1
			for ; n < farthest && r.calendar.works(last+n); n++ {
			}
			t = max(t, z.edge(last+n, 1)-1)
		}
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
	moved, n := r.movedTo(t, day, target)
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
