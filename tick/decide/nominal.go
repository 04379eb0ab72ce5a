package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Nominal finds the nominal times of a job by its current definition.
type Nominal struct {
	job       *store.Job
	rules     []*rules.Rule
	ids       []int64           // the ids of the schedules of the rules
	calendars []*rules.Calendar // the calendars of the rules, with the names of days; nil: the rule has none
	opens     []time.Time       // the instants from which the rules count, while their schedules are paused; nil: all count
}

// NewNominal reads the rules of a job.
func NewNominal(j *store.Job, list []store.Rule) (*Nominal, error) {
	n := &Nominal{job: j}
	if err := resolveStart(j); err != nil {
		return nil, err
	}
	var known ruleCache
	for i := range list {
		r, err := known.current(&list[i], j)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.FullName(), err)
		}
		n.rules, n.ids = append(n.rules, r), append(n.ids, list[i].ScheduleID)
		n.calendars = append(n.calendars, known.calendar(list[i].Calendar))
	}
	return n, nil
}

// Next is the first nominal time after an instant; zero: there is none.
func (n *Nominal) Next(after time.Time) (first time.Time, err error) {
	if t := n.job.NotBefore.Add(-instant); !n.job.NotBefore.IsZero() && t.After(after) {
		after = t
	}
	for i, r := range n.rules {
		from := after
		if n.opens != nil && !n.opens[i].IsZero() {
			from = later(from, n.opens[i].Add(-instant))
		}
		t, err := r.Next(from)
		if err != nil {
			return first, fmt.Errorf("rule %.200s: %w", r, err)
		}
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !n.job.NotAfter.IsZero() && first.After(n.job.NotAfter) {
		return time.Time{}, nil
	}
	return first, nil
}

// unpaused returns the rules of the schedules that a pause does not hold for ever. Those of the others count from the end of
// its pause.
func (n *Nominal) unpaused(pauses []store.Pause) *Nominal {
	if len(pauses) == 0 {
		return n
	}
	of := &Nominal{job: n.job}
	for i, r := range n.rules {
		opens, ever := n.Opens(i, pauses)
		if !ever {
			continue
		}
		of.rules, of.ids, of.calendars, of.opens = append(of.rules, r), append(of.ids, n.ids[i]), append(of.calendars, n.calendars[i]), append(of.opens, opens)
	}
	return of
}

// Opens returns the end of the pauses that hold the schedule of a rule, and whether they end by themselves; zero and true: there
// are none.
func (n *Nominal) Opens(rule int, pauses []store.Pause) (at time.Time, ever bool) {
	for i := range pauses {
		switch p := &pauses[i]; {
		case p.SubjectID != n.ids[rule]:
		case p.Until.IsZero():
			return time.Time{}, false
		default:
			at = later(at, p.Until)
		}
	}
	return at, true
}

// Holidays returns the times in (from, to] that calendars take out or move, in the order of time: at most count. Times outside
// of not_before and not_after are not times of the job. It may have to look at many other times before it finds the first one,
// so it looks at a year at most.
func (n *Nominal) Holidays(from, to time.Time, count int) (all []rules.Holiday) {
	if !n.job.NotBefore.IsZero() {
		from = later(from, n.job.NotBefore.Add(-instant))
	}
	if !n.job.NotAfter.IsZero() {
		to = earlier(to, n.job.NotAfter)
	}
	if year := from.AddDate(1, 0, 0); to.After(year) {
		to = year
	}
	for i, r := range n.rules {
		if n.calendars[i] == nil {
			continue
		}
		list, _ := r.Holidays(from, to, count, n.calendars[i]) // after an error, those that were found before it
		all = append(all, list...)
	}
	slices.SortFunc(all, func(x, y rules.Holiday) int { return x.At.Compare(y.At) })
	return all[:min(count, len(all))]
}

// prev is the last time of any rule before an instant. It may lie before not_before: a data interval
// begins there.
func (n *Nominal) prev(before time.Time) (last time.Time, err error) {
	for _, r := range n.rules {
		t, err := r.Prev(before)
		if err != nil {
			return last, fmt.Errorf("rule %.200s: %w", r, err)
		}
		last = later(last, t)
	}
	return last, nil
}

// jitter is the delay that a decision adds to a nominal time.
func (n *Nominal) jitter(t time.Time) time.Duration {
	d := &decision{snapshot: &store.Snapshot{Job: *n.job}}
	for _, r := range n.rules {
		d.rules = append(d.rules, activeRule{recurrence: r})
	}
	return d.jitter(t)
}

// Rules returns the rules of the job, in the order in which they were read.
func (n *Nominal) Rules() []*rules.Rule { return n.rules }

// Span says between which instants the times of a job count, beginning at from; a zero last means that there is no end.
func (n *Nominal) Span(from time.Time, v *store.JobStatus) (first, last time.Time) {
	first, last = later(from, v.NotBefore), v.NotAfter
	if v.Paused != nil {
		first = later(first, v.Paused.Until)
	}
	if v.MaxRuns == 0 {
		return first, last
	}
	left := int(min(v.MaxRuns-v.RunsMade, 10_000)) // the times of runs beyond this number are far in the future
	list := n.Before(first, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), v, left)
	switch {
	case len(list) == 0:
		last = first.Add(-time.Second)
	case len(list) == left && int64(left) == v.MaxRuns-v.RunsMade:
		last = list[left-1]
	}
	return first, last
}
