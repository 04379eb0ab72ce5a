package tick

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// margin is the part of a budget that is reserved for giving back the runs that still execute.
func margin(budget time.Duration) time.Duration { return min(budget/10, 2*time.Second) }

// Longest is the time that a run may have at most in a pass with this budget: what is left is for its end, and that of the pass.
func Longest(budget time.Duration) time.Duration { return budget - margin(budget) }

// elapsed is how long an instant of the host is after another one, by the wall clock: the monotonic clock stands still while the
// machine is suspended. It is negative if the wall clock has gone back in the meantime.
func elapsed(since, now time.Time) time.Duration { return now.Round(0).Sub(since.Round(0)) }

// deadlines say by when the parts of a pass have to end. They follow from the budget, and from when the pass has to stop.
type deadlines struct {
	t        *Tick
	began    time.Time
	ends     time.Time       // of the budget, by the host's clock
	graced   context.Context // ends with the graces of the runs, if the pass has to stop
	gracedAt time.Time       // when graced has ended
	unwatch  func() bool     // ends what closes has begun
	early    atomic.Bool     // a program was stopped for the end of the budget before the time for work was over
}

// whole is the budget of all passes of the trigger. This pass has only what the earlier passes have left of it.
func (d *deadlines) whole() time.Duration { return max(d.t.whole, d.t.Budget) }

// left is the time that is left for work.
func (d *deadlines) left() time.Duration {
	return d.t.Budget - margin(d.whole()) - d.t.Now().Sub(d.began)
}

// last is the instant after which the pass starts nothing that may take time: the rest of the budget is
// for the record of the pass and for the exit. A server that no longer answers must not keep the pass
// running longer. The runs that the pass still holds are recovered when their leases end.
func (d *deadlines) last() (time.Time, bool) {
	return d.ends.Add(-margin(d.whole()) / 4), d.t.Budget > 0
}

// lastEnd is the instant until which the end of a step may be recorded. After it there is still time to
// report why the record failed.
func (d *deadlines) lastEnd() (time.Time, bool) {
	return d.ends.Add(-margin(d.whole()) / 2), d.t.Budget > 0
}

// A pass that has to stop ends soon, also where the database does not answer: a platform that has sent SIGTERM kills some seconds
// later, and then nobody learns which runs are still open. The counting begins when the grace of its runs is over, and that of
// programs after it. What is not on record at the end is as after a crash: the leases of these runs end.
const (
	closing    = 4 * time.Second                // for the ends of runs
	closingAll = closing + 500*time.Millisecond // for waiting until the tries to record these ends have failed
	closed     = closing + time.Second          // for the record of the pass
)

// closes begins to watch for the end of ctx, after which the pass has to stop. See closing.
func (p *pass) closes(ctx context.Context) {
	graced, end := context.WithCancel(context.WithoutCancel(ctx))
	p.graced = graced
	p.unwatch = context.AfterFunc(ctx, func() {
		time.AfterFunc(p.t.Grace, func() {
			p.awaitPrograms()
			p.gracedAt = p.t.Now()
			end()
		})
	})
}

// awaitPrograms waits until no program executes any more, but no longer than their grace.
func (p *pass) awaitPrograms() {
	over, every := time.NewTimer(p.programGrace()), time.NewTicker(50*time.Millisecond)
	defer over.Stop()
	defer every.Stop()
	for p.programGrace() > 0 {
		select {
		case <-over.C:
			return
		case <-every.C:
		}
	}
}

// graceful notes the grace of a program for as long as it executes.
func (p *pass) graceful(h *held, x executor.Executor, step *store.Step) (ended func()) {
	programs, ok := x.(executor.Graceful)
	if !ok {
		return func() {}
	}
	set := func(grace time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		h.grace = grace
	}
	set(programs.Grace(step.Spec))
	return func() { set(0) }
}

// programGrace is the longest grace of the programs that execute.
func (p *places) programGrace() (most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.running {
		most = max(most, h.grace)
	}
	return most
}

// beforeClosed is a context that also ends some time after the graces of a pass that has to stop.
func (d *deadlines) beforeClosed(ctx context.Context, more time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(d.graced, func() {
		over := time.AfterFunc(more-d.t.Now().Sub(d.gracedAt), cancel)
		context.AfterFunc(ctx, func() { over.Stop() })
	})
	return ctx, func() { unwatch(); cancel() }
}

// grace is the time for recording a pass whose work has ended.
func (d *deadlines) grace() time.Duration {
	const most = 10 * time.Second
	if d.t.Budget <= 0 {
		return most
	}
	return min(most, max(d.ends.Sub(d.t.Now())-margin(d.whole())/8, time.Millisecond))
}

// afterWork is a context for what a pass does when its work has ended. It lasts for the grace.
func (d *deadlines) afterWork(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.grace())
	ctx, release := d.beforeClosed(ctx, closed)
	return ctx, func() { release(); cancel() }
}

// until is a context that outlives the work. It ends at the instant of last or lastEnd, and if the pass has to stop, this long
// after the graces: see closing.
func (d *deadlines) until(ctx context.Context, end func() (time.Time, bool), closing time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	release := func() {}
	if at, bounded := end(); bounded {
		ctx, release = context.WithTimeout(ctx, at.Sub(d.t.Now()))
	}
	ctx, cancel := d.beforeClosed(ctx, closing)
	return ctx, func() { cancel(); release() }
}

// budget ends the work a margin before the budget ends, so that the ends of runs can still be recorded, and others be given back.
func (d *deadlines) budget(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.t.Budget <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d.left())
}

// halfUsed reports whether half of the budget is used and a run has started. Until then, a run without
// a timeout may start. A run with a timeout may start whenever it fits into what is left. A run that was stopped early must
// not start again here.
func (p *pass) halfUsed() bool {
	return p.early.Load() || p.report.Started > 0 && p.t.Now().Sub(p.began) > p.t.Budget/2
}

// within bounds an attempt by the budget. most is how long the attempt may take, with its stop; 0: there is no budget.
//
// A program that is stopped needs its grace. So a program is stopped that much before the time for work is over, but it has
// two thirds of the time that is left. A program with a timeout that fits into the time for work is not stopped before: runs
// start where their timeout fits. In both cases the end of most may leave less than the grace.
func (p *pass) within(ctx context.Context, t *store.Task, step *store.Step, x executor.Executor) (stops context.Context, most time.Duration, release func()) {
	if p.t.Budget <= 0 {
		return ctx, 0, func() {}
	}
	left := p.left()
	most = max(left+margin(p.whole())/4, 1) // a quarter of the margin before lastEnd
	programs, ok := x.(executor.Graceful)
	if !ok || t.Job.Timeout > 0 || step.Timeout > 0 && time.Duration(step.Timeout) <= left {
		return ctx, most, func() {}
	}
	before := min(programs.Grace(step.Spec), left/3)
	stops, release = context.WithTimeoutCause(ctx, left-before, errEarly)
	return stops, most, release
}

// stopwatch adds up durations by the host's clock.
type stopwatch struct {
	sum   time.Duration
	since time.Time
}

func (s *stopwatch) start(now time.Time) { s.since = now }
func (s *stopwatch) stop(now time.Time)  { s.sum += now.Sub(s.since) }

// giveWay interrupts deciding, before another page of jobs, when deciding has used its share of the
// budget. The share is a third, as long as runs are queued that may start here. What follows from the
// ends of these runs is decided afterwards.
func (p *pass) giveWay(ctx context.Context) error {
	p.deciding.stop(p.t.Now())
	defer func() { p.deciding.start(p.t.Now()) }()
	for p.t.Budget > 0 && p.deciding.sum >= p.t.Budget/3 {
		places, ahead, _ := p.mayStart(ctx)
		if places+ahead > 0 {
			if err := p.take(ctx); err != nil || p.taken < places+ahead {
				return err
			}
		} else if p.idlePlace() { // no more may start in this pass
			return ctx.Err()
		}
		queued, err := p.t.Store.Queues(ctx)
		if err != nil || !slices.Contains(queued, OwnQueue) {
			return err
		}
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// overdue returns a context that ends at the timeout of the run. over is that instant by the host's
// clock; zero: the run has no timeout. The timeout counts from the first delivery, over all steps, all
// attempts and the waits between them. A start in the future is that of a clock that was ahead, and counts as now.
func (p *pass) overdue(ctx context.Context, t *store.Task) (within context.Context, over time.Time, release context.CancelFunc) {
	limit := time.Duration(t.Job.Timeout)
	if limit <= 0 {
		return ctx, time.Time{}, func() {}
	}
	left := min(limit, limit-t.Now.Sub(t.Run.StartedAt))
	within, release = context.WithTimeoutCause(ctx, left, errOverdue)
	return within, p.t.Now().Add(left), release
}

// over reports whether the budget is used up, or the pass is being stopped.
func over(ctx context.Context) bool { return ctx.Err() != nil }

// leftOver reports the runs that were not taken because of the budget: runs that the next pass can take,
// and runs that never fit into a budget of this length. Without the report, the latter would wait for
// ever for a host with a longer budget, and nobody would know.
func (p *pass) leftOver(ctx context.Context) error {
	if p.early.Load() {
		p.report.early, p.report.CutShort = true, cmp.Or(p.report.CutShort, usedUp)
	}
	whole := p.whole()
	if whole <= 0 || over(ctx) {
		return nil
	}
	serves, err := p.serves(ctx)
	if err != nil {
		return err
	}
	for _, queue := range serves {
		list, err := p.t.Store.TooLong(ctx, queue, Longest(whole))
		if err != nil {
			return err
		}
		p.report.TooLong = append(p.report.TooLong, list...)
		p.report.Remind = p.report.Remind || slices.ContainsFunc(list, func(l store.TooLong) bool { return p.probe.IsNew(l.Since) })
	}
	if p.report.CutShort != "" || !p.halfUsed() {
		return nil
	}
	queued, err := p.t.Store.Queues(ctx)
	if slices.ContainsFunc(serves, func(q string) bool { return slices.Contains(queued, q) }) {
		p.report.CutShort = "half of the budget was used; the next pass takes the queued runs"
	}
	return err
}

// outlive returns a context that ends at the deadline of ctx, but only after the grace if ctx is
// cancelled: a pass that has to stop takes no more runs, and the runs that execute have time to end.
func (d *deadlines) outlive(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if d.t.Grace <= 0 {
		return context.WithCancelCause(ctx)
	}
	return outlast(ctx, 0, d.t.Grace)
}

// outlast returns a context that ends some time after the deadline of ctx, or a grace after ctx is cancelled.
func outlast(ctx context.Context, late, grace time.Duration) (context.Context, context.CancelCauseFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	released := func() {}
	if end, ok := ctx.Deadline(); ok {
		out, released = context.WithDeadline(out, end.Add(late))
	}
	unwatch := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // then that deadline counts
			return
		}
		over := time.AfterFunc(grace, func() { cancel(nil) })
		context.AfterFunc(out, func() { over.Stop() })
	})
	return out, func(cause error) {
		unwatch()
		cancel(cause)
		released()
	}
}

// lastTake is how long a take that is under way may last when the work ends; less if there is a budget.
const lastTake = time.Second

// taking is a context for taking runs, which outlives the work by a moment. Otherwise the server could deliver runs to a pass that
// does not get the answer any more: they would seem to run until their leases end, and lose a delivery. What is taken in that
// moment is given back.
func (d *deadlines) taking(ctx context.Context) (context.Context, context.CancelFunc) {
	more := lastTake
	if d.t.Budget > 0 {
		more = min(more, margin(d.whole())/4)
	}
	out, stop := outlast(ctx, more, more)
	return out, func() { stop(nil) }
}
