package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// RetriedRun is a run that was opened again.
type RetriedRun struct {
	Run
	StepName string `json:"step_name"` // of the step with which it continues
}

// RetryRun opens a run again that failed, was cancelled or was lost. The run keeps its id, interval and arguments,
// and continues at its last step, or at the step given by name or number. It waits behind the job's active runs, like
// every request. Its attempts and its fence are not reset. If the run cannot be retried, the error is a *FieldError.
// The run is returned as it was opened again.
//
// The last step is found by its name: since the run ended, an edit may have moved the steps, or removed this one. A step without a
// name is called by its place, and is refused if an edit may have given that place to another step.
//
// A run that is not settled is refused: if it were open again, its failure would never raise an event or be counted.
func (s *Store) RetryRun(ctx context.Context, id, fromStep string, who Author) (RetriedRun, error) {
	found, err := s.findRun(ctx, id)
	if err != nil {
		return RetriedRun{}, err
	}
	var r Run
	var stepName string
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
		last, err := a.lastStep(ctx, &r)
		if err != nil {
			return err
		}
		if fromStep == "" {
			if err := a.keptItsPlace(ctx, &r, list[0].Steps, last); err != nil {
				return err
			}
		}
		step, err := startAt(&r, list[0].Steps, last, fromStep)
		if err != nil {
			return err
		}
		stepName = list[0].Steps[step-1].Name
		if err := r.canRetry(); err != nil {
			return err
		}
		n, err := a.tx.Exec(ctx, "reopen", engine.Args{"now": s.now(), "id": engine.ID(r.ID), "step": step, "step_name": stepName})
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
	return RetriedRun{r, stepName}, err
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

// lastStep returns the name of the step in which a run ended, or was to begin. It is empty if nobody chose a step and the run has begun
// none, and for a run of a worker, which records no attempts.
func (a *applier) lastStep(ctx context.Context, r *Run) (name string, err error) {
	err = a.tx.Row(ctx, "last_step", engine.Args{"id": engine.ID(r.ID)}, engine.Nullable(&name))
	return name, err
}

// keptItsPlace refuses a run whose last step is called by its place, if the other steps are not as they were when the run began: the
// step of that name may be another one now. When its last step began tells too little: a pass keeps to the steps that it read with
// the run. A repair of the step itself leaves it at its place.
func (a *applier) keptItsPlace(ctx context.Context, r *Run, steps []Step, last string) error {
	if last != placeName(r.Step) || r.StartedAt.IsZero() {
		return nil
	}
	var was Job
	err := a.tx.Row(ctx, "edited_since", engine.Args{"job": r.JobID, "at": r.StartedAt}, jsonInto{&was})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	others := func(list []Step) *Job {
		list = slices.Clone(list)
		if r.Step <= len(list) {
			list = slices.Delete(list, r.Step-1, r.Step)
		}
		return &Job{Steps: list}
	}
	if sameJob(others(was.Steps), others(steps)) {
		return nil
	}
	return &FieldError{"run " + r.Label(), "step", fmt.Sprintf("it was in %s, which has no name of its own, and other steps have changed since; choose a step with --from-step; there are %s", last, stepNames(steps))}
}

// startAt returns the position of the step to begin with, counted from 1: that of the step that is named, or else of the last step.
func startAt(r *Run, steps []Step, last, named string) (int, error) {
	switch {
	case named == "" && last == "":
		if r.Step > len(steps) {
			return 0, &FieldError{"run " + r.Label(), "step", fmt.Sprintf("it was in step %d, but the job has only %d now; choose a step with --from-step", r.Step, len(steps))}
		}
		return r.Step, nil
	case named == "":
		if n := placeOf(steps, last); n > 0 {
			return n, nil
		}
		return 0, &FieldError{"run " + r.Label(), "step", fmt.Sprintf("it was in step %q, which the job no longer has; choose a step with --from-step; there are %s", last, stepNames(steps))}
	}
	return stepNamed("run "+r.Label(), steps, named)
}

// stepNamed returns the position of a step that is given by its name or its number, counted from 1.
func stepNamed(subject string, steps []Step, named string) (int, error) {
	if n := placeOf(steps, named); n > 0 {
		return n, nil
	}
	if n, err := strconv.Atoi(named); err == nil && n >= 1 && n <= len(steps) {
		return n, nil
	}
	return 0, &FieldError{subject, "step", fmt.Sprintf("there is no step %q; there are %s", named, stepNames(steps))}
}

// placeOf returns the position of the step of a name, counted from 1; 0: there is none.
func placeOf(steps []Step, name string) int {
	return 1 + slices.IndexFunc(steps, func(st Step) bool { return st.Name == name })
}

func stepNames(steps []Step) string {
	names := make([]string, len(steps))
	for i, st := range steps {
		names[i] = st.Name
	}
	return strings.Join(names, ", ")
}
