package rules

import (
	"slices"
	"strings"
	"time"
)

// Event is a part of a rule in the terms of a calendar (RFC 5545 §3.6.1). Its
// occurrences are Start, those of RRule, and Dates, without those in Except.
type Event struct {
	Zone   string      // of Start and of RRule's wall times
	Start  time.Time   // an occurrence, on a wall time that exists once
	Wall   string      // that wall time, as 20060102T150405
	RRule  string      // the value of RRULE; empty: single dates only
	Except []string    // wall times in Zone, in the same layout
	Dates  []time.Time // in addition to those of RRule
	// Until is the instant up to which the event agrees with the rule. It is zero
	// if the event agrees for ever. A reader has to fetch the event again before
	// Until. The event has no occurrence after it.
	Until time.Time
}

// Events turns a rule into events that give its occurrences from an instant on,
// up to last, which is included. A zero last means no end. If readers of
// calendars understand the rule, it is one event with an RRULE. Some rules mean
// more than an RRULE can tell these readers: hours of elapsed time over a clock
// change, a clock change that is skipped, excluded days. Then there are single
// dates up to the instant to, at most most of them.
//
// Readers take DTSTART as an occurrence whether or not the RRULE admits it, so
// the DTSTART of an event is always an occurrence. Readers know neither EXRULE
// nor SKIP.
func (r *Rule) Events(from, to, last time.Time, most int) ([]Event, error) {
	w, err := r.window(from, to, last, most)
	if err != nil {
		return nil, err
	}
	for i := range r.includes {
		if err := w.add(&r.includes[i]); err != nil {
			return nil, err
		}
	}
	w.addDates()
	w.exact = w.exact && !w.meet()
	var list []Event
	for i, e := range w.events {
		if w.whole && e.Start.Unix() > w.end {
			continue // the calendar of the rule removes all times of this recurrence
		}
		if !w.whole && !w.exact {
			e.Until = time.Unix(w.end, 0).UTC()
			if e.Start.After(e.Until) {
				continue
			}
		}
		if e.RRule != "" {
			e.RRule = w.value(i, !w.exact)
		}
		list = append(list, e)
	}
	return list, nil
}

// Skip takes an occurrence out of the event.
func (e *Event) Skip(at time.Time) {
	z, err := zoneNamed(e.Zone)
	if err != nil || !e.Until.IsZero() && at.After(e.Until) {
		return
	}
	dates := len(e.Dates)
	if e.Dates = slices.DeleteFunc(e.Dates, at.Equal); len(e.Dates) < dates || at.Before(e.Start) {
		return // the RRULE does not give it; it may give another time that the clock shows in the same way
	}
	e.Except = append(e.Except, z.readAs(at.Unix())...)
}

// eventWindow is the state of Events while it works. Instants are in seconds.
type eventWindow struct {
	r         *Rule
	from, end int64   // all occurrences in this range are known
	last      int64   // no occurrence after it counts
	truth     []int64 // the known occurrences
	covered   map[int64]bool
	whole     bool // there are no occurrences after end
	exact     bool // the events agree with the rule for ever
	most      int
	events    []Event
	recurs    []recur // of the events that have one
	sources   []recur // the recurrences of the rule from which these were made
}

func (r *Rule) window(from, to, last time.Time, most int) (*eventWindow, error) {
	w := &eventWindow{r: r, from: ceil(from), end: floor(to), last: endInstant, covered: map[int64]bool{}, most: most}
	if !last.IsZero() {
		w.last = floor(last)
	}
	w.end = min(w.end, w.last)
	list, err := r.Between(time.Unix(w.from-1, 0), time.Unix(w.end, 0), most+1)
	if err != nil {
		return nil, err
	}
	if len(list) > most {
		list = list[:most]
		w.end = list[most-1].Unix()
	}
	for _, t := range list {
		w.truth = append(w.truth, t.Unix())
	}
	next, err := r.Next(time.Unix(w.end, 0))
	if err != nil {
		return nil, err
	}
	w.whole = next.IsZero() || next.Unix() > w.last
	later := func(list []int64) bool { return len(list) > 0 && list[len(list)-1] > w.end }
	w.exact = len(r.excludes) == 0 && !r.takesDays() && !later(r.rdates) && !later(r.exdates) &&
		(r.policy == defaultPolicy || r.zone == utc)
	return w, nil
}

func (w *eventWindow) has(t int64) bool {
	_, found := slices.BinarySearch(w.truth, t)
	return found
}

// add makes an event from a recurrence, if readers understand it.
func (w *eventWindow) add(source *recur) error {
	c := w.without(*source)
	own, err := w.r.alone(c, w.r.zone, w.r.start, w.r.policy)
	if err != nil {
		return nil //nolint:nilerr // the recurrence never fires; the rule fires by another one
	}
	written, z, exact := w.r.readable(c)
	start, ok, err := w.start(own, z)
	if err != nil || !ok {
		return err
	}
	if z == nil || start > w.end && !exact {
		w.exact = false
		return nil
	}
	if end, ends, err := own.Last(); err != nil {
		return err
	} else if ends {
		written.until = end.Unix()
	}
	written.until = min(written.until, w.last)
	if written.until >= endInstant {
		written.until = noUntil
	}
	model, err := w.r.alone(written, z, start+z.at(start).off, defaultPolicy)
	if err != nil {
		return err
	}
	list, err := model.Between(time.Unix(start-1, 0), time.Unix(w.end, 0), 2*w.most)
	if err != nil {
		return err
	}
	e := Event{Zone: z.name, Start: time.Unix(start, 0).UTC(), Wall: stampText(z.civil(start)), RRule: written.String()}
	if start > w.end { // it begins after the range in which the others are known
		w.events, w.recurs, w.sources = append(w.events, e), append(w.recurs, written), append(w.sources, *source)
		return nil
	}
	wrong, gives := false, []int64{}
	for _, at := range list {
		t := at.Unix()
		if w.has(t) && !w.covered[t] {
			gives = append(gives, t)
			continue
		}
		wrong = true
		e.Except = append(e.Except, z.readAs(t)...)
	}
	if len(list) == 2*w.most || len(gives) == 0 || gives[0] != start || len(e.Except) > len(gives) {
		w.exact = false // more exceptions than occurrences: single dates are clearer
		return nil
	}
	for _, t := range gives {
		w.covered[t] = true
	}
	w.exact = w.exact && exact && !wrong
	w.events, w.recurs, w.sources = append(w.events, e), append(w.recurs, written), append(w.sources, *source)
	return nil
}

// without takes out of a recurrence the days of the month that an event gives at the same times of day. Cron joins days of the
// month and weekdays by OR, and an event cannot name all days on which both fall.
func (w *eventWindow) without(c recur) recur {
	const all = ^uint32(1) // the days from 1 to 31
	for i := range w.sources {
		e := w.sources[i]
		mdays, nmdays := e.mdays, e.nmdays
		if e.freq != daily || e.interval > 1 || e.count > 0 || e.wdays != 0 || c.mdays|c.nmdays != 0 || mdays|nmdays == 0 {
			continue
		}
		if e.mdays, e.nmdays, e.wdays = 0, 0, c.wdays; e.String() != c.String() {
			continue
		}
		switch {
		case nmdays == 0 && mdays != all:
			c.mdays = all &^ mdays
		case mdays == 0 && nmdays != all:
			c.nmdays = all &^ nmdays
		}
	}
	return c
}

// meet reports whether two of the events may give the same occurrence at any time. The exceptions of the second one reach only
// as far as the known occurrences.
func (w *eventWindow) meet() bool {
	for i := range w.recurs {
		for k := range i {
			if w.mayMeet(i, k) {
				return true
			}
		}
	}
	return false
}

// mayMeet reports whether neither months, nor days, nor times of day keep two events apart.
func (w *eventWindow) mayMeet(i, k int) bool {
	apart := func(x, y uint64) bool { return x != 0 && y != 0 && x&y == 0 }
	x, y := &w.recurs[i], &w.recurs[k]
	if w.events[i].Zone != w.events[k].Zone {
		return true
	}
	cx, cy := w.clock(i), w.clock(k)
	return !apart(uint64(x.months), uint64(y.months)) && !apart(uint64(x.wdays), uint64(y.wdays)) &&
		!apart(uint64(x.mdays), uint64(y.mdays)) && !apart(uint64(x.nmdays), uint64(y.nmdays)) &&
		!apart(uint64(cx.hours), uint64(cy.hours)) && !apart(cx.minutes, cy.minutes) && !apart(cx.secs, cy.secs)
}

// clock returns the times of day of an event.
func (w *eventWindow) clock(i int) clock {
	at, err := readStamp("event", 0, w.events[i].Wall)
	if err != nil { // stampText has written it
		panic(err)
	}
	_, sec := splitCivil(at.civil)
	return clockOf(&w.recurs[i], sec)
}

// start finds the first occurrence of a recurrence that can be a DTSTART: an
// occurrence that counts, and whose wall time exists once.
func (w *eventWindow) start(own *Rule, z *zone) (int64, bool, error) {
	t := w.from - 1
	for range 1000 {
		at, err := own.Next(time.Unix(t, 0))
		if err != nil || at.IsZero() || at.Unix() > w.last {
			return 0, false, err
		}
		t = at.Unix()
		if z == nil {
			return t, true, nil
		}
		counts := w.has(t) && !w.covered[t] || t > w.end
		if _, n := z.instants(t + z.at(t).off); n == 1 && len(z.readAs(t)) == 1 && counts {
			return t, true, nil
		}
	}
	return 0, false, nil
}

// addDates adds the occurrences that no event gives so far.
func (w *eventWindow) addDates() {
	var dates []time.Time
	for _, t := range w.truth {
		if w.covered[t] {
			continue
		}
		dates = append(dates, time.Unix(t, 0).UTC())
		if _, listed := slices.BinarySearch(w.r.rdates, t); !listed && (len(w.events) == 0 || !dates[len(dates)-1].Before(w.events[0].Start)) {
			w.exact = false
		}
	}
	switch {
	case len(dates) == 0:
	case len(w.events) > 0 && w.events[0].Start.Unix() <= w.end:
		w.events[0].Dates = dates
	default: // an event that begins after the range may be left out, and these dates must not go with it
		w.events = append(w.events, Event{Zone: utc.name, Start: dates[0], Wall: stampText(dates[0].Unix()), Dates: dates[1:]})
	}
}

// value returns the RRULE of an event. The RRULE ends where the event no longer
// agrees with the rule.
func (w *eventWindow) value(i int, ends bool) string {
	c := w.recurs[i]
	if ends {
		c.until = min(c.until, w.end)
	}
	return c.String()
}

// alone returns a rule with only one recurrence.
func (r *Rule) alone(c recur, z *zone, start int64, p policy) (*Rule, error) {
	one := &Rule{zone: z, policy: p, start: start, includes: []recur{c}, form: r.form}
	return one, one.finish("")
}

// readable returns a recurrence in the form that readers of calendars understand,
// and its zone. The zone is nil if readers cannot understand it, or are known to
// read it differently. The third result is false if clock changes have to be
// added date by date.
func (r *Rule) readable(c recur) (recur, *zone, bool) {
	c.count = 0
	for _, n := range c.weeks {
		if n > 51 || n < -1 {
			return c, nil, false // weeks across the new year
		}
	}
	if c.skip != skipOmit || c.wdays != 0 && len(c.nth) > 0 || c.freq == weekly && len(c.pos) > 0 {
		return c, nil, false
	}
	if r.zone == utc || c.pinned() {
		return c, r.zone, true
	}
	// A free rule counts elapsed time, as UTC does.
	if c.months == 0 && !c.namesDays() {
		if minute, ok := r.zone.minutePast(); c.minutes == 0 || ok && (minute == 0 || len(c.pos) == 0) {
			c.minutes = turned(c.minutes, minute)
			return c, utc, true
		}
	}
	if c.interval > 1 || c.freq == secondly || len(c.pos) > 0 {
		return c, nil, false
	}
	// Each hour of some days: that such a rule is free shows only in the nights
	// of clock changes.
	_, sec := splitCivil(r.start)
	k := clockOf(&c, sec)
	c.freq, c.hours, c.minutes, c.seconds = daily, k.hours, k.minutes, k.secs
	if len(c.yeardays) > 0 {
		c.freq = yearly // DAILY takes no BYYEARDAY
	}
	return c, r.zone, false
}

// minutePast returns the minute at which the hours of UTC begin in a zone, if it
// has been the same since 2000.
func (z *zone) minutePast() (int, bool) {
	const since = 946684800
	at := z.at(since)
	minute := floorMod(at.off, 3600)
	for _, s := range z.spans {
		if s.to > since && floorMod(s.off, 3600) != minute {
			return 0, false
		}
	}
	return int(minute / 60), minute%60 == 0
}

// turned converts a set of minutes of the wall clock to minutes of UTC.
func turned(set uint64, by int) uint64 {
	var out uint64
	for m := range 60 {
		if set>>m&1 != 0 {
			out |= 1 << floorMod(int64(m-by), 60)
		}
	}
	return out
}

// readAs returns the wall times by which a pinned recurrence may have named an
// instant: the time that the clock shows and, after a gap, the time in the gap.
func (z *zone) readAs(t int64) []string {
	s := z.at(t)
	list := []string{stampText(t + s.off)}
	if gap := s.off - s.before; gap > 0 && t-s.from < gap {
		list = append(list, stampText(t+s.before))
	}
	return list
}

func stampText(c int64) string {
	var b strings.Builder
	writeStamp(&b, c)
	return b.String()
}
