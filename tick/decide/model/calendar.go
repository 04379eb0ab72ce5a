package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Calendar is a set of days on which the schedules that name it do nothing.
type Calendar struct {
	working string   // MO-FR; empty: each day
	days    []string // as people write them: 2026-03-28, 2026-03-28..2026-03-30
}

// CalendarName returns the name of a calendar. The calendars of a scenario are counted from 1.
func CalendarName(i int) string { return fmt.Sprintf("calendar %d", i) }

// randomCalendar returns a calendar with days all over the span, and some around an instant.
func randomCalendar(rng *rand.Rand, span Window, near time.Time) (c Calendar) {
	c.working = pick(rng, "", "", "MO-FR")
	for range rng.IntN(10) {
		day := span.From.AddDate(0, 0, rng.IntN(75))
		if rng.IntN(2) == 0 {
			day = near.AddDate(0, 0, rng.IntN(7)-2)
		}
		text := day.Format(time.DateOnly)
		if rng.IntN(3) == 0 {
			text += ".." + day.AddDate(0, 0, 1+rng.IntN(3)).Format(time.DateOnly)
		}
		c.days = append(c.days, text)
	}
	return c
}

// Define is the calendar as a manifest would have it.
func (c Calendar) Define(i int) store.Calendar {
	return store.Calendar{Name: CalendarName(i), WorkingDays: c.working, Days: c.days}
}

func (c Calendar) String() string {
	return strings.TrimSpace(c.working + " " + strings.Join(c.days, " "))
}

// closed returns each single day of the calendar, also those in a range.
func (c Calendar) closed() map[string]bool {
	all := map[string]bool{}
	for _, text := range c.days {
		first, last, ranged := strings.Cut(text, "..")
		if all[first] = true; !ranged {
			continue
		}
		day, err := time.Parse(time.DateOnly, first)
		if err != nil {
			panic(err)
		}
		for day.Format(time.DateOnly) != last {
			day = day.AddDate(0, 0, 1)
			all[day.Format(time.DateOnly)] = true
		}
	}
	return all
}

func (c Calendar) works(closed map[string]bool, day time.Time) bool {
	return !closed[day.Format(time.DateOnly)] && (c.working == "" || day.Weekday() != time.Saturday && day.Weekday() != time.Sunday)
}

// withCalendar lets some rules name a calendar. No rule loses all of its times by that.
func (r Rule) withCalendar(rng *rand.Rand) Rule {
	if rng.IntN(3) > 0 || !r.once.IsZero() {
		return r
	}
	r.calendar, r.onHoliday = 1+rng.IntN(2), "skip"
	switch {
	case r.days != nil:
		r.onHoliday = pick(rng, "next", "previous")
	case r.hours != nil:
		r.onHoliday = pick(rng, "skip", "next", "previous")
	}
	return r
}

// with returns the rule with the days that its calendar has.
func (r Rule) with(calendars []Calendar) Rule {
	if r.calendar > 0 {
		r.bound = &calendars[r.calendar-1]
	}
	return r
}

// calendarOf returns the calendar of a rule as package rules reads it, or nil if there is none.
func (r Rule) calendarOf() *rules.Calendar {
	if r.bound == nil {
		return nil
	}
	c, err := rules.ParseCalendar(CalendarName(r.calendar), r.bound.working, strings.Join(r.bound.days, "\n"))
	if err != nil {
		panic(err)
	}
	return c
}

// onWorkingDays leaves out a rule's times on holidays, or moves them. It looks at each wall time, and
// moves it day by day.
func (r Rule) onWorkingDays(span Window, zone *time.Location) []time.Time {
	var found []time.Time
	closed := r.bound.closed()
	if r.elapses() {
		for _, t := range r.walk(span) {
			if r.bound.works(closed, t.In(zone)) {
				found = append(found, t)
			}
		}
		return found
	}
	for wall := span.From.AddDate(0, 0, -20); !wall.After(span.To.AddDate(0, 0, 20)); wall = wall.Add(time.Minute) {
		if !r.reads(wall) {
			continue
		}
		moved, step := wall, map[string]int{"next": 1, "previous": -1}[r.onHoliday]
		for step != 0 && !r.bound.works(closed, moved) {
			moved = moved.AddDate(0, 0, step)
		}
		// A time that the clock leaves out on the holiday itself does not move.
		if r.bound.works(closed, moved) && len(r.instants(wall, zone)) > 0 {
			found = append(found, r.instants(moved, zone)...)
		}
	}
	return slices.DeleteFunc(found, func(t time.Time) bool { return t.Before(span.From) || t.After(span.To) })
}

// calendars returns all that the calendars of a scenario have ever been, by their number.
func (s *Scenario) calendars() [][]Calendar {
	all := make([][]Calendar, len(s.Calendars))
	for i, c := range s.Calendars {
		all[i] = []Calendar{c}
	}
	for _, st := range s.Steps {
		for _, c := range st.Changes {
			if c.What == "calendar" {
				all[c.Calendar-1] = append(all[c.Calendar-1], c.Closed)
			}
		}
	}
	return all
}

// Rules returns all rules in the scenario, by the text that the ledger has for them. A rule with a
// calendar is there with all days that its calendar has ever had.
func (s *Scenario) Rules() map[string]Rule {
	m, known, calendars := map[string]Rule{}, map[string]bool{}, s.calendars()
	add := func(r Rule) {
		if known[r.String()] || r.broken {
			return
		}
		known[r.String()] = true
		if r.calendar == 0 {
			m[r.canonical()] = r
			return
		}
		for i := range calendars[r.calendar-1] {
			r.bound = &calendars[r.calendar-1][i]
			m[r.canonical()] = r
		}
	}
	for _, r := range s.Shared {
		add(r)
	}
	for i := range s.Jobs {
		if own := s.Jobs[i].Own; own != nil {
			add(*own)
		}
	}
	for _, st := range s.Steps {
		for _, c := range st.Changes {
			if c.What == "rule" {
				add(c.Rule)
			}
		}
	}
	return m
}
