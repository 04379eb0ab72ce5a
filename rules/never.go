package rules

import (
	"fmt"
	"time"
)

// neverFires gives the reason why a series has no occurrence at all, or "".
// Rules that fire cost one step or a few; only what the search budget does not
// decide is analysed. The error wraps ErrUndecided.
func (s *series) neverFires() (reason string, err error) {
	if s.end < s.start {
		return "UNTIL lies before DTSTART", nil
	}
	probe, b := *s, budget{searchSteps}
	if repeats := s.repeatsAfter(); repeats > 0 {
		probe.end = min(s.end, s.start+repeats)
	}
	if _, ok := probe.next(s.start, &b); ok {
		return "", nil
	}
	if s.grid.windowed() && !s.meetsEver() {
		return fmt.Sprintf("INTERVAL, %s, never meets the times of day it is combined with", time.Duration(s.grid.step)*time.Second), nil
	}
	if !b.over() {
		return "no day and time fits all its parts", nil
	}
	if most := s.mostInPeriod(); len(s.pos) > 0 && !s.reaches(most) {
		return fmt.Sprintf("BYSETPOS asks for more than the %d times that a period can have", most), nil
	}
	if s.windowsMissDays() {
		return "INTERVAL never meets the days it is combined with", nil
	}
	b = budget{countSteps}
	if _, ok := probe.next(s.start, &b); !ok && !b.over() {
		return "no day and time fits all its parts", nil
	}
	return "", ErrUndecided
}

// repeatsAfter is the time in seconds after which wall times without INTERVAL
// repeat: 400 years, and two more for the clock changes of a start in an odd
// year. 0 if there is an INTERVAL.
func (s *series) repeatsAfter() int64 {
	for i := range s.grid.days {
		if s.grid.days[i].every > 1 {
			return 0
		}
	}
	if s.grid.windowed() {
		return 0
	}
	return (146097 + 2*366) * secondsPerDay
}

// mostInPeriod is a bound on the times in one period of BYSETPOS.
func (s *series) mostInPeriod() int64 {
	most := s.grid.clock.size()
	switch {
	case s.period.months == 12:
		most *= 366
	case s.period.months == 1:
		most *= 31
	case s.period.length == secondsPerWeek:
		most *= 7
	case s.period.length < secondsPerDay:
		k := s.grid.clock
		k.hours = 1
		if s.period.length == 60 {
			k.minutes = 1
		}
		most = min(k.size(), s.period.length)
	}
	return most
}

// reaches reports whether a BYSETPOS can lie among so many times.
func (s *series) reaches(most int64) bool {
	for _, n := range s.pos {
		if int64(max(n, -n)) <= most {
			return true
		}
	}
	return false
}

// windowsMissDays proves that windows never fall on an admitted day: it looks
// at one turn, after which windows and days repeat together.
func (s *series) windowsMissDays() bool {
	g := &s.grid
	if !g.windowed() || len(s.pos) > 0 || !s.pinned && s.z != utc {
		return false
	}
	cycle := g.cycle() * secondsPerDay
	turns, horizon := cycle/gcd(cycle, g.step), int64(endCivil)
	if g.step < (endCivil-g.base)/turns {
		horizon = g.base + turns*g.step
	}
	b := budget{countSteps}
	_, ok := g.next(g.base, horizon, 0, &b)
	return !ok && !b.over()
}

// meetsEver reports whether windows and clock can meet at any offset the zone
// has from the start on.
func (s *series) meetsEver() bool {
	if s.pinned {
		return s.grid.meets(0)
	}
	for sp := s.z.at(s.start); ; sp = s.z.at(sp.to) {
		if s.grid.meets(sp.off) {
			return true
		}
		if sp.to >= s.z.spans[len(s.z.spans)-1].to {
			return false // what the zone does from here on, it did in the table
		}
	}
}

// mustFire refuses a rule without occurrences.
func (r *Rule) mustFire() error {
	if len(r.exdates)+len(r.barred) == 0 && len(r.series)+len(r.rdates) > 0 {
		return nil // each series has been seen to fire
	}
	b := budget{searchSteps}
	if _, ok := r.next(firstInstant, &b); ok {
		return nil
	}
	if b.over() {
		return ErrUndecided
	}
	if len(r.series) == 0 && r.never != "" {
		return neverFires("%s", r.never)
	}
	return neverFires("its exceptions take out every occurrence")
}
