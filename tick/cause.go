package tick

import (
	"context"
	"fmt"

	"github.com/dbjobs/dbjobs/store"
)

// runError is the error of a run whose job has several steps. It says which step failed, and why. If
// on_failure led on from an earlier failure, the earlier failure comes first: a step that sends an alarm
// must not hide the cause.
//
// The cause is read from the ledger, because several passes may execute the steps of a run.
func (p *pass) runError(ctx context.Context, t *store.Task, end store.StepEnd) string {
	if len(t.Job.Steps) < 2 {
		return end.Error
	}
	own := end.Error
	if step := t.StepAt(t.Run.Step); step != nil && end.State != store.Succeeded && end.State != store.Cancelled {
		own = failureOf(step.Name, own)
	}
	if end.Final != store.Failed && end.Final != store.Lost || t.Run.Attempts < 2 {
		return own
	}
	first := p.firstFailure(ctx, t)
	switch {
	case first == "":
		return own
	case end.Intended:
		return first
	}
	return first + "; then " + own
}

func failureOf(step, what string) string { return fmt.Sprintf("step %.100q: %s", step, what) }

// firstFailure is the failure of the first step that has failed and has not succeeded since. The current
// step does not count, nor do attempts before the run was opened again. firstFailure is "" if there is no
// such step, if there were very many attempts since, or if the ledger cannot be read.
func (p *pass) firstFailure(ctx context.Context, t *store.Task) string {
	detail, err := p.t.Store.Run(ctx, t.Run.ID)
	if err != nil { // the cause is still in the attempts
		p.log.Warn("looking for the first cause of a failure", "run", t.Run.ID, "error", err)
		return ""
	}
	var failed []store.Attempt
	for _, a := range detail.Tries {
		if a.Number == t.Run.Attempts || a.StartedAt.Before(detail.StartedAt) {
			continue
		}
		at := -1
		for i := range failed {
			if failed[i].StepName == a.StepName {
				at = i
			}
		}
		switch {
		case a.State == store.Succeeded && at >= 0:
			failed = append(failed[:at], failed[at+1:]...)
		case a.State == store.Failed && at >= 0:
			failed[at] = a
		case a.State == store.Failed:
			failed = append(failed, a)
		}
	}
	for _, a := range failed {
		if a.Step != t.Run.Step {
			return failureOf(a.StepName, a.Error)
		}
	}
	return ""
}
