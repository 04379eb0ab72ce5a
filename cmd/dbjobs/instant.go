package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// direction says whether a duration counts from now on, or back from now.
type direction int

const (
	ago   direction = -1
	ahead direction = 1
)

// instantFlag reads a time, without a database. It can be an instant with its offset from UTC. It can be a day,
// yesterday, today or tomorrow, with a time of day or without, in the zone in which people write times. Or it can be a
// duration, from now on or back from now. An empty text is the zero time.
func instantFlag(flag, text string, d direction) (time.Time, error) {
	return instantFrom(flag, text, d, time.Now())
}

// instantIn is instantFlag with a database: a length counts from the clock of the database, which also decides when the time has
// come, and by which everything on record is dated. The clock of this host may differ.
func instantIn(ctx context.Context, s *store.Store, flag, text string, d direction) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return now, err
	}
	return instantFrom(flag, text, d, now)
}

// instantFrom is instantFlag with another instant for now.
func instantFrom(flag, text string, d direction, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now = now.In(report.Written())
	t, ok := readInstant(text, now, d)
	if _, exact := exactInstant(text, now, d); ok && !exact && noZone != "" && report.Written() == time.Local {
		return t, badInput("--%s: the variable TZ is %s, which names no time zone; correct it, or give the time with its offset, such as 2026-12-01T08:00:00+01:00", flag, shown(noZone))
	}
	if !ok {
		return t, badInput("--%s: found %s, want a time such as 2026-12-01T08:00:00Z, 2026-12-01, tomorrow 08:00, or 2h", flag, shown(text))
	}
	return t.UTC(), nil
}

// inOrder refuses a span of --since and --until in which there is no time.
func inOrder(since, until time.Time) error {
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return badInput("--until: %s is not after %s", report.Instant(until), report.Instant(since))
	}
	return nil
}

// exactInstant reads a time that is the same in each zone.
func exactInstant(text string, now time.Time, d direction) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, true
	}
	length, _ := strings.CutSuffix(text, map[direction]string{ago: " ago", ahead: " from now"}[d])
	if length, err := store.ParseDuration(length); err == nil {
		return now.Add(time.Duration(d) * time.Duration(length)), true
	}
	return now, strings.EqualFold(text, "now")
}

// readInstant reads a time relative to now, in the zone of now.
func readInstant(text string, now time.Time, d direction) (time.Time, bool) {
	if t, exact := exactInstant(text, now, d); exact {
		return t, true
	}
	day, clock, timed := cutDay(text)
	wall := now
	if !countsFromToday(day) {
		var err error
		if wall, err = time.Parse(time.DateOnly, day); err != nil {
			return wall, false
		}
	}
	year, month, date := wall.Date()
	switch strings.ToLower(day) {
	case "yesterday":
		date--
	case "tomorrow":
		date++
	}
	var at time.Time
	if timed {
		var err error
		if at, err = time.Parse("15:04:05", clock); err != nil {
			if at, err = time.Parse("15:04", clock); err != nil {
				return at, false
			}
		}
	}
	return onWall(time.Date(year, month, date, at.Hour(), at.Minute(), at.Second(), 0, time.UTC), now.Location()), true
}

// cutDay cuts a time into its day and its time of day, if it has one.
func cutDay(text string) (day, clock string, timed bool) {
	text = strings.TrimSpace(text)
	if day, clock, timed = strings.Cut(text, " "); !timed {
		day, clock, timed = strings.Cut(text, "T")
	}
	return day, clock, timed
}

// countsFromToday reports whether a day is another one tomorrow.
func countsFromToday(day string) bool {
	return slices.Contains([]string{"yesterday", "today", "tomorrow"}, strings.ToLower(day))
}

// untilAs says how a time to come was given, as a pause keeps it: the present decides what a length and tomorrow mean.
func untilAs(text string) string {
	exact, ok := exactInstant(text, time.Time{}, ahead)
	later, _ := exactInstant(text, time.Time{}.Add(time.Second), ahead)
	day, _, _ := cutDay(text)
	switch {
	case ok && !later.Equal(exact):
		return store.UntilLength
	case !ok && countsFromToday(day):
		return store.UntilDay
	}
	return ""
}

// onWall returns the instant at which a clock in a zone shows the date and the time of wall. It reads a time that a clock
// change leaves out or repeats as rules do by default: with the offset before the change.
func onWall(wall time.Time, zone *time.Location) time.Time {
	year, month, day := wall.Date()
	at := time.Date(year, month, day, wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	_, offset := at.Zone()
	if gap := wall.Sub(at.Add(time.Duration(offset) * time.Second)); gap > 0 { // left out, and read with the offset after the change
		return at.Add(gap)
	}
	start, _ := at.ZoneBounds()
	_, was := start.Add(-time.Second).Zone()
	if first := at.Add(time.Duration(offset-was) * time.Second); first.Before(start) { // repeated
		return first
	}
	return at
}
