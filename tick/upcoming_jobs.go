package tick

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// UpcomingTimes are the next nominal times of a job.
type UpcomingTimes struct {
	Times []time.Time
	More  bool // there are more times before the end
}

// UpcomingByJob is Upcoming for each job separately, in the order of the jobs: at most limit times of each. So a job that
// runs each minute does not hide a job that runs each month.
func UpcomingByJob(ctx context.Context, s *store.Store, jobs []store.JobStatus, from, to time.Time, limit int) ([]UpcomingTimes, error) {
	list, faults, err := s.RulesOfJobs(ctx, store.IDs(jobs))
	if err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]UpcomingTimes, len(jobs))
	for i := range jobs {
		v := new(jobs[i])
		decide.Foresee(v, now)
		n, err := decide.NewNominal(&v.Job, list[v.ID])
		if err != nil || faults[v.ID] != "" {
			continue // the job has no time until it is repaired; its state says so
		}
		times := n.Before(now, from, to, v, limit+1)
		out[i] = UpcomingTimes{times[:min(limit, len(times))], len(times) > limit}
	}
	return out, nil
}
