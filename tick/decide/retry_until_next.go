package decide

import (
	"slices"

	"github.com/dbjobs/dbjobs/store"
)

// endRetries ends the runs that are tried until the next occurrence, if the next occurrence comes now, or came while the run
// executed. They are settled before any other run is queued: such an end may pause the job.
func (d *decision) endRetries(comes bool) {
	if !slices.ContainsFunc(d.active, d.untilNext) {
		return
	}
	active, was := d.active, d.statesRead
	d.active, d.statesRead = nil, nil
	for i, r := range active {
		if !d.untilNext(r) || !comes && !cameAfterStart(active, &r) {
			d.active, d.statesRead = append(d.active, r), append(d.statesRead, was[i])
			continue
		}
		r.State, r.HeldBy, r.FinishedAt = store.Failed, "", d.now
		d.settleRun(r, was[i])
	}
}

// cameAfterStart reports whether one of the runs is for a nominal time that came after a run had started. While the run
// executes, another pass may decide such a time.
func cameAfterStart(list []store.Run, r *store.Run) bool {
	return slices.ContainsFunc(list, func(x store.Run) bool {
		return !x.Ended() && !x.Requested() && x.ID != r.ID && x.ScheduledFor.After(r.StartedAt)
	})
}

// untilNext reports whether a run waits for another attempt of a step that is tried until the next
// occurrence, and nobody has cancelled it.
func (d *decision) untilNext(r store.Run) bool {
	return r.State == store.Waiting && r.Begun() && r.CancelAt.IsZero() && d.snapshot.UntilNext(r.Step)
}

// nextHasCome reports whether a run is tried until the next occurrence, and that occurrence has come
// since the pass began. The next pass decides that occurrence.
func (d *decision) nextHasCome() bool {
	if d.gone() || d.job().Disabled || d.usedUp() || !d.dueBy().Before(d.now) || !slices.ContainsFunc(d.active, d.untilNext) {
		return false
	}
	for i := range d.rules {
		l := &d.rules[i]
		if !d.pausedSince(l.ScheduleID).IsZero() {
			continue
		}
		from := later(d.plan.DecidedThrough, l.from)
		for _, w := range d.validParts(window{from, d.now}) {
			if t := l.next(d, w.from); !t.IsZero() && !t.After(w.to) {
				return true
			}
		}
	}
	return false
}
