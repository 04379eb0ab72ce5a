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
	job   *store.Job
	rules []NominalRule
}

// NominalRule is one of the rules.
type NominalRule struct {
	*rules.Rule
	schedule int64           // the id of its schedule
	calendar *rules.Calendar // with the names of days; nil: it has none
	opens    time.Time       // the instant from which it counts, while its schedule is paused
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
		n.rules = append(n.rules, NominalRule{Rule: r, schedule: list[i].ScheduleID, calendar: known.calendar(list[i].Calendar)})
	}
	return n, nil
}

// Next is the first nominal time after an instant; zero: there is none.
func (n *Nominal) Next(after time.Time) (first time.Time, err error) {
	after = later(after, n.job.NotBefore.Add(-instant))
	for _, r := range n.rules {
		t, err := r.Next(later(after, r.opens.Add(-instant)))
		if err != nil {
			return first, fmt.Errorf("rule %.200s: %w", r.Rule, err)
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
	of := &Nominal{job: n.job}
	for _, r := range n.rules {
		var ever bool
		if r.opens, ever = r.Opens(pauses); ever {
			of.rules = append(of.rules, r)
		}
	}
	return of
}

// Opens returns the end of the pauses that hold the schedule of the rule, and whether they end by themselves; zero and true: there
// are none.
func (r *NominalRule) Opens(pauses []store.Pause) (at time.Time, ever bool) {
	for i := range pauses {
		switch p := &pauses[i]; {
		case p.SubjectID != r.schedule:
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
	from = later(from, n.job.NotBefore.Add(-instant))
	if !n.job.NotAfter.IsZero() {
		to = earlier(to, n.job.NotAfter)
	}
	to = earlier(to, from.AddDate(1, 0, 0))
	for _, r := range n.rules {
		if r.calendar != nil {
			list, _ := r.Holidays(from, to, count, r.calendar) // after an error, those that were found before it
			all = append(all, list...)
		}
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
			return last, fmt.Errorf("rule %.200s: %w", r.Rule, err)
		}
		last = later(last, t)
	}
	return last, nil
}

// jitter is the delay that a decision adds to a nominal time.
func (n *Nominal) jitter(t time.Time) time.Duration {
	d := &decision{snapshot: &store.Snapshot{Job: *n.job}}
	for _, r := range n.rules {
		d.rules = append(d.rules, activeRule{recurrence: r.Rule})
	}
	return d.jitter(t)
}

// Rules returns the rules of the job, in the order in which they were read.
func (n *Nominal) Rules() []NominalRule { return n.rules }
