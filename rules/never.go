package rules

import (
	"fmt"
	"math/bits"
	"time"
)

// neverFires returns the reason why a series has no occurrence at all, or "". A
// rule that fires costs one step or a few. Only a rule that the search budget
// does not decide is analysed. Its steps are taken from those of the whole text.
// The error wraps ErrUndecided.
func (s *series) neverFires(all *budget) (reason string, err error) {
	if s.end < s.start {
		return "UNTIL lies before DTSTART", nil
	}
	probe, b := *s, budget{searchSteps}
	if repeats := s.repeatsAfter(); repeats > 0 {
		probe.end = min(s.end, s.start+repeats)
	}
	_, ok := probe.next(s.start, &b)
	if all.charge(searchSteps, &b); ok {
		return "", nil
	}
	if s.grid.windowed() && !s.meetsEver() {
		return fmt.Sprintf("INTERVAL, %s, never meets the times of day it is combined with", time.Duration(s.grid.step)*time.Second), nil
	}
	if !b.over() {
		return "no day and time fits all its parts", nil
	}
	if len(s.pos) > 0 && !s.reaches(s.most) {
		return fmt.Sprintf("BYSETPOS asks for more than the %d times that a period can have", s.most), nil
	}
	if s.windowsMissDays(all) {
		return "INTERVAL never meets the days it is combined with", nil
	}
	b = budget{proofSteps}
	defer all.charge(proofSteps, &b)
	if _, ok := probe.next(s.start, &b); !ok && !b.over() {
		return "no day and time fits all its parts", nil
	}
	return "", ErrUndecided
}

// repeatsAfter returns the time in seconds after which wall times repeat. That is
// 400 years, or as many years as it takes until 400 years and INTERVAL line up,
// and two more for the clock changes of a start in an odd year. It returns 0 if
// INTERVAL counts days or less, or if the time is longer than the calendar.
func (s *series) repeatsAfter() int64 {
	if s.grid.windowed() {
		return 0
	}
	turns := int64(1)
	for i := range s.grid.days {
		if f := &s.grid.days[i]; f.every > 1 && f.byear {
			turns = max(turns, int64(f.every)/gcd(int64(f.every), 400))
		} else if f.every > 1 {
			turns = max(turns, int64(f.every)/gcd(int64(f.every), 400*12))
		}
	}
	if turns > lastYear/400 {
		return 0
	}
	return (turns*146097 + 2*366) * secondsPerDay
}

// mostInPeriod returns an upper limit for the number of times in one period of a
// frequency.
func mostInPeriod(freq frequency, f *dayFilter, k *clock) int64 {
	inMinute := bits.OnesCount64(k.secs)
	switch freq {
	case secondly:
		return 1
	case minutely:
		return int64(inMinute)
	case hourly:
		return int64(inMinute * bits.OnesCount64(k.minutes))
	}
	days := [...]int{daily: 1, weekly: 7, monthly: 31, yearly: 366}[freq]
	months := [...]int{daily: 1, weekly: 1, monthly: 1, yearly: 12}[freq]
	if weekdays := bits.OnesCount8(f.wdays); weekdays > 0 && len(f.nth) == 0 {
		days = min(days, weekdays*((days+6)/7))
	}
	if named := bits.OnesCount32(f.mdays) + bits.OnesCount32(f.nmdays); named > 0 {
		days = min(days, named*months)
	}
	return int64(days) * k.size()
}

// reaches reports whether a BYSETPOS can lie among that number of times.
func (s *series) reaches(most int64) bool {
	for _, n := range s.pos {
		if int64(max(n, -n)) <= most {
			return true
		}
	}
	return false
}

// windowsMissDays proves that windows never fall on an admitted day. It examines
// one turn, after which windows and days repeat together.
func (s *series) windowsMissDays(all *budget) bool {
	g := &s.grid
	if !g.windowed() || !s.pinned && s.z != utc {
		return false
	}
	cycle := g.cycle() * secondsPerDay
	turns, horizon := cycle/gcd(cycle, g.step), int64(endCivil)
	if g.step < (endCivil-g.base)/turns {
		horizon = g.base + turns*g.step
	}
	b := budget{proofSteps}
	defer all.charge(proofSteps, &b)
	_, ok := g.next(g.base, horizon, 0, &b)
	return !ok && !b.over()
}

// meetsEver reports whether windows and clock can meet at any offset that the
// zone has from the start on.
func (s *series) meetsEver() bool {
	if s.pinned {
		return s.grid.meets(0)
	}
	for sp := s.z.at(s.start); ; sp = s.z.at(sp.to) {
		if s.grid.meets(sp.off) {
			return true
		}
		if sp.to >= s.z.spans[len(s.z.spans)-1].to {
			return false // from here on, the zone repeats what it did in the table
		}
	}
}

// mustFire refuses a rule without occurrences.
func (r *Rule) mustFire() error {
	late := r.start > lastHeld-widest // the calendar may move an occurrence beyond the end of time
	if len(r.exdates)+len(r.barred) == 0 && !r.takesDays() && len(r.series)+len(r.rdates) > 0 && !late {
		return nil // each series was seen to fire when it was compiled
	}
	b := budget{searchSteps}
	if _, ok := r.next(firstInstant, &b); ok {
		return r.mustEnd()
	}
	if r.calendar != nil {
		if plain := (&Rule{zone: r.zone, policy: r.policy, start: r.start, rdates: r.rdates, exdates: r.exdates, exdays: r.exdays,
			series: r.series, barred: r.barred, never: r.never}); plain.mustFire() == nil {
			return neverFires("its calendar removes every occurrence that was examined; " +
				"change the calendar, or on_holiday to next or previous")
		}
	}
	if b.over() {
		return ErrUndecided
	}
	if len(r.series) == 0 && r.never != "" {
		return neverFires("%s", r.never)
	}
	if late && len(r.exdates)+len(r.barred)+len(r.exdays) == 0 {
		return neverFires("its first time comes after the end of time, %s", Last.Format(time.RFC3339))
	}
	return neverFires("its exceptions take out every occurrence")
}

// mustEnd refuses a rule that fires at its RDATEs, but for which no search finds out whether another occurrence follows them:
// after the last RDATE, nothing could be said about such a rule.
func (r *Rule) mustEnd() error {
	if len(r.rdates) == 0 || len(r.series) == 0 {
		return nil
	}
	b, recurs := budget{searchSteps}, *r
	recurs.rdates = nil
	if _, ok := recurs.next(firstInstant, &b); !ok && b.over() {
		return fmt.Errorf("%w: beside the dates of RDATE, every occurrence that was examined is taken out; write the rule without its RRULE", ErrUndecided)
	}
	return nil
}
