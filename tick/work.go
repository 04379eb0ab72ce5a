package tick

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// workers are the runs that this pass executes.
type workers struct {
	size     int
	queues   []string // to take from; none: all but the tick's own
	served   string   // the queue whose turn was last
	ended    chan result
	running  map[delivery]context.CancelCauseFunc
	mu       sync.Mutex
	errs     []error
	taken    int           // by the last take
	full     bool          // it took as many as there was room for
	took     time.Duration // how long that was
	stop     context.CancelFunc
	beating  sync.WaitGroup
	release  func() // the sign of life
	recorder recorder
}

// delivery is one handing out of a run: this pass may come to hold a run twice, where its own lease has ended unnoticed.
type delivery struct {
	run   string
	fence int
}

func deliveryOf(t *store.Task) delivery { return delivery{t.Run.ID, t.Run.Fence} }

type result struct {
	as    delivery
	ended store.Task
	err   error
}

func (w *workers) init(size int) {
	if w.size = size; size <= 0 {
		w.size = 4
	}
	w.ended = make(chan result, w.size) // nobody may be there any more to take the last ones
	w.running = map[delivery]context.CancelCauseFunc{}
}

// The causes for which an attempt is stopped before its end.
var (
	errCut       = errors.New("stopped by the end of the pass")
	errCancelled = errors.New("cancelled")
	errTimeout   = errors.New("timeout")
	errOverdue   = errors.New("timeout of the run")
)

// mayStart is how many runs more may start.
func (p *pass) mayStart(ctx context.Context) int {
	free := p.size - len(p.running)
	if ctx.Err() != nil {
		return 0
	}
	if p.t.Limit != 0 {
		free = min(free, p.t.Limit-p.report.Started)
	}
	return free
}

// takeAll takes queued runs for as long as there are enough to fill the room: a decision for every few runs that have
// ended would cost as much as the runs. After a number of ends there is one all the same, or jobs would wait for their
// successors, and the record for its facts, until a long queue is empty.
func (p *pass) takeAll(ctx context.Context) error {
	const most = 100
	for before := p.report.Started; ; {
		if err := p.take(ctx); err != nil || !p.full || p.report.Started-before >= most {
			return err
		}
		if err := p.await(ctx); err != nil {
			return err
		}
	}
}

// take takes queued runs as far as there is room, and starts them.
func (p *pass) take(ctx context.Context) error {
	p.taken, p.full = 0, false
	free := p.mayStart(ctx)
	if free <= 0 {
		return nil
	}
	if p.release == nil {
		var err error
		if p.release, err = p.t.Store.Hold(p.holder); err != nil {
			return err
		}
	}
	began := p.t.Now()
	err := p.takeInTurn(ctx, free)
	p.full, p.took = p.taken == free, p.t.Now().Sub(began)
	return err
}

// start executes what was taken.
func (p *pass) start(ctx context.Context, tasks []store.Task) {
	if len(p.running) == 0 && len(tasks) > 0 {
		p.beat(ctx)
	}
	for _, t := range tasks {
		p.taken++
		p.report.Started++
		run, cancel := p.outlive(ctx)
		p.mu.Lock()
		for h, stop := range p.running {
			if h.run == t.Run.ID {
				stop(store.ErrOutdated)
			}
		}
		p.running[deliveryOf(&t)] = cancel
		p.mu.Unlock()
		as := deliveryOf(&t)
		go func() {
			err := p.run(run, &t)
			p.ended <- result{as, t, err}
		}()
	}
}

// outlive is a context that ends at the deadline of ctx, but only a grace after ctx is cancelled: a pass that is told to
// stop takes no more, and what runs may end.
func (p *pass) outlive(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if p.t.Grace <= 0 {
		return context.WithCancelCause(ctx)
	}
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	released := func() {}
	if end, ok := ctx.Deadline(); ok {
		out, released = context.WithDeadline(out, end)
	}
	unwatched := context.AfterFunc(ctx, func() {
		over := time.AfterFunc(p.t.Grace, func() { cancel(nil) })
		context.AfterFunc(out, func() { over.Stop() })
	})
	return out, func(cause error) {
		unwatched()
		cancel(cause)
		released()
	}
}

// quiet: nothing runs here, nothing was to be taken, and nothing was let go that could be. What follows on the last run is let
// go within two rounds; a pass that goes on much longer has only the ends of other passes' runs to decide for.
func (p *pass) quiet() bool {
	const most = 10
	if p.idle++; p.taken > 0 || len(p.running) > 0 {
		p.idle = 0
	}
	return p.idle > 0 && (p.moved == 0 || p.idle > most)
}

// await waits for one run to end, and takes in what else ends about then; no longer than the time to work. As long as
// taking took, it waits for others: several are taken for the price of one.
func (p *pass) await(ctx context.Context) error {
	if len(p.running) == 0 {
		return nil
	}
	select {
	case r := <-p.ended:
		p.settle(r)
	case <-ctx.Done():
		return ctx.Err()
	}
	const most = 5 * time.Millisecond
	enough := time.NewTimer(min(p.took, most))
	defer enough.Stop()
	for len(p.running) > 0 {
		select {
		case r := <-p.ended:
			p.settle(r)
			continue
		case <-enough.C:
		case <-ctx.Done():
		}
		break
	}
	return nil
}

// finishAll waits for what still runs.
func (p *pass) finishAll(ctx context.Context) error {
	last, cancel := p.until(ctx, p.last)
	defer cancel()
	for len(p.running) > 0 {
		select {
		case r := <-p.ended:
			p.settle(r)
			continue
		case <-last.Done():
		}
		p.stop() // no sign of life any more
		p.errs = append(p.errs, fmt.Errorf("%d runs did not end within the budget; they are recovered when their leases end", len(p.running)))
		break
	}
	if p.release != nil {
		p.release()
	}
	return errors.Join(p.errs...)
}

// settle takes the end of a run into the report.
func (p *pass) settle(r result) {
	run := r.ended.Run
	p.mu.Lock()
	p.running[r.as](nil)
	delete(p.running, r.as)
	left := len(p.running)
	p.mu.Unlock()
	if left == 0 && p.stop != nil {
		p.stop()
		p.beating.Wait()
	}
	if errors.Is(r.err, store.ErrOutdated) {
		p.report.Outdated++
		p.log.Warn("the end of a run was refused: it was delivered again", "run", run.ID, "job", run.Job, "fence", run.Fence)
		return
	}
	if r.err != nil { // the lease ends, and the run is recovered
		p.errs = append(p.errs, fmt.Errorf("run %s of job %s is recovered when its lease ends: %w", run.ID, r.ended.Job.FullName(), r.err))
		return
	}
	p.report.end(&r.ended.Run, r.ended.Job.FullName())
}

// beat reports signs of life for what runs here, until all of it has ended, and looks in between for what somebody wants
// cancelled. A run that is held no longer is stopped, and one that is to be cancelled.
func (p *pass) beat(ctx context.Context) {
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.beating.Go(func() {
		every := time.NewTicker(look)
		defer every.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			p.mu.Lock()
			ids, asked := make([]string, 0, len(p.running)), make([]delivery, 0, len(p.running))
			for h := range p.running {
				ids, asked = append(ids, h.run), append(asked, h)
			}
			p.mu.Unlock()
			if n%int(heartbeat/look) > 0 {
				p.lookForCancels(ctx, ids, asked)
				continue
			}
			within, cancel := context.WithTimeout(ctx, heartbeat/2)
			signs, err := p.t.Store.Heartbeat(within, ids, p.holder)
			cancel()
			if err != nil { // the next one may get through before the lease ends
				p.log.Warn("heartbeat", "error", err)
				continue
			}
			p.heed(asked, signs)
		}
	})
}

// lookForCancels stops what somebody wants cancelled. Where the database does not answer, the next look may.
func (p *pass) lookForCancels(ctx context.Context, ids []string, asked []delivery) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat/2)
	defer cancel()
	signs, err := p.t.Store.Held(ctx, ids, p.holder)
	if err != nil {
		p.log.Debug("looking for runs to be cancelled", "error", err)
		return
	}
	p.heed(slices.DeleteFunc(asked, func(h delivery) bool { return !signs[h.run].Cancel }), signs)
}

func (p *pass) heed(asked []delivery, signs map[string]store.Sign) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range asked {
		stop, here := p.running[h]
		switch sign, held := signs[h.run]; {
		case !here: // it has ended meanwhile
		case !held || sign.Fence != h.fence:
			stop(store.ErrOutdated)
		case sign.Cancel:
			stop(errCancelled)
		}
	}
}

// run executes the steps of a run, from where it stands, until it ends or has to wait for a retry.
func (p *pass) run(ctx context.Context, t *store.Task) error {
	defer func() {
		if r := recover(); r != nil { // one job's fault is never the pass's
			_ = p.endStep(ctx, t, store.StepEnd{State: store.Failed, Final: store.Failed, Error: fmt.Sprintf("the executor panicked: %v", r)})
		}
	}()
	within, over, release := p.overdue(ctx, t)
	defer release()
	for {
		log := p.log.With("run", t.Run.ID, "job", t.Job.FullName(), "step", t.Run.Step, "try", t.Run.Attempt)
		log.Debug("step begins")
		end, ended := p.attempt(within, t)
		log.Debug("step has ended", "state", end.State, "error", end.Error)
		if !ended {
			if err := p.endStep(ctx, t, p.inTime(t, over, end)); err != nil {
				return err
			}
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
// lock on the file keeps this run ours: there it tries for as long as the pass goes on.
func (p *pass) endStep(ctx context.Context, t *store.Task, end store.StepEnd) error {
	if errors.Is(context.Cause(ctx), store.ErrOutdated) {
		return store.ErrOutdated
	}
	last, stop := p.until(ctx, p.lastEnd)
	defer stop()
	if end.RunError == "" {
		end.RunError = p.runError(last, t, end)
	}
	for try := 1; ; try++ {
		within, cancel := context.WithTimeout(last, heartbeat)
		var err error
		if end.Finishes() {
			err = p.together(within, t, end)
		} else {
			err = p.t.Store.EndStep(within, t, end, p.holder)
		}
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrOutdated):
			return p.again(last, t, err)
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

// fileLocked tells of an error that another process has an SQLite file locked, which may be for as long as its job takes.
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
	success := follow(t, step.OnSuccess, store.Succeeded)
	success.State = store.Succeeded
	if success.Intended = success.Final == store.Failed && success.Error == ""; success.Intended {
		success.Error = fmt.Sprintf("step %q succeeded, and its on_success is fail", step.Name)
	}
	if success.Final == store.Failed { // looked up here: an atomic step records its end within its own transaction
		success.RunError = p.runError(ctx, t, success)
	}
	var commit func()
	res, err := x.Execute(ctx, executor.Request{Task: t, Spec: step.Spec, EndIn: func(ctx context.Context, tx *sql.Tx, rows int64) (err error) {
		success.Rows = &rows
		commit, err = p.t.Store.EndStepIn(ctx, tx, t, success, p.holder)
		return err
	}})
	if err == nil {
		if res.Ended {
			commit()
		}
		success.Rows = res.Rows
		return success, res.Ended
	}
	return p.failure(ctx, t, step, err), false
}
