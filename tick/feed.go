package tick

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// FeedRule is the part of a calendar feed that comes from one schedule of a job.
type FeedRule struct {
	Job      *store.JobStatus
	Schedule store.Schedule // without a name, it is the job's own rule
	Events   []rules.Event
	Often    bool      // it has more than 24 times within a day
	Beyond   time.Time // without events: its first time, which lies after the single dates
}

// Feed finds the events of the jobs' schedules, from now on. Times that an RRULE cannot express become single dates up
// to the instant to, at most limit for each schedule. A schedule that has only later times is in the list without events. A job
// that is disabled, parked, or paused until somebody resumes it has no events, nor has a schedule that is paused so. A job whose
// next time depends on the end of a run has none either. Times that somebody skips are no events.
func Feed(ctx context.Context, s *store.Store, jobs []store.JobStatus, now, to time.Time, limit int) (list []FeedRule, idle []string, err error) {
	of, faults, err := s.RulesOfJobs(ctx, store.IDs(jobs))
	if err != nil {
		return nil, nil, err
	}
	for i := range jobs {
		v := &jobs[i]
		n, err := decide.NewNominal(&v.Job, of[v.ID])
		if v.Rests() || err != nil || faults[v.ID] != "" {
			if len(of[v.ID]) > 0 {
				idle = append(idle, v.FullName())
			}
			continue
		}
		first, last, cut := n.Span(now, v)
		for k, r := range n.Rules() {
			opens, ever := r.Opens(v.SchedulePauses)
			if !ever {
				continue
			}
			f := FeedRule{Job: v, Schedule: of[v.ID][k].Schedule}
			f.Schedule.ID = of[v.ID][k].ScheduleID
			begin := first
			if opens.After(begin) {
				begin = opens
			}
			if err := f.read(r.Rule, begin, to, last, limit); err != nil { // the next time is too far away: the schedule has no events now
				if n := len(idle); n == 0 || idle[n-1] != v.FullName() { // another schedule of the job may have none, either
					idle = append(idle, v.FullName())
				}
				continue
			}
			for e := range f.Events {
				if cut && f.Events[e].Until.IsZero() {
					f.Events[e].Until = last
				}
			}
			if len(f.Events) > 0 || !f.Beyond.IsZero() { // else it has no time to come
				list = append(list, f)
			}
		}
	}
	return list, idle, nil
}

// read finds the events of a rule from an instant on, up to last.
func (f *FeedRule) read(r *rules.Rule, first, to, last time.Time, limit int) (err error) {
	if f.Events, err = r.Events(first, to, last, limit); err != nil {
		return err
	}
	for _, skip := range f.Job.Skips {
		for e := range f.Events {
			if skip.Of(f.Schedule.ID) {
				f.Events[e].Skip(skip.At)
			}
		}
	}
	t, err := r.Next(first.Add(-time.Microsecond))
	switch {
	case err != nil || t.IsZero():
		return err
	case len(f.Events) > 0:
		f.Often = often(r, t)
	case last.IsZero() || !t.After(last):
		f.Beyond = t
	}
	return nil
}

// often reports whether a rule has more than 24 times within the day that begins with a time of it.
func often(r *rules.Rule, t time.Time) bool {
	day, err := r.Between(t, t.Add(24*time.Hour), 25)
	return err == nil && len(day) == 25
}
