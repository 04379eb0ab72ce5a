package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// A job with repeat_after has one nominal time at a time, in whole seconds. That time is decided like
// the times of a schedule:
//
//	created: at once, or at not_before ─> the run ends ─> repeat_after later ─> the run ends ─> …
//
// The next time is repeat_after later than plan.RepeatFrom. Every end of a run counts: success, failure,
// cancellation and loss. The end of a requested run, or of a run that was tried again, counts if it comes
// before the next time. While the run of the last time is open, there is no next time. If a time becomes
// a gap, the next time counts from that decision. If an edit would make a time due in the past, the time
// counts from the edit instead. If the run of the last time is gone, the time counts from the decision that
// finds this.

// addRepetition adds the nominal time by repeat_after to those of the rules.
func (d *decision) addRepetition() {
	was, after := &d.snapshot.Planned, d.job().RepeatAfter
	switch {
	case d.gone():
		d.plan.RepeatFrom = time.Time{}
		return
	case was.Known && was.RepeatAfter != after:
		d.changeRepeatAfter(was.RepeatAfter, after)
	}
	if after <= 0 {
		return
	}
	if d.lostRun() {
		d.plan.RepeatFrom = d.now
	}
	d.countEnds(after)
	if d.usedUp() && (!was.Known || was.MaxRuns == d.job().MaxRuns) { // it is finished
		return
	}
	if t := d.nextRepeat(after); !t.IsZero() {
		d.addRepeatRule(t, d.snapshot.Plan.DecidedThrough)
	}
}

// addRepeatRule adds the rule of this nominal time to those of the job.
func (d *decision) addRepeatRule(t, through time.Time) {
	if l, ok := d.repeatRule(t, through); ok {
		d.rules, d.repeatTime = append(d.rules, l), t
	}
}

// repeatRule makes a rule that gives only this nominal time. through is the instant up to which the
// times of that rule are decided.
func (d *decision) repeatRule(t, through time.Time) (l activeRule, ok bool) {
	r, err := rules.Parse("at "+t.UTC().Format("2006-01-02T15:04:05Z"), rules.Defaults{})
	if err != nil {
		d.park("repeat_after: %v", err)
		return l, false
	}
	if through.IsZero() { // the first time may be the second in which the job was created
		through = t.Add(-instant)
	}
	return activeRule{store.Rule{Linked: true, LinkPlanned: true}, r, through}, true
}

// nextRepeat is the next nominal time to decide with this repeat_after; zero: there is none until a run ends.
func (d *decision) nextRepeat(after store.Duration) time.Time {
	from, second := d.plan.RepeatFrom, time.Second
	if d.repeating() {
		return time.Time{}
	}
	t := d.job().CreatedAt.Truncate(second)
	if !from.IsZero() {
		t = from.Add(time.Duration(after)).Add(second - instant).Truncate(second)
	}
	if t = later(t, d.job().NotBefore.Add(second-instant).Truncate(second)); !rules.Holds(t) { // the end of time
		return time.Time{}
	}
	return t
}

// repeating reports whether the run of the last nominal time is open. Until that run ends, RepeatFrom is
// its nominal time.
func (d *decision) repeating() bool {
	is := func(r *store.Run) bool { return !r.Ended() && d.repeats(r) }
	return d.anyOpen(is) || slices.ContainsFunc(d.made, func(r store.Run) bool { return is(&r) })
}

// repeats reports whether a run is that of the last nominal time.
func (d *decision) repeats(r *store.Run) bool {
	return !r.Requested() && r.ScheduledFor.Equal(d.plan.RepeatFrom)
}

// lostRun reports whether the plan waits for the end of a run, and there is none whose end could come: somebody has deleted the
// run, or has brought back a plan that is older than that end. Other runs of the job, such as requested ones, change nothing.
func (d *decision) lostRun() bool {
	was := &d.snapshot.Plan
	waits := !was.RepeatFrom.IsZero() && was.RepeatFrom.Equal(was.LastScheduledFor) && was.NextRun.IsZero() && was.Parked == ""
	if !waits || d.snapshot.Stale || d.job().Disabled || d.unreadable > 0 {
		return false
	}
	return !d.anyOpen(d.repeats) && !slices.ContainsFunc(d.settled, func(r store.Run) bool { return d.repeats(&r) })
}

// countEnds moves RepeatFrom to the ends of the runs that this decision settles, in their order. An
// end after the next time does not postpone that time.
func (d *decision) countEnds(after store.Duration) {
	for _, r := range d.settled {
		end, from := earlier(r.FinishedAt, d.now), d.plan.RepeatFrom
		own := d.repeats(&r)
		if t := d.nextRepeat(after); own || !t.IsZero() && !end.After(t) {
			d.plan.RepeatFrom = later(from, end)
		}
	}
	d.settled = nil
}

// changeRepeatAfter makes a gap of the time that the job still owed before repeat_after was changed.
func (d *decision) changeRepeatAfter(was, is store.Duration) {
	change, through := d.policyChange(), d.snapshot.Plan.DecidedThrough
	if was > 0 {
		d.countEnds(was)
		if t := d.nextRepeat(was); !t.IsZero() && !t.After(change) && t.After(through) {
			if l, ok := d.repeatRule(t, through); ok {
				d.gap(&l, window{through, change}, store.Edited)
			}
			d.plan.RepeatFrom = change
		}
	} else {
		d.plan.RepeatFrom = earlier(d.snapshot.Plan.LastFinishedAt, change) // the end may be of a clock that was ahead
	}
	if is == 0 {
		d.plan.RepeatFrom = time.Time{}
	} else if t := d.nextRepeat(is); !t.IsZero() && !t.After(change) {
		d.plan.RepeatFrom = change
	}
}

// advanceRepetition notes what was decided for the nominal time, and replaces it with the next one.
func (d *decision) advanceRepetition() {
	if t := d.repeatTime; !t.IsZero() {
		d.rules, d.repeatTime = d.rules[:len(d.rules)-1], time.Time{}
		switch {
		case slices.ContainsFunc(d.made, func(r store.Run) bool { return !r.Requested() && r.ScheduledFor.Equal(t) }):
			d.plan.RepeatFrom = t
		case !t.After(d.plan.DecidedThrough):
			d.plan.RepeatFrom = d.now
		}
	}
	after := d.job().RepeatAfter
	if after <= 0 || d.gone() {
		return
	}
	d.countEnds(after)
	if t := d.nextRepeat(after); !t.IsZero() {
		if !t.After(d.dueBy()) { // a pause holds it: wake in case the pause's row is deleted
			t = d.now.Add(time.Duration(after)).Add(time.Second - instant).Truncate(time.Second)
		}
		if rules.Holds(t) {
			d.addRepeatRule(t, d.now)
		}
	}
}
