package tick

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// The causes for which an attempt is stopped before its end.
var (
	errCut       = errors.New("stopped by the end of the pass")
	errCancelled = errors.New("cancelled")
	errTimeout   = errors.New("timeout")
	errOverdue   = errors.New("timeout of the run")
	errEarly     = errors.New("stopped early, so that its grace fits into the budget") // a kind of errCut
)

// errLater says that a run has ended, and that its end is recorded later, with those of other runs.
var errLater = errors.New("the end of the run is recorded later")

// run executes the steps of a run, beginning at its current step, until the run ends or has to wait for a retry. It does not
// wait for the record of a success, so that this goroutine can execute other runs; it waits only if runs execute one at a time.
func (p *pass) run(ctx context.Context, h *held) (err error) {
	t := &h.Task
	told := p.t.monitor.watch(t)
	defer func() {
		if !errors.Is(err, errLater) {
			told()
		}
	}()
	defer func() {
		if r := recover(); r != nil { // the fault of one job never stops the pass
			err = p.endStep(ctx, t, store.StepEnd{State: store.Failed, Final: store.Failed, InDoubt: true, Error: fmt.Sprintf("the executor panicked: %v", r)}, nil)
		}
	}()
	within, over, release := p.overdue(ctx, t)
	defer release()
	for {
		log := slog.New(slog.DiscardHandler)
		if p.log.Enabled(ctx, slog.LevelDebug) { // looking for secrets in lines that nobody reads would cost each run time
			log = p.log.With("run", t.Run.ID, "job", t.Job.FullName(), "step", t.Run.Step, "try", t.Run.Attempt)
		}
		log.Debug("step begins")
		end, ended := p.attempt(within, h)
		log.Debug("step has ended", "state", end.State, "error", end.Error)
		if !ended {
			end = p.inTime(t, over, end)
			if !p.one && end.Succeeds() && !errors.Is(context.Cause(ctx), store.ErrOutdated) {
				p.recordLater(ctx, h, end, told)
				return errLater
			}
			// The next run in the line need not wait for this record, but for one that is in doubt: the run may go on with its
			// next step.
			if !p.one && end.NextStep == 0 && !end.InDoubt {
				p.mu.Lock()
				if next := p.vacate(h); next != nil {
					p.hand(next)
				}
				p.mu.Unlock()
			}
			if err := p.endStep(ctx, t, end, nil); err != nil {
				return err
			}
		}
		t.Waited = 0 // it counts for the first attempt only, also where an atomic step has recorded its own end
		if t.Run.State != store.Running {
			return nil
		}
	}
}

// endStep records the end of an attempt, even while the pass is being stopped.
//
// If the database does not answer, endStep tries again. A server that restarts, or whose standby takes over, is away for some
// seconds or minutes: endStep tries for as long as a lease lasts, because another delivery would execute the step again. On
// SQLite, the write transaction of another job can block the record as long as that job takes, while the lock on the file
// keeps this run ours: there endStep tries as long as the pass goes on. A pass that has to stop ends all of this: see closing.
// tried is the error of a first try that was made before; nil: there was none.
func (p *pass) endStep(ctx context.Context, t *store.Task, end store.StepEnd, tried error) error {
	last, stop := p.until(ctx, p.lastEnd, closing)
	defer stop()
	missed := errors.Is(context.Cause(ctx), store.ErrOutdated) // a heartbeat did not find the run: it also finds none that has ended
	if end.RunError == "" && !missed {
		end.RunError = p.runError(last, t, end)
	}
	patient, done := context.WithTimeout(last, lease)
	defer done()
	for try := 1; ; try++ {
		err := store.ErrOutdated
		if !missed {
			err = p.endOnce(last, t, end, tried)
		}
		if tried = nil; errors.Is(err, store.ErrOutdated) {
			err = p.again(last, t, err)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrUncommitted): // the effects are gone with the record
			end = store.StepEnd{State: "cut", Redeliver: true, Idle: true, Backoff: time.Second, Error: err.Error(), RunError: err.Error()}
			continue
		case errors.Is(err, store.ErrRecorded): // COMMIT took place, and its answer was lost
			end = succeededAlready
			continue
		case !p.temporary(err), over(last), try >= 5 && !p.fileLocked(err) && over(patient):
			return err
		}
		select {
		case <-last.Done():
			return err // another try could only say that it is too late, which hides why the end is not recorded
		case <-time.After(min(time.Duration(try)*200*time.Millisecond, 5*time.Second)):
		}
	}
}

// endOnce tries once to record the end of an attempt, together with others or alone.
func (p *pass) endOnce(ctx context.Context, t *store.Task, end store.StepEnd, tried error) error {
	within, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	if tried == nil && end.Finishes() {
		if tried = p.together(within, t, end); tried == nil {
			return nil
		}
	}
	if tried == nil || errors.Is(tried, store.ErrAlone) {
		return p.t.Store.EndStep(within, t, end, p.holder)
	}
	return tried
}

// temporary reports whether the same statement may succeed a little later. A server that does not take writes
// is a standby that has not yet taken over, a disk that is full gets room when a job that fills it has tidied up, and a right
// that is missing may be one that migrate is about to give. Whatever else the database tells may pass, too, such as a timeout or a
// lack of memory, unless the row is at fault. A file that was replaced does not come back, and neither does a delivery.
func (p *pass) temporary(err error) bool {
	if errors.Is(err, store.ErrReplaced) || errors.Is(err, store.ErrOutdated) || errors.Is(err, store.ErrSchema) {
		return false
	}
	e := p.t.Store.Engine()
	_, told := e.Describe(err, "")
	return told && !e.Refused(err) || errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrDenied) ||
		errors.Is(err, context.DeadlineExceeded) || e.Transient(err) || errors.Is(err, store.ErrReadOnly)
}

// fileLocked reports whether an error says that another process has an SQLite file locked. It may stay
// locked for as long as a job of that process takes.
func (p *pass) fileLocked(err error) bool {
	waited := errors.Is(err, store.ErrReadOnly) && errors.Is(err, context.DeadlineExceeded)
	return p.t.Store.Engine().OneWriter && (p.t.Store.Transient(err) || waited)
}

// again looks at a run whose end was refused. If its delivery is still ours, an earlier try took effect, and only its answer was
// lost: then the run continues from its recorded state. The fence alone does not tell: where a standby took over that lacks our
// take, another process may have the same one. And a decision that has taken the run from us, because its lease was over, leaves
// holder and fence as they are until the run is taken again. It ends our attempt as lost. If the look fails for a cause that may
// pass, again returns that error: without an answer, nobody knows that the run is not ours.
func (p *pass) again(ctx context.Context, t *store.Task, refused error) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	now, err := p.t.Store.Run(ctx, t.Run.ID)
	if err != nil && p.temporary(err) {
		return err
	}
	if err != nil {
		return refused
	}
	if now.Holder != p.holder.Name || now.Fence != t.Run.Fence || !ended(now.Tries, t.Run.Attempts) {
		return &refusedError{refused, now.State}
	}
	t.Run = now.Run
	return nil
}

// ended reports whether an attempt has an end that its own process has recorded.
func ended(tries []store.Attempt, number int) bool {
	return slices.ContainsFunc(tries, func(a store.Attempt) bool {
		return a.Number == number && a.State != store.Running && a.State != store.Lost
	})
}

// refusedError is the error of an end that came too late. Meanwhile the run was delivered again, or ended without this process: it
// has the state now.
type refusedError struct {
	error
	now string
}

func (e *refusedError) Unwrap() error { return e.error }

// succeededAlready is the end of a run whose last attempt has already recorded the success.
var succeededAlready = store.StepEnd{State: store.Succeeded, Final: store.Succeeded, Recorded: true}

// attempt executes the current step of the run once. ended reports whether the end is already on record.
func (p *pass) attempt(ctx context.Context, h *held) (end store.StepEnd, ended bool) {
	t := &h.Task
	step, x, err := p.current(t)
	if err != nil {
		return store.StepEnd{State: store.Failed, Final: store.Failed, Error: err.Error()}, false
	}
	if ctx.Err() != nil { // the time of the attempt is over before it began
		return p.failure(ctx, t, step, fmt.Errorf("%w: %w", executor.ErrNothingDone, errCut)), false
	}
	if limit := time.Duration(step.Timeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	ctx, most, release := p.within(ctx, t, step, x)
	defer release()
	defer p.graceful(h, x, step)()
	if err := p.readFacts(ctx, t, step); err != nil {
		return p.failure(ctx, t, step, err), false
	}
	success := p.successOf(ctx, t, step)
	var commit func()
	inDoubt := false // it is not known whether the COMMIT of an atomic step took place
	res, err := x.Execute(ctx, executor.Request{Task: t, Spec: step.Spec, Now: p.t.Now(), Most: most, EndFollows: success.Succeeds(), EndIn: func(ctx context.Context, tx *sql.Tx, res executor.Result) (err error) {
		tells(t, &success, res)
		commit, err = p.t.Store.EndStepIn(ctx, tx, t, success, p.holder)
		inDoubt = err == nil
		return err
	}})
	if err == nil {
		if res.Ended {
			if commit(); success.Succeeds() {
				return succeededAlready, false
			}
			return success, true
		}
		if res.Skip {
			success = store.StepEnd{State: store.Succeeded, Final: store.Succeeded}
		}
		tells(t, &success, res)
		return success, false
	}
	if errors.Is(err, executor.ErrAskedToEnd) && errors.Is(h.work.Err(), context.Canceled) { // as at a shutdown, where the system asks the pass and its programs
		stopped, stop := context.WithCancelCause(ctx)
		stop(errCut)
		ctx = stopped
	}
	end = p.failure(ctx, t, step, err)
	end.InDoubt, res.Rows = inDoubt, nil
	tells(t, &end, res)
	return end, false
}

// current returns the step at which the run is, and its executor.
func (p *pass) current(t *store.Task) (*store.Step, executor.Executor, error) {
	step := t.StepAt(t.Run.Step)
	if step == nil {
		return nil, nil, fmt.Errorf("the job has no step %d", t.Run.Step)
	}
	x, ok := p.t.Executors[step.Executor]
	if !ok {
		return nil, nil, fmt.Errorf("step %s: there is no executor %q; there are %s", step.Name, step.Executor, p.t.Executors.Names())
	}
	return step, x, nil
}

// readFacts reads what earlier steps have told, if the step refers to that.
func (p *pass) readFacts(ctx context.Context, t *store.Task, step *store.Step) (err error) {
	if t.Steps = nil; !step.Refers() {
		return nil
	}
	if t.Steps, err = p.t.Store.StepFacts(ctx, t.Run.ID, step.Name); err != nil && (p.temporary(err) || over(ctx)) { // no fault of the step
		err = fmt.Errorf("%w: %w", executor.ErrNothingDone, err)
	}
	return err
}

// successOf returns the end of the attempt if it succeeds. It is needed before the step begins, because an atomic step records
// its end in its own transaction.
func (p *pass) successOf(ctx context.Context, t *store.Task, step *store.Step) store.StepEnd {
	end := decide.Follow(t, step.OnSuccess, store.Succeeded)
	end.State = store.Succeeded
	if end.Intended = end.Final == store.Failed && end.Error == ""; end.Intended {
		end.Error = fmt.Sprintf("step %q succeeded, and its on_success is fail", step.Name)
	}
	if end.Final == store.Failed {
		end.RunError = p.runError(ctx, t, end)
	}
	return end
}

// tells copies what an attempt reported into its end. It keeps the facts, which later steps may refer to, only if a step of
// the job refers to facts. Otherwise it keeps that there were some: a job may be edited while its run is open, and a
// reference must not become empty then.
func tells(t *store.Task, end *store.StepEnd, r executor.Result) {
	end.Rows, end.Output, end.Result = r.Rows, r.Output, r.Facts
	if r.Facts != "" && !t.Job.TellsSteps() {
		end.Result = store.FactsNotKept
	}
}
