package decide

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// occurrences decides the nominal times up to now: each becomes a run, or it lies in a gap. If a rule
// parks the job while this is done, everything is undone, and is decided later.
func (d *decision) occurrences() {
	before := *d
	before.active, before.rules = slices.Clone(d.active), slices.Clone(d.rules)
	d.decideOccurrences()
	if why := d.plan.Parked; why != "" {
		*d = before
		d.plan.Parked = why
	}
}

func (d *decision) decideOccurrences() {
	switch was := &d.snapshot.Planned; {
	case d.gone():
		d.skipAllDue(store.Edited)
		return
	case d.job().Disabled:
		d.startsNow()
		if d.changed || d.snapshot.Stale || !d.rests() {
			d.skipAllDue(store.Disabled)
		}
		return
	case was.Known && was.Disabled:
		d.skipDueBeforeChange(store.Disabled)
	case was.Known && was.MaxRuns > 0 && d.snapshot.Plan.RunsMade >= was.MaxRuns: // max_runs was reached, and was then raised
		d.skipDueBeforeChange(store.Edited)
	}
	// DecidedThrough never moves backwards: the database's clock may jump back, and two ticks may decide in reverse order.
	d.plan.DecidedThrough = later(d.upTo(), d.snapshot.Plan.DecidedThrough)
	owed := make([][]window, len(d.rules))
	for i := range d.rules {
		owed[i] = d.owed(&d.rules[i])
	}
	d.applyPolicies(owed)
	if d.startsNow() && !d.usedUp() {
		d.made = append(d.made, d.newRun(store.OccurrenceStart(d.pass.StartupID)))
	}
}

// startsNow notes the start of the host that the tick reports, and reports whether the job is to run for it. Each start is noted
// once, also while the job is disabled: who enables the job later does not mean a start that is over.
func (d *decision) startsNow() bool {
	id := d.pass.StartupID
	if id == "" || d.othersJob || !d.job().OnStartup || d.plan.KnowsStartup(id) || d.snapshot.Started {
		return false
	}
	d.plan.AddStartup(id)
	return !d.job().Disabled
}

// newRun numbers a new run of the job, which is ready now.
func (d *decision) newRun(occurrence string) store.Run {
	d.plan.RunsMade++
	return store.Run{JobID: d.plan.JobID, Number: d.plan.RunsMade, Occurrence: occurrence, State: store.Waiting,
		Queue: d.job().Queue, Priority: d.job().Priority, ReadyAt: d.now}
}

// rests reports whether no nominal time can become a run until the definition changes: the job is disabled, or its max_runs
// are used up. Unless the definition has changed, such a job decides no time, whatever has woken it, such as a run that is
// still open. The change decides what was due before it.
func (d *decision) rests() bool {
	return !d.snapshot.Plan.DecidedThrough.IsZero() && (d.job().Disabled || d.job().UsedUp(d.snapshot.Plan.RunsMade))
}

// usedUp reports whether the job has made as many runs as max_runs allows.
func (d *decision) usedUp() bool { return d.job().UsedUp(d.plan.RunsMade) }

// applyPolicies makes runs of the nominal times that are owed, as far as the policies allow. The other
// times become gaps. From the oldest time on: times up to missed are gaps by the policy missed, then
// times up to overLimit are gaps by max_runs, and the rest becomes runs, or gaps by overlap.
func (d *decision) applyPolicies(owed [][]window) {
	before := func(due []time.Time) time.Time {
		if len(due) == 0 {
			return d.now
		}
		return due[0].Add(-instant)
	}
	due := d.dueTimes(owed)
	missed := before(due)
	if d.usedUp() { // all times are beyond max_runs, which no pass has missed
		due, missed = nil, time.Time{}
	}
	d.endRetries(len(due) > 0)
	if limit := d.job().MaxRuns; limit > 0 {
		due = due[max(0, len(due)-int(max(0, limit-d.plan.RunsMade))):]
	}
	overLimit := before(due)
	overlaps := d.overlaps()
	for i := range d.rules {
		for _, w := range owed[i] {
			d.gap(&d.rules[i], window{w.from, earlier(w.to, missed)}, store.Missed)
			d.gap(&d.rules[i], window{later(w.from, missed), earlier(w.to, overLimit)}, store.OverLimit)
			if overlaps {
				d.gap(&d.rules[i], window{later(w.from, overLimit), w.to}, store.Overlap)
			}
		}
	}
	if overlaps || len(due) == 0 {
		return
	}
	if d.job().Overlap == store.OverlapReplace {
		d.replace(due[len(due)-1])
	}
	d.made = slices.Grow(d.made, len(due))
	for _, t := range due {
		d.makeRun(t)
	}
}

// skipDueBeforeChange makes gaps of the times that were due before the policies changed. Later times
// are decided as usual.
func (d *decision) skipDueBeforeChange(reason string) {
	from := d.policyChange()
	for i := range d.rules {
		l := &d.rules[i]
		d.lapse(l, window{l.from, from}, reason)
		l.from = later(l.from, from)
	}
}

// skipAllDue makes gaps of all times that are due, with one reason.
func (d *decision) skipAllDue(reason string) {
	d.plan.DecidedThrough = later(d.now, d.snapshot.Plan.DecidedThrough)
	for i := range d.rules {
		d.lapse(&d.rules[i], window{d.rules[i].from, d.now}, reason)
	}
}

// dueTimes returns the nominal times that may run by the policies missed and missed_within, the
// oldest first.
func (d *decision) dueTimes(owed [][]window) []time.Time {
	most := 1
	if d.job().Missed == store.MissedAll {
		most = d.job().MissedLimit
	}
	var found []time.Time
	for i := range d.rules {
		found = append(found, d.newest(&d.rules[i], owed[i], most)...)
	}
	slices.SortFunc(found, time.Time.Compare)
	found = slices.CompactFunc(found, time.Time.Equal) // two rules may give the same instant
	found = found[max(0, len(found)-most):]
	tooOld := func(t time.Time) bool {
		age := d.now.Sub(t)
		if within := time.Duration(d.job().MissedWithin); within > 0 && age > within {
			return true
		}
		return d.job().Missed == store.MissedSkip && age > time.Duration(d.job().MissedGrace+d.job().Jitter)
	}
	return slices.DeleteFunc(found, tooOld)
}

// newest returns the newest nominal times of a rule in the windows, at most "most" of them.
func (d *decision) newest(l *activeRule, owed []window, most int) []time.Time {
	var found []time.Time
	for _, w := range slices.Backward(owed) {
		t := l.prev(d, w.to.Add(instant))
		for ; !t.IsZero() && t.After(w.from) && len(found) < most; t = l.prev(d, t) {
			found = append(found, t)
		}
	}
	return found
}

// overlaps reports whether due times become gaps because other runs are active. All due times of one
// decision are judged together, against the runs of earlier decisions.
func (d *decision) overlaps() bool {
	waits, active, begins := false, d.snapshot.Queue.Runs > 0, d.begins()
	for i := range d.active {
		r := &d.active[i]
		if r.State != store.Running && !r.CancelAt.IsZero() || d.setAside(&r.Run) { // this decision cancels or holds it
			continue
		}
		// A run that was delivered before does not count as waiting: it waits for its next attempt, or
		// it was opened again on request.
		waits = waits || r.State == store.Waiting && r.Fence == 0 && !r.Requested() && r.ID != begins
		active = active || !r.Ended() && !r.ToCome(d.now)
	}
	return d.job().Overlap == store.OverlapWait && waits || d.job().Overlap == store.OverlapSkip && active
}

// begins is the id of the run that has waited only for the end of its jitter, and that this decision queues; empty: there is
// none. A tick comes with the next nominal time rather than at the end of a jitter, so that run begins before this time counts.
func (d *decision) begins() string {
	if g := d.snapshot.Group; g != nil && g.Active >= g.MaxRunning { // it goes on waiting, for its group
		return ""
	}
	if d.snapshot.Queue.Runs > 0 {
		return ""
	}
	first := ""
	for i := range d.active {
		switch r := &d.active[i]; {
		case r.UnderWay() || d.unreadable > 0:
			return ""
		case first != "" || r.Ended() || r.ReadyAt.After(d.now) || !r.CancelAt.IsZero() || d.pauseHolds(&r.Run):
		case r.Requested() || r.HeldBy != "" || r.Fence > 0: // another kind of wait, which is over now
			return ""
		default:
			first = r.ID
		}
	}
	return first
}

// followed reports whether newest is the nominal time that comes next after that of a run.
func (d *decision) followed(r *store.Run, newest time.Time) bool {
	for i := range d.rules {
		if t := d.rules[i].next(d, r.ScheduledFor); !t.IsZero() && t.Before(newest) {
			return false
		}
	}
	return true
}

// replace makes room for newer occurrences. It asks the holders of running runs to stop, and cancels
// the other runs. A run that begins now stays, unless a time between it and the newest one was missed: otherwise a job whose
// jitter ends between two ticks would never run.
func (d *decision) replace(newest time.Time) {
	begins := d.begins()
	for i := range d.active {
		switch r := &d.active[i]; {
		case r.Requested(): // a request is never replaced
		case r.Ended() || !r.CancelAt.IsZero(): // somebody has cancelled it, and that reason stays on record
		case r.ID == begins && d.followed(&r.Run, newest):
		case r.State == store.Running:
			d.cancel = append(d.cancel, r.ID)
		default:
			r.State, r.HeldBy, r.FinishedAt, r.Error = store.Cancelled, "", d.now, "replaced by a newer occurrence"
		}
	}
}

// makeRun makes the run of a nominal time. The data interval of the run begins at the nominal time of
// the run before.
func (d *decision) makeRun(t time.Time) {
	start := d.plan.LastScheduledFor
	if start.IsZero() {
		for i := range d.rules {
			start = later(start, d.rules[i].prev(d, t))
		}
		if start.IsZero() && !d.repeatTime.IsZero() {
			start = t.Add(-time.Duration(d.job().RepeatAfter))
		}
	}
	d.plan.LastScheduledFor = t
	d.noteLate(t)
	r := d.newRun(store.OccurrenceAt(t))
	r.ScheduledFor, r.IntervalStart, r.IntervalEnd, r.ReadyAt = t, start, t, later(d.now, t.Add(d.jitter(t)))
	d.made = append(d.made, r)
}

// jitter is the delay of an occurrence. It is always the same for one occurrence, and less than the
// time until the next occurrence.
func (d *decision) jitter(t time.Time) time.Duration {
	most := time.Duration(d.job().Jitter)
	if most == 0 {
		return 0
	}
	for i := range d.rules {
		if n := d.rules[i].next(d, t); !n.IsZero() {
			most = min(most, n.Sub(t))
		}
	}
	if next := time.Duration(d.job().RepeatAfter); next > 0 { // the next time is at least this much later
		most = min(most, next)
	}
	return Jitter(d.job().FullName(), t, most)
}

// Jitter spreads a job's occurrences over [0, most), in whole milliseconds.
func Jitter(job string, t time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(job + t.UTC().String())) // never fails
	return time.Duration(h.Sum64() % uint64(most)).Truncate(time.Millisecond)
}

// gap records that the valid nominal times of a rule in a window do not run. A window without such
// a time leaves no record.
func (d *decision) gap(l *activeRule, w window, reason string) {
	none := func(w window) bool {
		t := l.next(d, w.from)
		return t.IsZero() || t.After(w.to)
	}
	if w.empty() || none(w) {
		return
	}
	for _, w := range d.validParts(w) {
		if !none(w) {
			d.gaps = append(d.gaps, store.Gap{JobID: d.plan.JobID, ScheduleID: l.ScheduleID, From: w.from, Through: w.to, Reason: reason, Rule: l.recurrence.String()})
			d.noteMissed(l, w, reason)
		}
	}
}
