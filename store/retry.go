package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// RetryRun opens a run again that failed, was cancelled or was lost. The run keeps its id, interval and arguments,
// and continues at its last step, or at the step given by name or number. It waits behind the job's active runs, like
// every request. Its attempts and its fence are not reset. If the run cannot be retried, the error is a *FieldError.
// The run is returned as it was opened again.
//
// A run that is not settled is refused: if it were open again, its failure would never raise an event or be counted.
func (s *Store) RetryRun(ctx context.Context, id, fromStep string, who Author) (Run, error) {
	found, err := s.findRun(ctx, id)
	if err != nil {
		return Run{}, err
	}
	var r Run
	err = s.change(ctx, who, func(a *applier) error {
		if r, err = a.runNow(ctx, found.ID); err != nil { // somebody else may have opened it again just now
			return err
		}
		list, err := s.statuses(ctx, a.tx, r.JobID)
		if err == nil && len(list) > 0 && list[0].RemoveDone { // see jobToRun
			if err = s.lockPlans(ctx, a.tx, list[0].Job); err == nil {
				list, err = s.statuses(ctx, a.tx, r.JobID)
			}
			if err == nil { // the pass for which that waited may have counted its end
				r, err = a.runNow(ctx, found.ID)
			}
		}
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return &FieldError{"run " + r.Label(), "job", r.FullJob() + " was removed"}
		}
		step, err := startAt(&r, list[0].Steps, fromStep)
		if err != nil {
			return err
		}
		if err := r.canRetry(); err != nil {
			return err
		}
		n, err := a.tx.Exec(ctx, "reopen", engine.Args{"now": s.now(), "id": engine.ID(r.ID), "step": step})
		if err == nil && n == 0 { // somebody else has, since it was read
			err = engine.ErrConflict
		}
		if err != nil {
			return err
		}
		if err := a.record("job", list[0].FullName(), "retry", r.JobID, nil, runsChanged{Runs: []string{r.ID}}); err != nil {
			return err
		}
		r, err = a.runNow(ctx, found.ID)
		return err
	})
	return r, err
}

// canRetry returns why a run cannot be opened again.
func (r *Run) canRetry() error {
	var why string
	switch {
	case r.State == Succeeded || !r.Ended():
		why = ": only a run that failed, was cancelled or was lost can be retried; `dbjobs job run-now` requests a new run"
	case r.SettledAt.IsZero():
		why = ", but no tick has counted this end yet, with its hooks and what follows: try again after the next tick"
	default:
		return nil
	}
	return &FieldError{"run " + r.Label(), "state", "is " + r.State + why}
}

// startAt returns the position of the step to begin with, counted from 1.
func startAt(r *Run, steps []Step, named string) (int, error) {
	if named == "" {
		if r.Step > len(steps) {
			return 0, &FieldError{"run " + r.Label(), "step", fmt.Sprintf("it was in step %d, but the job has only %d now; choose a step with --from-step", r.Step, len(steps))}
		}
		return r.Step, nil
	}
	if i := slices.IndexFunc(steps, func(st Step) bool { return st.Name == named }); i >= 0 {
		return i + 1, nil
	}
	if n, err := strconv.Atoi(named); err == nil && n >= 1 && n <= len(steps) {
		return n, nil
	}
	names := make([]string, len(steps))
	for i, st := range steps {
		names[i] = st.Name
	}
	return 0, &FieldError{"run " + r.Label(), "step", fmt.Sprintf("there is no step %q; there are %s", named, strings.Join(names, ", "))}
}
