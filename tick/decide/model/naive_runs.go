package model

import (
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Nth returns the run that somebody cancels or tries again: of the runs of a job with which that can be done, in the
// order of their occurrences, the one at the place that the change gives. It returns nil if there is none.
func Nth(runs []*store.Run, c Change) *store.Run {
	list := slices.DeleteFunc(slices.Clone(runs), func(r *store.Run) bool {
		if c.What == "retry" { // what is not settled cannot be retried
			return r.State == store.Succeeded || r.SettledAt.IsZero()
		}
		return r.Ended()
	})
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(x, y *store.Run) int { return strings.Compare(x.Occurrence, y.Occurrence) })
	return list[c.Count%len(list)]
}

// Ask is what the commands run cancel and run retry do to a run.
func Ask(r *store.Run, what string, now time.Time) {
	switch {
	case what == "retry":
		r.State, r.HeldBy, r.ReadyAt, r.Attempt, r.Losses = store.Waiting, "", now, 0, 0
		r.StartedAt, r.FinishedAt, r.SettledAt, r.CancelAt, r.LeaseUntil = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	case r.CancelAt.IsZero():
		if r.CancelAt = now; r.State == store.Queued {
			r.State = store.Waiting
		}
	}
}

// ready reports whether a run may have to change its state.
func (t *tale) ready(now time.Time) bool {
	return slices.ContainsFunc(t.runs, func(r *store.Run) bool {
		return r.Ended() && r.SettledAt.IsZero() || r.State == store.Waiting && r.HeldBy == "" && !r.ReadyAt.After(now) ||
			r.State == store.Running && !r.LeaseUntil.IsZero() && !r.LeaseUntil.After(now)
	})
}

// settle takes the runs that have ended into account, in the order of their ends.
func (t *tale) settle(now time.Time) {
	ended := slices.DeleteFunc(slices.Clone(t.runs), func(r *store.Run) bool { return !r.Ended() || !r.SettledAt.IsZero() })
	slices.SortStableFunc(ended, func(x, y *store.Run) int { return x.FinishedAt.Compare(y.FinishedAt) })
	paused := false
	for _, r := range ended {
		r.SettledAt = now
		again := t.last == r && (t.lastState == store.Failed || t.lastState == store.Lost) // it was tried again by hand
		t.last, t.lastState = r, r.State
		switch r.State {
		case store.Succeeded:
			t.streak = 0
		case store.Failed, store.Lost:
			if !again {
				t.streak++
			}
			if !paused && (t.policy.OnError == "pause" || t.policy.PauseAfterFailures > 0 && t.streak >= t.policy.PauseAfterFailures) {
				paused, t.paused = true, true
				t.n.pauses = append(t.n.pauses, &interval{Change{Scope: "job", Job: t.job.Seed}, now, time.Time{}})
			}
		}
	}
}

// recoverExpired recovers runs whose holders have not reported in time. Each holder has half a minute
// more. The run is delivered again, as often as allowed, or is lost. One that is to be cancelled is not lost.
func (t *tale) recoverExpired(now time.Time) {
	for _, r := range t.runs {
		if r.State != store.Running || r.LeaseUntil.IsZero() || r.LeaseUntil.Add(30*time.Second).After(now) {
			continue
		}
		if r.Losses++; r.Losses < t.policy.MaxDeliveries || !r.CancelAt.IsZero() {
			r.State, r.ReadyAt = store.Waiting, now
		} else {
			r.State, r.FinishedAt = store.Lost, now
		}
	}
	t.settle(now)
}

// admit queues the runs that may start, the oldest first. If the policies have changed, those that nobody has taken wait for
// their turns again.
func (t *tale) admit(now time.Time, changed bool) {
	room := 1
	if t.policy.Overlap == "allow" {
		room = t.policy.MaxRunning
	}
	for _, r := range t.runs {
		if r.State == store.Waiting && !r.CancelAt.IsZero() { // nobody has it, or its holder never learned of that
			r.State, r.HeldBy, r.FinishedAt = store.Cancelled, "", now
		}
		if r.State == store.Queued && (t.stays(r, now) || changed && r.StartedAt.IsZero()) {
			r.State = store.Waiting
		}
		if !r.Ended() && (r.State != store.Waiting || !r.StartedAt.IsZero()) {
			room--
		}
	}
	for _, r := range t.runs {
		if r.Number == 0 {
			t.numbers++
			r.Number = t.numbers
		}
		switch {
		case r.State != store.Waiting:
		case !r.StartedAt.IsZero():
			if !r.ReadyAt.After(now) {
				r.State, r.ReadyAt = store.Queued, earlier(r.ReadyAt, later(r.CreatedAt, r.ScheduledFor)) // its place in the queue
			}
		case t.stays(r, now):
			r.HeldBy = "pause"
		case r.ReadyAt.After(now):
			r.HeldBy = ""
		case room <= 0:
			r.HeldBy = "predecessor"
		default:
			room--
			r.State, r.HeldBy = store.Queued, ""
		}
	}
	t.settle(now)
}

// holds returns the oldest pause that holds the job now. With a schedule, it looks at the pauses of
// that schedule, too.
func (t *tale) holds(now time.Time, schedule int) *interval {
	for _, p := range t.pausesNow() {
		if (p.Scope != "schedule" || schedule >= -1 && p.Shared == schedule) && !p.since.After(now) && p.end(now.Add(1)).After(now) {
			return p
		}
	}
	return nil
}

// stays reports whether a pause holds a run that has not begun: a pause of the job, or pauses of all
// schedules that name its time, by the rules as they are now; or of all schedules, if none names it any more.
func (t *tale) stays(r *store.Run, now time.Time) bool {
	if !r.StartedAt.IsZero() {
		return false
	}
	if t.holds(now, -2) != nil {
		return true
	}
	named, held, links, paused := 0, 0, 0, 0
	for i, l := range t.links {
		times, holds := t.rule(i).times(t.n.s.Span), t.holds(now, i) != nil
		if !l.gone {
			links++
		}
		if holds && !l.gone {
			paused++
		}
		if k := after(times, r.ScheduledFor.Add(-1)); k == len(times) || !times[k].Equal(r.ScheduledFor) {
			continue
		}
		if named++; holds {
			held++
		}
	}
	if named == 0 { // its schedules were edited
		named, held = links, paused
	}
	return !r.ScheduledFor.IsZero() && named > 0 && named == held
}

// setAside reports whether a pause holds a run that is open, while another schedule of the job is not paused.
func (t *tale) setAside(r *store.Run, now time.Time) bool {
	others := false
	for i, l := range t.links {
		others = others || !l.gone && t.holds(now, i) == nil
	}
	return others && !r.Ended() && t.stays(r, now)
}
