package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// readPauses sets apart the pauses that an edit of the job's tags or owner has left: they hold nothing now, but they held what was
// due before the edit.
func (d *decision) readPauses() {
	for _, p := range d.snapshot.Pauses {
		if p.Names(d.job().Owner, d.job().Tags) {
			d.pauses = append(d.pauses, p)
		} else {
			d.left = append(d.left, p)
		}
	}
}

// heldBy returns the window in which a pause holds nominal times. Up to the change of the policies, the old owner and tags say
// whether it does; after it, the new ones.
func (d *decision) heldBy(p *store.Pause) window {
	j, was := d.job(), &d.snapshot.Planned
	w := window{p.Since.Add(-instant), p.Ends(d.now.Add(instant)).Add(-instant)} // a time at the exact end of a pause is free
	if !p.Names(j.Owner, j.Tags) {
		w.to = earlier(w.to, d.policyChange())
	} else if was.Known && !p.Names(was.Owner, was.Tags) {
		w.from = later(w.from, d.policyChange())
	}
	return w
}

// pauseHolds reports whether a pause holds back a run: either a pause of the whole job, or pauses of all
// schedules that give the run's nominal time. If none gives it any more, because they were edited, these are all schedules.
func (d *decision) pauseHolds(r *store.Run) bool {
	if len(d.pauses) == 0 || d.jobPause() != nil {
		return len(d.pauses) > 0
	}
	if r.Requested() {
		return false
	}
	held := false
	for i := range d.rules {
		l := &d.rules[i]
		if !l.next(d, r.ScheduledFor.Add(-instant)).Equal(r.ScheduledFor) {
			continue
		}
		if d.pausedSince(l.ScheduleID).IsZero() {
			return false
		}
		held = true
	}
	return held || d.allPaused()
}

// setAside reports whether pauses of schedules hold back a run while other schedules of the job go on. The run is not in the way
// of their times: otherwise a pause of one schedule would keep those from running, too.
func (d *decision) setAside(r *store.Run) bool {
	open := r.State == store.Queued || r.State == store.Waiting
	return open && !r.Begun() && d.jobPause() == nil && !d.allPaused() && d.pauseHolds(r)
}

// allPaused reports whether pauses hold all schedules of the job, of which there is one at least.
func (d *decision) allPaused() bool {
	free := func(r store.Rule) bool { return r.Linked && d.pausedSince(r.ScheduleID).IsZero() }
	return d.links() > 0 && !slices.ContainsFunc(d.snapshot.Rules, free)
}

// pausedSince is the beginning of the oldest pause that holds the nominal times of a schedule now;
// zero: there is none.
func (d *decision) pausedSince(schedule int64) (since time.Time) {
	for i := range d.pauses {
		p := &d.pauses[i]
		if p.Holds(d.now) && (p.Scope != store.ScopeSchedule || p.SubjectID == schedule) && (since.IsZero() || p.Since.Before(since)) {
			since = p.Since
		}
	}
	return since
}

// dueBy is the instant up to which this pass decides nominal times: the beginning of the pass. Later
// times are left to the next pass. Otherwise a pass would never end if the runs of a schedule take
// longer than the time between them. For a job that this host cannot run, dueBy is where the last
// decision ended.
func (d *decision) dueBy() time.Time {
	if through := d.snapshot.Plan.DecidedThrough; d.othersJob && !through.IsZero() {
		return earlier(d.now, through)
	}
	if d.pass.Began.IsZero() {
		return d.now
	}
	return earlier(d.now, d.pass.Began)
}

// upTo is the instant up to which nominal times are decided now. While pauses hold all rules of a
// job, the times in the pauses stay undecided, so that the command that resumes the job can
// still ask for them. After a change of what the nominal times depend on, everything up to now is decided: no time from before
// such a change becomes due later.
func (d *decision) upTo() time.Time {
	if d.changed || d.endsOpen() || d.snapshot.Plan.DecidedThrough.IsZero() {
		return d.now
	}
	return d.openFrom(d.snapshot.Plan.DecidedThrough)
}

// endsOpen reports whether the job was edited so that the times before the edit cannot stay open: the next decisions do not know
// the policies by which those times are judged. Nor do they if the job rests.
func (d *decision) endsOpen() bool {
	is := d.job().PlannedAs()
	return d.snapshot.Stale && (!d.snapshot.Planned.Equal(&is) || d.rests())
}

// openFrom is the instant after which a decision leaves nominal times open if nothing has changed. through is where the
// last decision ended.
func (d *decision) openFrom(through time.Time) time.Time {
	if d.rests() {
		return through
	}
	to, held := d.dueBy(), false
	for i := range d.snapshot.Rules {
		r := &d.snapshot.Rules[i]
		if !r.Linked {
			continue
		}
		since := d.pausedSince(r.ScheduleID)
		if since.IsZero() {
			return d.dueBy()
		}
		to, held = earlier(to, since.Add(-instant)), true
	}
	if since := d.pausedSince(0); !held && !d.repeatTime.IsZero() && !since.IsZero() {
		return earlier(to, since.Add(-instant))
	}
	return to
}

// jobPause returns a pause that holds the whole job now; nil: there is no such pause.
func (d *decision) jobPause() *store.Pause {
	for i := range d.pauses {
		if p := &d.pauses[i]; p.Scope != store.ScopeSchedule && p.Holds(d.now) {
			return p
		}
	}
	return nil
}

// pauseEnds is the earliest instant at which a pause ends at its set time. When somebody ends a pause,
// the row of the pause wakes the job. Nominal times also wake a paused job, so that the job does not
// sleep for ever if the row of its pause is deleted.
func (d *decision) pauseEnds() (first time.Time) {
	for i := range d.pauses {
		p := &d.pauses[i]
		// A pause of a schedule that the job no longer uses does not count.
		own := p.Scope != store.ScopeSchedule || slices.ContainsFunc(d.planRules, func(r store.Rule) bool { return r.ScheduleID == p.SubjectID })
		if own && p.Holds(d.now) && !p.Until.IsZero() && (first.IsZero() || p.Until.Before(first)) && !d.gone() {
			first = p.Until
		}
	}
	return first
}
