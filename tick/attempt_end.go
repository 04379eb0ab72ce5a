package tick

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// failure decides what follows an attempt that did not succeed.
func (p *pass) failure(ctx context.Context, t *store.Task, step *store.Step, err error) store.StepEnd {
	end := store.StepEnd{State: store.Failed, Error: err.Error()}
	var detail *executor.Error
	if errors.As(err, &detail) {
		end.Code, end.Line, end.Severity, end.Detail, end.Hint = detail.Code, detail.Line, detail.Severity, detail.Detail, detail.Hint
	}
	if errors.Is(err, executor.ErrNotAtomic) { // another attempt, or the next run, would repeat what this attempt has done
		end.Final = store.Failed
		// The run's id must stand at the end of this reason: decisions see by it that this run has paused the job.
		end.Pause = fmt.Sprintf("step %.100q is atomic, but its SQL ended the transaction; see run %s", step.Name, t.Run.ID)
		return end
	}
	cause := stopped(ctx)
	if errors.Is(cause, errEarly) {
		p.early.Store(true)
	}
	ends := errors.Is(cause, errOverdue) || errors.Is(cause, errCancelled) // the run ends, whatever the attempt has done
	cut := cause != nil && !ends && !errors.Is(cause, errTimeout)          // the pass ends
	_, unsent := errors.AsType[*executor.UnsentError](err)
	vain := !ends && errors.Is(err, executor.ErrNothingDone) || cut && unsent
	if vain {
		if idle, enough := p.idleDeliveries(ctx, t); !enough {
			end.State, end.Redeliver, end.Idle, end.Backoff = "cut", true, true, time.Second<<min(idle, 6)
			return end
		}
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
	case cut && !vain: // that uses up a delivery, not an attempt
		end.State, end.Error = "cut", errCut.Error()
		if end.Redeliver = t.Run.Losses+1 < max(t.Job.MaxDeliveries, 1); !end.Redeliver {
			end.Final = store.Lost
			end.Error += fmt.Sprintf(", at each of %d deliveries of this step; give the tick a larger --budget or raise max_deliveries", t.Run.Losses+1)
		}
		return end
	}
	follow(&end, decide.AfterFailure(t, step, !errors.Is(err, executor.ErrFinal), rand.N))
	if later, ok := errors.AsType[*executor.LaterError](err); ok && end.Retry { // our bound applies: a header cannot stop a job for long
		retry := step.Retry.Or(t.Job.Retry)
		end.Backoff = max(end.Backoff, min(later.Wait, time.Duration(*retry.MaxBackoff)))
	}
	return end
}

// follow sets what follows a failed attempt.
func follow(end *store.StepEnd, next store.StepEnd) {
	end.Retry, end.NextStep, end.Final, end.Backoff = next.Retry, next.NextStep, next.Final, next.Backoff
	if next.Error != "" {
		end.Error = fmt.Sprintf("%s; %s", next.Error, end.Error)
	}
}

// stopped says why the work of a context was stopped; nil: it was not. A connection that has the deadline of the context may
// end a moment before the context ends. Without the wait in here, its error would be taken for a network error.
func stopped(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		again, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		if again.Err() != nil { // a context that begins after its deadline is over at once
			<-ctx.Done()
		}
	}
	return context.Cause(ctx)
}

// leastDeliveries is how often a run may at least be delivered for one try of a step without being executed, for
// example because there is no connection; max_deliveries may allow more. The last of these deliveries counts as a
// failed attempt. The others are not lost: leastDeliveries may exceed max_deliveries, which bounds deliveries that
// may have done something.
//
// One pass may deliver a run several times within seconds, and a server that restarts takes no connection for longer than that. So
// the last leastDeliveries also have to take as long as a lease, which three ticks of a minute each do.
const leastDeliveries = 3

// idleDeliveries counts the deliveries of the current try that had no effect before this one, and reports whether they are enough for
// a failed attempt, also while the pass is being stopped. If the ledger cannot be read, they count as none: the end of this one goes
// to the same database.
func (p *pass) idleDeliveries(ctx context.Context, t *store.Task) (n int, enough bool) {
	last, stop := p.until(ctx, p.lastEnd, closing)
	defer stop()
	within, cancel := context.WithTimeout(last, heartbeat)
	defer cancel()
	n, took, err := p.t.Store.IdleDeliveries(within, t, leastDeliveries-1)
	if err != nil {
		p.log.Warn("counting deliveries without effect", "run", t.Run.ID, "error", err)
		return 0, false
	}
	return n, n+1 >= max(t.Job.MaxDeliveries, leastDeliveries) && took >= lease
}

// inTime gives up on an attempt that would begin after the run's own timeout: the tries of the step are used up.
func (p *pass) inTime(t *store.Task, over time.Time, end store.StepEnd) store.StepEnd {
	if end.Retry && !over.IsZero() && !p.t.Now().Add(end.Backoff).Before(over) {
		end.Error += fmt.Sprintf("; not tried again: the run's timeout of %s would be over", t.Job.Timeout)
		follow(&end, decide.Follow(t, t.StepAt(t.Run.Step).OnFailure, store.Failed))
	}
	return end
}
