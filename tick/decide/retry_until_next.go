package decide

import (
	"github.com/dbjobs/dbjobs/store"
)

// endRetries ends the runs that are tried until the next occurrence, if the next occurrence comes now, or came while the run
// executed. They are settled before any other run is queued: such an end may pause the job. They also end if the occurrence
// becomes a gap because of a run that waits behind them: otherwise that run might wait for ever.
func (d *decision) endRetries(comes bool) {
	if !d.anyOpen(d.untilNext) {
		return
	}
	var active []openRun
	for _, r := range d.active {
		if !d.untilNext(&r.Run) || !comes && !d.cameAfterStart(&r.Run) {
			active = append(active, r)
			continue
		}
		r.State, r.HeldBy, r.FinishedAt = store.Failed, "", d.now
		d.settleRun(r.Run, r.read.State)
	}
	d.active = active
}

// cameAfterStart reports whether one of the open runs is for a nominal time that came after a run had started. While the run
// executes, another pass may decide such a time.
func (d *decision) cameAfterStart(r *store.Run) bool {
	return d.snapshot.Queue.Last.After(r.StartedAt) || d.anyOpen(func(x *store.Run) bool {
		return !x.Ended() && !x.Requested() && x.ID != r.ID && x.ScheduledFor.After(r.StartedAt)
	})
}

// untilNext reports whether a run waits for another attempt of a step that is tried until the next
// occurrence, and nobody has cancelled it.
func (d *decision) untilNext(r *store.Run) bool {
	return r.State == store.Waiting && r.Begun() && r.CancelAt.IsZero() && d.snapshot.UntilNext(r.Step)
}

// nextHasCome reports whether a run is tried until the next occurrence, and that occurrence has come
// since the pass began. The next pass decides that occurrence. For a job that is parked, none does: its tries go on.
func (d *decision) nextHasCome() bool {
	if d.plan.Parked != "" || d.gone() || d.job().Disabled || d.usedUp() || !d.dueBy().Before(d.now) || !d.anyOpen(d.untilNext) {
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
