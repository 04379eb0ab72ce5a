package decide

import (
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// AfterFailure says what follows a failed attempt of a step: another attempt, another step, or the end
// of the run. If again is false, no further attempt can help. share chooses a part of the jitter of a
// back-off. The part is random, so that runs that failed together are not tried again together.
func AfterFailure(t *store.Task, step *store.Step, again bool, share func(time.Duration) time.Duration) store.StepEnd {
	retry := step.Retry.Or(t.Job.Retry)
	if err := t.Job.EndsBeforeNext(retry.Attempts); err != nil { // plain SQL wrote the step's row
		return store.StepEnd{Final: store.Failed, Error: fmt.Sprintf("not tried again: retry.attempts: %v", err)}
	}
	n := int(*retry.Attempts)
	if again && (n == 0 || t.Run.Attempt < n) {
		end := store.StepEnd{Retry: true, Backoff: Backoff(retry, t.Run.Attempt)}
		if most := end.Backoff * time.Duration(*retry.Jitter) / 100; most > 0 {
			end.Backoff += share(most)
		}
		if n == 0 { // the number of attempts is unlimited, and a step that fails at once would keep the pass busy
			end.Backoff = max(end.Backoff, time.Second)
		}
		return end
	}
	return Follow(t, step.OnFailure, store.Failed)
}

// maxAttempts bounds a loop of steps. After this number of attempts, a run fails if it would go back to
// an earlier step, or to the same step. Tries count, and so do attempts before the run was opened again.
const maxAttempts = 1000

// Backoff is the wait after an attempt. It doubles with every attempt, up to its cap. The first wait is as it was
// given, also above the cap: a cap that is a default, or the job's for a step, must not shorten it.
func Backoff(r store.Retry, attempt int) time.Duration {
	first := min(time.Duration(*r.Backoff), 100*365*24*time.Hour)
	wait, most := first, min(time.Duration(*r.MaxBackoff), 100*365*24*time.Hour)
	for range attempt - 1 {
		if wait >= most {
			break
		}
		wait *= 2
	}
	return max(first, min(wait, most))
}

// Follow reads what comes after a step: next, succeed, fail, or step:NAME. After the last step, the run
// ends in the same state as the step. How often a run may go back is bounded.
func Follow(t *store.Task, what, state string) store.StepEnd {
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
			return store.StepEnd{Final: store.Failed, Error: fmt.Sprintf(
				"its steps form a circle: after %d attempts, the next would be step %s again; a new run begins a new count, `run retry` does not", t.Run.Attempts, name)}
		}
		return store.StepEnd{NextStep: i + 1}
	}
	return store.StepEnd{Final: store.Failed, Error: fmt.Sprintf("there is no step %q", name)}
}
