package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// activeRule is a rule of the job. Its nominal times after from are not decided yet.
type activeRule struct {
	store.Rule
	recurrence *rules.Rule
	from       time.Time
}

// next is the first nominal time after an instant; zero: there is none. If a rule uses up its budget
// of steps before it finds the answer, the job is parked, so that nothing loops and nothing is lost.
func (l *activeRule) next(d *decision, after time.Time) time.Time {
	t, err := l.recurrence.Next(after)
	if err != nil {
		d.park("rule %.200s: %v", l.recurrence, err)
	}
	return t
}

// prev is the last nominal time before an instant; zero: there is none. It parks the job like next.
func (l *activeRule) prev(d *decision, before time.Time) time.Time {
	t, err := l.recurrence.Prev(before)
	if err != nil {
		d.park("rule %.200s: %v", l.recurrence, err)
	}
	return t
}

// readRules compares the rules of the last plan with those of the definition. The times that an old
// rule still owed when it was changed or removed become a gap. The new rule counts from the change,
// never from before it. A command may commit its change after a decision that has not seen it: the new
// rule then counts from that decision.
func (d *decision) readRules() {
	through := d.plan.DecidedThrough
	if through.IsZero() {
		through = d.job().CreatedAt
	}
	d.replan = d.snapshot.Stale
	for _, r := range d.snapshot.Rules {
		changed := (r.Changed() || !r.Linked) && !(r.Lost && r.Input == "") // the loss of a schedule is a change only once
		from := through
		forgotten := r.Input == "" && d.snapshot.Recalled && !d.snapshot.Plan.DecidedThrough.IsZero()
		switch {
		case r.Input == "" && r.Linked && r.LinkedAt.IsZero(): // plain SQL has changed the link: the rule counts from now
			from = d.now
		case forgotten: // the plan was deleted: the rules count from the last record, or from an edit after it
			from = later(through, earlier(d.now, later(r.LinkedAt, r.ChangedAt)))
		case r.Input == "":
			from = earlier(d.now, later(r.LinkedAt, r.ChangedAt)) // no pass has seen an earlier text
		case changed && r.Linked && !r.ChangedAt.Equal(r.PlannedAt):
			from = earlier(d.now, later(through, r.ChangedAt))
		case changed:
			from = d.now // plain SQL records no instant of the change: it counts from now
		}
		if r.Linked && r.Schedule.Calendar != "" && r.Calendar == nil {
			d.parkWithoutCalendar(r, window{through, from})
			continue
		}
		if changed && r.Reread() {
			d.replan = true
			d.addRule(r, through, true)
			continue
		}
		if !changed && r.Linked && r.Schedule.Rule != "" && rules.Outdated(r.Ends) {
			d.replan = true
			d.addRule(r, through, rules.HasInstants(r.Text))
			continue
		}
		if changed && r.Linked && r.Input != "" {
			if since, more, same := d.stillDue(&r, window{through, from}); same {
				d.replan, d.changed = true, d.changed || more
				d.addRule(r, since, true)
				continue
			}
		}
		d.replan = d.replan || changed || !r.LinkPlanned
		d.changed = d.changed || changed
		if changed {
			d.lapseRule(r, window{through, from})
		}
		if r.Lost {
			r.Input, r.Text, r.Ends = "", "", ""
			d.planRules = append(d.planRules, r)
			d.park("job %s: schedule: the row of the schedule with the id %d was deleted; apply the file that has the schedule, or delete its row in job_schedules", d.job().FullName(), r.ScheduleID)
		}
		if !r.Linked {
			continue
		}
		d.addRule(r, from, changed)
		if n := len(d.rules); forgotten && n > 0 && d.rules[n-1].ScheduleID == r.ScheduleID { // the only text that is known
			d.lapse(&d.rules[n-1], window{later(through, later(r.LinkedAt, r.Schedule.CreatedAt)), from}, store.Edited)
		}
	}
}

// lapseRule makes a gap of the times that a rule of the plan still owed when it was changed or removed.
func (d *decision) lapseRule(r store.Rule, w window) {
	if r.Text == "" {
		return
	}
	if old, err := d.pass.rules.planned(&r); err == nil {
		d.lapse(&activeRule{r, old, w.from}, w, store.Edited)
	}
}

// noCalendar is the input of a rule whose calendar was missing when the rule was planned, so that the rule is planned again
// when the calendar is back.
const noCalendar = "\x1fno calendar"

// parkWithoutCalendar parks a job whose schedule names a calendar that does not exist: without the calendar, the job would
// run on holidays. What the rule owed until then is a gap, as after each other edit.
func (d *decision) parkWithoutCalendar(r store.Rule, owed window) {
	if !r.Changed() { // only the calendar is gone: its days are in the plan, and count until now
		owed.to = d.now
	}
	d.lapseRule(r, owed)
	d.replan = d.replan || r.Input != noCalendar || !r.LinkPlanned
	d.changed = d.changed || r.Text != ""
	r.Input, r.Text, r.Ends = noCalendar, "", ""
	d.planRules = append(d.planRules, r)
	what := "job " + d.job().FullName()
	if r.Schedule.Name != "" {
		what = "schedule " + r.Schedule.Name
	}
	d.park("%s: %v", what, errNoCalendar(&r.Schedule))
}

// stillDue reports (same) whether an edit of a calendar has left all times that were due in a window as they were. Such an
// edit takes no time away: the due times are decided as if there had been no edit. The rule then counts from since: new
// times before the first one that was due come too late. more reports whether such a time would become due later, because
// this decision leaves it open. Times outside of not_before and not_after are not times of the job.
func (d *decision) stillDue(r *store.Rule, w window) (since time.Time, more, same bool) {
	const most = 100
	if r.Calendar == nil || r.Text == "" {
		return since, false, false
	}
	old, err := d.pass.rules.planned(r)
	if err != nil {
		return since, false, false
	}
	became, err := d.pass.rules.defined(r, d.job())
	if err != nil {
		return since, false, false
	}
	was, err := d.between(old, w, most)
	if err != nil || len(was) == most {
		return since, false, false
	}
	first := w.to // just before the first time that was due
	if len(was) > 0 {
		first = was[0].Add(-instant)
	}
	is, err := d.between(became, window{first, w.to}, most)
	if err != nil || !slices.EqualFunc(was, is, time.Time.Equal) {
		return since, false, false
	}
	late, err := d.between(became, window{later(w.from, d.openFrom(w.from)), first}, 1)
	return first, len(late) > 0, err == nil
}

// between returns the valid times of a rule in a window, at most "most" of them.
func (d *decision) between(r *rules.Rule, w window, most int) (list []time.Time, err error) {
	for _, part := range d.validParts(w) {
		found, err := r.Between(part.from, part.to, most-len(list))
		if list = append(list, found...); err != nil || len(list) == most {
			return list, err
		}
	}
	return list, nil
}

// addRule parses a rule of the definition. If the rule does not parse, the job is parked, and the plan
// keeps the rule without a text.
func (d *decision) addRule(r store.Rule, from time.Time, changed bool) {
	var found *rules.Rule
	var err error
	if changed || r.Text == "" {
		found, err = d.pass.rules.defined(&r, d.job())
		if r.Input, r.Text, r.Ends = r.NewInput, "", ""; err == nil {
			r.Text, r.Ends = found.String(), found.Ends()
		}
	} else if found, err = d.pass.rules.planned(&r); err == nil {
		r.Ends = found.Ends()
	}
	d.planRules = append(d.planRules, r)
	if err != nil {
		what := "rule"
		if r.Schedule.Name != "" {
			what = "schedule " + r.Schedule.Name
		}
		d.park("%s: %v", what, err)
		return
	}
	d.rules = append(d.rules, activeRule{r, found, from})
}
