package tick

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// FeedRule is what one schedule of a job adds to a calendar.
type FeedRule struct {
	Job      *store.JobStatus
	Schedule store.Schedule // without a name, it is the job's own
	Events   []rules.Event
	Often    bool // it has more than 24 times within a day
}

// Feed finds the events of the jobs' schedules from an instant on. What an RRULE cannot say is in single dates up to another
// instant, at most limit for each schedule. Jobs that are disabled, parked or paused until somebody resumes them have none,
// nor have those whose next time depends on how a run ends.
func Feed(ctx context.Context, s *store.Store, jobs []store.JobStatus, from, to time.Time, limit int) (list []FeedRule, idle []string, err error) {
	ids := make([]int64, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
	}
	of, faults, err := s.RulesOfJobs(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for i := range jobs {
		v := &jobs[i]
		n, err := decide.NewNominal(&v.Job, of[v.ID])
		if err != nil || faults[v.ID] != "" || v.Disabled || v.Parked != "" || v.Paused != nil && v.Paused.Until.IsZero() {
			if len(of[v.ID]) > 0 {
				idle = append(idle, v.FullName())
			}
			continue
		}
		first, last := n.Span(from, v)
		for k, r := range n.Rules() {
			events, err := r.Events(first, to, last, limit)
			if err != nil { // an answer is too far away: it has none now
				idle = append(idle, v.FullName())
				continue
			}
			f := FeedRule{Job: v, Schedule: of[v.ID][k].Schedule, Events: events}
			f.Schedule.ID = of[v.ID][k].ScheduleID
			if t, err := r.Next(first.Add(-time.Second)); err == nil && !t.IsZero() {
				day, err := r.Between(t, t.Add(24*time.Hour), 25)
				f.Often = err == nil && len(day) == 25
			}
			list = append(list, f)
		}
	}
	return list, idle, nil
}
