package tick

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// failure decides what follows an attempt that did not succeed.
func (p *pass) failure(ctx context.Context, t *store.Task, step *store.Step, err error) store.StepEnd {
	end := store.StepEnd{State: store.Failed, Error: err.Error()}
	var detail *executor.Error
	if errors.As(err, &detail) {
		end.Code, end.Line, end.Severity, end.Detail, end.Hint = detail.Code, detail.Line, detail.Severity, detail.Detail, detail.Hint
	}
	if errors.Is(err, executor.ErrNotAtomic) { // another attempt, or the next run, would repeat what it has done
		end.Final = store.Failed
		// Decisions know by the id at its end that this run has paused the job.
		end.Pause = fmt.Sprintf("step %.100q is atomic, but its SQL ended the transaction; see run %s", step.Name, t.Run.ID)
		return end
	}
	cause := context.Cause(ctx)
	known := errors.Is(err, executor.ErrNothingDone) && (cause == nil || errors.Is(cause, errTimeout))
	if known && t.Run.Losses+1 < max(t.Job.MaxDeliveries, idleDeliveries) {
		end.State, end.GiveBack, end.Backoff = "cut", true, time.Second<<min(t.Run.Losses, 6)
		return end
	}
	switch {
	case errors.Is(cause, errTimeout):
		end.Error = fmt.Sprintf("timeout after %s", step.Timeout)
	case errors.Is(cause, errOverdue):
		end.Final, end.Error = store.Failed, fmt.Sprintf("the run's timeout of %s is over", t.Job.Timeout)
		return end
	case errors.Is(cause, errCancelled):
		end.State, end.Final, end.Error = store.Cancelled, store.Cancelled, "cancelled on request"
		return end
	case cause != nil: // the pass ends: that uses up a delivery, not an attempt
		end.State, end.Error = "cut", errCut.Error()
		if end.GiveBack = t.Run.Losses+1 < max(t.Job.MaxDeliveries, 1); !end.GiveBack {
			end.Final = store.Lost
			end.Error += fmt.Sprintf(", at each of %d deliveries; give the tick a larger --budget or raise max_deliveries", t.Run.Losses+1)
		}
		return end
	}
	retry := step.Retry.Or(t.Job.Retry)
	if err := t.Job.EndsBeforeNext(retry.Attempts); err != nil { // plain SQL wrote the step's row
		end.Final, end.Error = store.Failed, fmt.Sprintf("%s; not tried again: retry.attempts: %v", end.Error, err)
		return end
	}
	if n := int(*retry.Attempts); (n == 0 || t.Run.Attempt < n) && !errors.Is(err, executor.ErrFinal) {
		end.Retry, end.Backoff = true, backoff(retry, t.Run.Attempt)
		if later, ok := errors.AsType[*executor.LaterError](err); ok { // a bound of ours: nobody parks a job by a header
			end.Backoff = max(end.Backoff, min(later.Wait, time.Duration(*retry.MaxBackoff)))
		}
		if n == 0 { // the attempts have no end, and a step that fails at once would keep the pass busy
			end.Backoff = max(end.Backoff, time.Second)
		}
		return end
	}
	after := follow(t, step.OnFailure, store.Failed)
	end.NextStep, end.Final = after.NextStep, after.Final
	if after.Error != "" {
		end.Error = after.Error + "; " + end.Error
	}
	return end
}

// idleDeliveries is how often a run may at least be delivered without being executed, such as for want
// of a connection. After that it has failed, like an attempt. It may exceed max_deliveries, which
// bounds deliveries that may have done something.
const idleDeliveries = 3

// maxAttempts bounds a loop of steps. A run with that number of attempts fails when it would go back to
// an earlier step, or to the same.
const maxAttempts = 1000

// inTime gives up on an attempt that would begin after the run's own timeout.
func (p *pass) inTime(t *store.Task, over time.Time, end store.StepEnd) store.StepEnd {
	if end.Retry && !over.IsZero() && !p.t.Now().Add(end.Backoff).Before(over) {
		end.Retry, end.Final = false, store.Failed
		end.Error += fmt.Sprintf("; not tried again: the run's timeout of %s would be over", t.Job.Timeout)
	}
	return end
}

// backoff doubles with every attempt up to its cap. A random share is added, so that runs that failed
// together are not tried again together.
func backoff(r store.Retry, attempt int) time.Duration {
	wait, most := time.Duration(*r.Backoff), time.Duration(*r.MaxBackoff)
	for range attempt - 1 {
		if wait >= most {
			break
		}
		wait *= 2
	}
	wait = min(wait, most, 100*365*24*time.Hour)
	if share := wait * time.Duration(*r.Jitter) / 100; share > 0 {
		wait += rand.N(share)
	}
	return wait
}

// follow reads what comes after a step: next, succeed, fail, or step:NAME. After the last step, the run
// ends like the step. The number of steps back is bounded.
func follow(t *store.Task, what, state string) store.StepEnd {
	switch what {
	case store.StepSucceed:
		return store.StepEnd{Final: store.Succeeded}
	case store.StepFail:
		return store.StepEnd{Final: store.Failed}
	case store.StepNext:
		if t.StepAt(t.Run.Step+1) != nil {
			return store.StepEnd{NextStep: t.Run.Step + 1}
		}
		return store.StepEnd{Final: state}
	}
	name := strings.TrimPrefix(what, store.StepNamed)
	for i := range t.Job.Steps {
		if t.Job.Steps[i].Name != name {
			continue
		}
		if i < t.Run.Step && t.Run.Attempts >= maxAttempts {
			return store.StepEnd{Final: store.Failed, Error: fmt.Sprintf("its steps form a circle: after %[2]d attempts, the next would be step %[1]s again", name, t.Run.Attempts)}
		}
		return store.StepEnd{NextStep: i + 1}
	}
	return store.StepEnd{Final: store.Failed, Error: fmt.Sprintf("there is no step %q", name)}
}
