package tick

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
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
)

// errLater says that a run has ended, and that this is recorded later, with others.
var errLater = errors.New("the end of the run is recorded later")

// run executes the steps of a run, from where it stands, until it ends or has to wait for a retry. Nobody waits here for the
// record of a success, but where one run is executed at a time: others go on in this goroutine.
func (p *pass) run(ctx context.Context, h *held) (err error) {
	t := &h.Task
	told := p.t.monitor.watch(t)
	defer func() {
		if !errors.Is(err, errLater) {
			told()
		}
	}()
	defer func() {
		if r := recover(); r != nil { // one job's fault is never the pass's
			_ = p.endStep(ctx, t, store.StepEnd{State: store.Failed, Final: store.Failed, InDoubt: true, Error: fmt.Sprintf("the executor panicked: %v", r)}, nil)
		}
	}()
	within, over, release := p.overdue(ctx, t)
	defer release()
	for {
		log := slog.New(slog.DiscardHandler)
		if p.log.Enabled(ctx, slog.LevelDebug) { // to look for secrets in what nobody reads would take time from each run
			log = p.log.With("run", t.Run.ID, "job", t.Job.FullName(), "step", t.Run.Step, "try", t.Run.Attempt)
		}
		log.Debug("step begins")
		end, ended := p.attempt(within, t)
		log.Debug("step has ended", "state", end.State, "error", end.Error)
		if !ended {
			if !p.one && end.Succeeds() && !errors.Is(context.Cause(ctx), store.ErrOutdated) {
				p.recordLater(ctx, h, end, told)
				return errLater
			}
			if !p.one && end.NextStep == 0 { // who waits need not wait for the record of it
				p.mu.Lock()
				if next := p.vacate(h); next != nil {
					p.hand(next)
				}
				p.mu.Unlock()
			}
			if err := p.endStep(ctx, t, p.inTime(t, over, end), nil); err != nil {
				return err
			}
			t.Waited = 0
		}
		if t.Run.State != store.Running {
			return nil
		}
	}
}

// endStep records the end of an attempt, also where the pass is being stopped.
//
// Where the database does not answer it tries again: on a server a few times, and then the lease ends and the run is
// recovered. On SQLite another job's write transaction can stand in the way for as long as that job takes, while the
// lock on the file keeps this run ours: there it tries for as long as the pass goes on. tried is what became of the first try,
// where there was one.
func (p *pass) endStep(ctx context.Context, t *store.Task, end store.StepEnd, tried error) error {
	if errors.Is(context.Cause(ctx), store.ErrOutdated) {
		return store.ErrOutdated
	}
	last, stop := p.until(ctx, p.lastEnd)
	defer stop()
	if end.RunError == "" {
		end.RunError = p.runError(last, t, end)
	}
	for try := 1; ; try++ {
		err := p.endOnce(last, t, end, tried)
		tried = nil
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrOutdated):
			return p.again(last, t, err)
		case errors.Is(err, store.ErrRecorded): // COMMIT took place, and its answer was lost
			end = succeededAlready
			continue
		case !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, context.DeadlineExceeded) && !p.t.Store.Transient(err):
			return err
		case over(last), try >= 5 && (!p.fileLocked(err) || ctx.Err() != nil):
			return err
		}
		select {
		case <-last.Done():
		case <-time.After(min(time.Duration(try)*200*time.Millisecond, 5*time.Second)):
		}
	}
}

// endOnce tries once to record the end of an attempt, with others or by itself.
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

// fileLocked reports whether an error says that another process has an SQLite file locked. It may stay
// locked for as long as a job of that process takes.
func (p *pass) fileLocked(err error) bool {
	return p.t.Store.Engine().OneWriter && (p.t.Store.Transient(err) || errors.Is(err, store.ErrReadOnly))
}

// again looks at a run whose end was refused. Where the fence is still ours, an earlier try took effect and only its
// answer was lost: the run goes on from where it stands.
func (p *pass) again(ctx context.Context, t *store.Task, refused error) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	now, err := p.t.Store.Run(ctx, t.Run.ID)
	if err != nil || now.Fence != t.Run.Fence || now.Attempts == t.Run.Attempts && now.State == store.Running {
		return refused
	}
	t.Run = now.Run
	return nil
}

// succeededAlready is the end of a run whose last attempt has recorded its success.
var succeededAlready = store.StepEnd{State: store.Succeeded, Final: store.Succeeded, Recorded: true}

// attempt executes the step that the run is in, once. ended reports whether the end is on record already.
func (p *pass) attempt(ctx context.Context, t *store.Task) (end store.StepEnd, ended bool) {
	step := t.StepAt(t.Run.Step)
	if step == nil {
		return store.StepEnd{State: store.Failed, Final: store.Failed, Error: fmt.Sprintf("the job has no step %d", t.Run.Step)}, false
	}
	x, ok := p.t.Executors[step.Executor]
	if !ok {
		return store.StepEnd{State: store.Failed, Final: store.Failed,
			Error: fmt.Sprintf("step %s: there is no executor %q; there are %s", step.Name, step.Executor, p.t.Executors.Names())}, false
	}
	if ctx.Err() != nil { // its time is over before it began
		return p.failure(ctx, t, step, context.Cause(ctx)), false
	}
	if limit := time.Duration(step.Timeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	if t.Steps = nil; step.Refers() {
		var err error
		if t.Steps, err = p.t.Store.StepFacts(ctx, t.Run.ID); err != nil {
			return p.failure(ctx, t, step, err), false
		}
	}
	success := decide.Follow(t, step.OnSuccess, store.Succeeded)
	success.State = store.Succeeded
	if success.Intended = success.Final == store.Failed && success.Error == ""; success.Intended {
		success.Error = fmt.Sprintf("step %q succeeded, and its on_success is fail", step.Name)
	}
	if success.Final == store.Failed { // looked up here: an atomic step records its end within its own transaction
		success.RunError = p.runError(ctx, t, success)
	}
	var commit func()
	inDoubt := false // whether COMMIT of an atomic step took place
	res, err := x.Execute(ctx, executor.Request{Task: t, Spec: step.Spec, Now: p.t.Now(), EndFollows: success.Succeeds(), EndIn: func(ctx context.Context, tx *sql.Tx, res executor.Result) (err error) {
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
	end = p.failure(ctx, t, step, err)
	end.InDoubt, res.Rows = inDoubt, nil
	tells(t, &end, res)
	return end, false
}

// tells keeps what an attempt told with its end; what later steps may name only where one of the job does.
func tells(t *store.Task, end *store.StepEnd, r executor.Result) {
	end.Rows, end.Output = r.Rows, r.Output
	if t.Job.TellsSteps() {
		end.Result = r.Facts
	}
}
