package tick

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// Forecast reads the rules of a job. It returns what follows from them beyond the facts on record, with
// up to count of the job's next nominal times.
func Forecast(ctx context.Context, s *store.Store, v *store.JobStatus, count int) (decide.Forecast, error) {
	list, err := s.Rules(ctx, v.ID)
	var unreadable *store.FieldError
	if errors.As(err, &unreadable) || v.Unreadable != "" {
		problem := v.Unreadable
		if err != nil {
			problem = cmp.Or(problem, err.Error())
		}
		return decide.Forecast{Problem: problem}, nil
	}
	if err != nil {
		return decide.Forecast{}, err
	}
	n, err := decide.NewNominal(&v.Job, list)
	if err != nil {
		return decide.Forecast{Problem: err.Error()}, nil //nolint:nilerr // the answer is why the job cannot be planned
	}
	now, err := s.Now(ctx)
	if err != nil {
		return decide.Forecast{}, err
	}
	is := *v
	decide.Foresee(&is, now)
	return n.Forecast(now, &is, count), nil
}

// NextOutsidePauses corrects the next run of each job of which some schedules are paused, and others not: the store has the next
// nominal time of all of them, which may become a gap. It also finds the next run of each job that has just left a pause.
// Zero: it has none.
func NextOutsidePauses(ctx context.Context, s *store.Store, list []store.JobStatus) error {
	var held []*store.JobStatus
	var ids []int64
	for i := range list {
		v := &list[i]
		if v.Paused != nil || v.Disabled || v.Stale || v.Unreadable != "" {
			continue
		}
		if v.LeftPause() != nil || len(v.SchedulePauses) > 0 && !v.NextRun.IsZero() && v.Overdue == 0 {
			held, ids = append(held, v), append(ids, v.ID)
		}
	}
	if len(held) == 0 {
		return nil
	}
	rulesOf, faults, err := s.RulesOfJobs(ctx, ids)
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	for _, v := range held {
		n, err := decide.NewNominal(&v.Job, rulesOf[v.ID])
		if err != nil || faults[v.ID] != "" {
			continue // the next pass parks it
		}
		decide.Foresee(v, now)
		if f := n.Forecast(now, v, 1); f.Problem == "" {
			if v.NextRun = (time.Time{}); len(f.Next) > 0 {
				v.NextRun = f.Next[0]
			}
		}
	}
	return nil
}

// Holidays returns the next times that the calendar of a schedule takes out or moves, within the next three months: at most
// count. A schedule that cannot be planned has none.
func Holidays(ctx context.Context, s *store.Store, c *store.Schedule, count int) ([]rules.Holiday, error) {
	if c.Calendar == "" {
		return nil, nil
	}
	known, err := s.KnownCalendars(ctx, store.Definitions{Schedules: []store.Schedule{*c}})
	if err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	n, err := decide.NewNominal(&store.Job{}, []store.Rule{{Schedule: *c, Calendar: known[c.Calendar]}})
	if err != nil {
		return nil, nil //nolint:nilerr // jobs that use the schedule say why
	}
	return n.Holidays(now, now.AddDate(0, 3, 0), count), nil
}
