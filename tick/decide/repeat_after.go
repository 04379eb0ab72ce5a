package decide

import (
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// A job with repeat_after has one nominal time at a time, in whole seconds, which is decided as those of a schedule are:
//
//	made: at once, or at not_before ─> its run ends ─> so long after the end ─> that run ends ─> so long after the end …
//
// It counts from plan.RepeatFrom. Whatever ends a run counts (success, failure, cancellation, loss), and so does a run on
// request or one that is tried again, if it ends before the time has come. While the run of the last time is open, there
// is no next. A time that has come and does not run (a gap) counts as an end when that is decided. An edit brings nothing
// back: what would be due by it already counts from it.

// addRepetition finds the nominal time, and lets it be decided beside those of the rules.
func (d *decision) addRepetition() {
	switch was := &d.snapshot.Planned; {
	case d.gone():
		d.plan.RepeatFrom = time.Time{}
		return
	case was.Known && was.RepeatAfter != d.job().RepeatAfter:
		d.changeRepeatAfter(time.Duration(was.RepeatAfter))
	}
	if d.job().RepeatAfter <= 0 {
		return
	}
	d.countEnds()
	limit, was := d.job().MaxRuns, d.snapshot.Planned
	if limit > 0 && d.plan.RunsMade >= limit && (!was.Known || was.MaxRuns == limit) { // it is finished
		return
	}
	t := d.nextRepeat()
	through := d.snapshot.Plan.DecidedThrough
	if !t.IsZero() {
		d.addRepeatRule(t, through)
	}
}

// addRepeatRule makes a rule of the nominal time, which names it alone.
func (d *decision) addRepeatRule(t, through time.Time) {
	r, err := rules.Parse("at "+t.UTC().Format("2006-01-02T15:04:05Z"), rules.Defaults{})
	if err != nil {
		d.park("repeat_after: %v", err)
		return
	}
	if through.IsZero() { // the first may be the second in which the job was made
		through = t.Add(-instant)
	}
	d.rules = append(d.rules, activeRule{store.Rule{Linked: true, LinkPlanned: true}, r, through})
	d.repeatTime = t
}

// nextRepeat is the nominal time to be decided next; zero: there is none until a run ends.
func (d *decision) nextRepeat() time.Time {
	from, second := d.plan.RepeatFrom, time.Second
	if d.repeating() {
		return time.Time{}
	}
	t := d.job().CreatedAt.Truncate(second)
	if !from.IsZero() {
		t = from.Add(time.Duration(d.job().RepeatAfter)).Add(second - instant).Truncate(second)
	}
	if t = later(t, d.job().NotBefore.Add(second-instant).Truncate(second)); !rules.Holds(t) { // the end of time
		return time.Time{}
	}
	return t
}

// repeating: the run of the last nominal time is open. Until it ends, that time is what RepeatFrom says.
func (d *decision) repeating() bool {
	is := func(list []store.Run) bool {
		for i := range list {
			if r := &list[i]; !r.Ended() && !r.Requested() && r.ScheduledFor.Equal(d.plan.RepeatFrom) {
				return true
			}
		}
		return false
	}
	return is(d.active) || is(d.made)
}

// countEnds counts from the ends of the runs that were settled, in their order. One that came after the next time does not
// take it back.
func (d *decision) countEnds() {
	for _, r := range d.settled {
		end, from := earlier(r.FinishedAt, d.now), d.plan.RepeatFrom
		own := !r.Requested() && r.ScheduledFor.Equal(from)
		if t := d.nextRepeat(); own || !t.IsZero() && !end.After(t) {
			d.plan.RepeatFrom = later(from, end)
		}
	}
	d.settled = nil
}

// changeRepeatAfter settles what the job owed before repeat_after was changed.
func (d *decision) changeRepeatAfter(was time.Duration) {
	change, is := d.policyChange(), d.job().RepeatAfter
	if was > 0 {
		d.job().RepeatAfter = store.Duration(was)
		d.countEnds()
		if t := d.nextRepeat(); !t.IsZero() && !t.After(change) && t.After(d.snapshot.Plan.DecidedThrough) {
			d.addRepeatRule(t, d.snapshot.Plan.DecidedThrough)
			d.gap(&d.rules[len(d.rules)-1], window{d.snapshot.Plan.DecidedThrough, change}, store.Edited)
			d.rules, d.repeatTime, d.plan.RepeatFrom = d.rules[:len(d.rules)-1], time.Time{}, change
		}
		d.job().RepeatAfter = is
	} else {
		d.plan.RepeatFrom = d.snapshot.Plan.LastFinishedAt
	}
	if is == 0 {
		d.plan.RepeatFrom = time.Time{}
	} else if t := d.nextRepeat(); !t.IsZero() && !t.After(change) {
		d.plan.RepeatFrom = change
	}
}

// advanceRepetition takes what was decided into account, and puts the next nominal time in the place of the last.
func (d *decision) advanceRepetition() {
	if t := d.repeatTime; !t.IsZero() {
		d.rules, d.repeatTime = d.rules[:len(d.rules)-1], time.Time{}
		switch {
		case d.madeRunFor(t):
			d.plan.RepeatFrom = t
		case !t.After(d.plan.DecidedThrough):
			d.plan.RepeatFrom = d.now
		}
	}
	if d.job().RepeatAfter <= 0 || d.gone() {
		return
	}
	d.countEnds()
	if t := d.nextRepeat(); !t.IsZero() {
		if !t.After(d.dueBy()) { // a pause holds it: this wakes the plan, where its row is deleted
			t = d.now.Add(time.Duration(d.job().RepeatAfter)).Add(time.Second - instant).Truncate(time.Second)
		}
		if rules.Holds(t) {
			d.addRepeatRule(t, d.now)
		}
	}
}

// madeRunFor tells that this decision made the run of a nominal time.
func (d *decision) madeRunFor(t time.Time) bool {
	for i := range d.made {
		if !d.made[i].Requested() && d.made[i].ScheduledFor.Equal(t) {
			return true
		}
	}
	return false
}
