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

// failure tells what follows on an attempt that did not succeed.
func (p *pass) failure(ctx context.Context, t *store.Task, step *store.Step, err error) store.StepEnd {
	end := store.StepEnd{State: store.Failed, Error: err.Error()}
	var detail *executor.Error
	if errors.As(err, &detail) {
		end.Code, end.Line, end.Severity = detail.Code, detail.Line, detail.Severity
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		end.Error = fmt.Sprintf("timeout after %s", step.Timeout)
	case errors.Is(cause, errCancelled):
		end.State, end.Final, end.Error = store.Cancelled, store.Cancelled, "cancelled on request"
		return end
	case cause != nil: // the pass ends: a hand-out is used up, not an attempt
		end.State, end.Error = "cut", errCut.Error()
		if end.GiveBack = t.Run.Losses+1 < max(t.Job.Handouts, 1); !end.GiveBack {
			end.Final = store.Lost
		}
		return end
	}
	retry := step.Retry.Or(t.Job.Retry)
	if n := int(*retry.Attempts); n == 0 || t.Run.Attempt < n {
		end.Retry, end.Backoff = true, backoff(retry, t.Run.Attempt)
		if n == 0 { // without an end of its own, a hot one would keep the pass for itself
			end.Backoff = max(end.Backoff, time.Second)
		}
		return end
	}
	after := follow(t, step.OnFailure, store.Failed)
	end.NextStep, end.Final = after.NextStep, after.Final
	return end
}

// backoff doubles with every try up to its cap, and has a random share on top, so that what failed together does not
// come back together.
func backoff(r store.Retry, attempt int) time.Duration {
	wait, most := time.Duration(*r.Backoff), time.Duration(*r.MaxBackoff)
	for range attempt - 1 {
		if wait >= most {
			break
		}
		wait *= 2
	}
	wait = min(wait, most)
	if share := wait * time.Duration(*r.Jitter) / 100; share > 0 {
		wait += rand.N(share)
	}
	return wait
}

// follow reads what comes after a step: next, succeed, fail, or step:NAME. Beyond the last step, the run ends as the
// step did.
func follow(t *store.Task, what, state string) store.StepEnd {
	switch what {
	case "succeed":
		return store.StepEnd{Final: store.Succeeded}
	case "fail":
		return store.StepEnd{Final: store.Failed}
	case "next":
		if t.StepAt(t.Run.Step+1) != nil {
			return store.StepEnd{NextStep: t.Run.Step + 1}
		}
		return store.StepEnd{Final: state}
	}
	name := strings.TrimPrefix(what, "step:")
	for i := range t.Job.Steps {
		if t.Job.Steps[i].Name == name {
			return store.StepEnd{NextStep: i + 1}
		}
	}
	return store.StepEnd{Final: store.Failed, Error: fmt.Sprintf("there is no step %q", name)}
}
