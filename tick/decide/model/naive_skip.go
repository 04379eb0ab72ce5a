package model

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// skip is a nominal time that somebody has decided not to run.
type skip struct {
	at       time.Time
	schedule int // the schedule that names it; -2: any schedule
}

const anySchedule = -2

func (k skip) of(schedule int) bool { return k.schedule == anySchedule || k.schedule == schedule }

func (t *tale) skipped(at time.Time, schedule int) bool {
	return slices.ContainsFunc(t.skips, func(k skip) bool { return k.at.Equal(at) && k.of(schedule) })
}

// skip skips the next times that are not skipped yet, and that the job would run if nothing changed.
func (t *tale) skip(now time.Time, c Change) {
	p, left := &t.policy, c.Count
	if p.Disabled || t.stuck || t.parked() {
		return
	}
	if p.MaxRuns > 0 {
		left = int(min(int64(left), p.MaxRuns-t.numbers))
	}
	from := later(now, t.through)
	if paused, until := t.pausedUntil(now); paused && until.IsZero() {
		return
	} else if paused {
		from = later(from, until.Add(-1))
	}
	var times []time.Time
	for i := range t.links {
		opens, ever := t.opens(now, i)
		if t.links[i].gone || c.Shared >= 0 && c.Shared != i || !ever {
			continue
		}
		for _, at := range t.rule(i).Within(t.n.s.Span, Window{later(from, opens.Add(-1)), t.n.s.Span.To}) {
			if !t.skipped(at, i) && (p.NotBefore.IsZero() || !at.Before(p.NotBefore)) && (p.NotAfter.IsZero() || !at.After(p.NotAfter)) {
				times = append(times, at)
			}
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	times = slices.CompactFunc(times, time.Time.Equal)
	for _, at := range times[:max(0, min(left, len(times)))] {
		k := skip{at, anySchedule}
		if c.Shared >= 0 {
			k.schedule = c.Shared
		}
		t.skips = append(t.skips, k)
	}
}

// opens returns the end of the pauses that hold a schedule, and whether they end by themselves.
func (t *tale) opens(now time.Time, schedule int) (at time.Time, ever bool) {
	for _, p := range t.n.pauses {
		switch {
		case p.Scope != "schedule" || p.Shared != schedule || !p.resumed.IsZero() || !p.Until.IsZero() && !p.Until.After(now):
		case p.Until.IsZero():
			return time.Time{}, false
		default:
			at = later(at, p.Until)
		}
	}
	return at, true
}

// unskip lets skipped times that have not come yet run again: all, or those that were skipped for one schedule.
func (t *tale) unskip(now time.Time, c Change) {
	if l := t.links[c.Shared]; c.Shared >= 0 && (l == nil || l.gone) {
		return
	}
	t.skips = slices.DeleteFunc(t.skips, func(k skip) bool {
		return k.at.After(later(now, t.through)) && (c.Shared < 0 || k.schedule == c.Shared)
	})
}

// lapse notes a time that a change of the definition ends, unless somebody had decided to skip it.
func (t *tale) lapse(schedule int, rule Rule, at time.Time, reason string) {
	if t.skipped(at, schedule) {
		reason = store.Skipped
	}
	t.note(schedule, rule, at, reason)
}

// forget drops the skips that were decided.
func (t *tale) forget() {
	t.skips = slices.DeleteFunc(t.skips, func(k skip) bool { return !k.at.After(t.through) })
}

// pausedUntil reports whether pauses hold the whole job, and until when. It takes the pause of the job
// that lasts longest. If there is none, and the job has only shared schedules that are all paused, it
// takes the pause that ends first. If until is zero, the pause has no end.
func (t *tale) pausedUntil(now time.Time) (paused bool, until time.Time) {
	var whole, one *interval
	held := map[int]bool{}
	ends := func(p *interval) time.Time {
		if p.Until.IsZero() {
			return t.n.s.Span.To
		}
		return p.Until
	}
	for _, p := range t.n.pauses {
		switch {
		case !p.covers(t, &t.policy) || !p.resumed.IsZero() || !p.Until.IsZero() && !p.Until.After(now):
		case p.Scope != "schedule" && (whole == nil || ends(p).After(ends(whole))):
			whole = p
		case p.Scope == "schedule" && !t.links[p.Shared].gone:
			if held[p.Shared] = true; one == nil || ends(p).Before(ends(one)) {
				one = p
			}
		}
	}
	shared := 0
	for i, l := range t.links {
		if i >= 0 && !l.gone {
			shared++
		}
	}
	if whole == nil && t.job.Own == nil && len(held) == shared {
		whole = one
	}
	if whole == nil {
		return false, time.Time{}
	}
	return true, whole.Until
}
