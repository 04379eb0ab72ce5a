package tick

import (
	"cmp"
	"context"
	"errors"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// Forecast reads the rules of a job and returns what follows from them beyond the facts on record, with
// up to count of its next nominal times.
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
	return n.Forecast(now, v, count), nil
}
