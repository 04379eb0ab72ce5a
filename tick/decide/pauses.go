package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// pauseHolds tells whether a pause keeps a run from being let go: one of the whole job, or of every schedule that the run's
// nominal time comes from.
func (d *decision) pauseHolds(r *store.Run) bool {
	if len(d.pauses) == 0 || d.jobPause() != nil {
		return len(d.pauses) > 0
	}
	held := false
	for i := range d.rules {
		l := &d.rules[i]
		if r.Requested() || !l.next(d, r.ScheduledFor.Add(-instant)).Equal(r.ScheduledFor) {
			continue
		}
		if d.pausedSince(l).IsZero() {
			return false
		}
		held = true
	}
	return held
}

// pausedSince is the begin of the oldest pause that holds a rule's nominal times now; zero: none does.
func (d *decision) pausedSince(l *activeRule) (since time.Time) {
	for i := range d.pauses {
		p := &d.pauses[i]
		if p.Holds(d.now) && (p.Scope != store.ScopeSchedule || p.SubjectID == l.ScheduleID) && (since.IsZero() || p.Since.Before(since)) {
			since = p.Since
		}
	}
	return since
}

// dueBy is the instant by which a nominal time must have come for this pass to decide it: that of the pass's beginning.
// What follows from its own runs is decided up to now, but a schedule finer than they are long is none of that. For a job of
// others it does not go on.
func (d *decision) dueBy() time.Time {
	if through := d.snapshot.Plan.DecidedThrough; d.othersJob && !through.IsZero() {
		return earlier(d.now, through)
	}
	if d.pass.Began.IsZero() {
		return d.now
	}
	return earlier(d.now, d.pass.Began)
}

// upTo is the instant up to which nominal times are decided now. A change is settled where it is noticed. While pauses hold
// all rules of a job, those in them stay undecided, so that who resumes it can still ask for them; an edit settles them,
// and nothing fires back over one.
func (d *decision) upTo() time.Time {
	if d.changed || d.snapshot.Stale || d.snapshot.Plan.DecidedThrough.IsZero() {
		return d.now
	}
	to := d.dueBy()
	for i := range d.rules {
		since := d.pausedSince(&d.rules[i])
		if since.IsZero() {
			return d.dueBy()
		}
		to = earlier(to, since.Add(-instant))
	}
	return to
}

// jobPause is the pause of the whole job that holds now.
func (d *decision) jobPause() *store.Pause {
	for i := range d.pauses {
		if p := &d.pauses[i]; p.Scope != store.ScopeSchedule && p.Holds(d.now) {
			return p
		}
	}
	return nil
}

// pauseEnds is when the first of the pauses ends by itself. Resumed by hand, the pause itself is the need. The nominal
// times wake the plan all the same: a pause whose row is deleted must not leave it asleep for ever.
func (d *decision) pauseEnds() (first time.Time) {
	for i := range d.pauses {
		p := &d.pauses[i]
		// That of a schedule whose link was just taken away is none of the job's any more.
		own := p.Scope != store.ScopeSchedule || slices.ContainsFunc(d.planRules, func(r store.Rule) bool { return r.ScheduleID == p.SubjectID })
		if own && p.Holds(d.now) && !p.Until.IsZero() && (first.IsZero() || p.Until.Before(first)) && !d.gone() {
			first = p.Until
		}
	}
	return first
}
