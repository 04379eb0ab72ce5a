package tick

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// margin is what is kept of a budget for giving back what runs at its end.
func margin(budget time.Duration) time.Duration { return min(budget/10, 2*time.Second) }

// whole is the budget of all passes of the trigger, of which the pass may have only what earlier ones left.
func (p *pass) whole() time.Duration { return max(p.t.whole, p.t.Budget) }

// left is the time that is left to work.
func (p *pass) left() time.Duration {
	return p.t.Budget - margin(p.whole()) - p.t.Now().Sub(p.began)
}

// last is the end of what may take time at all: behind it the budget has room for the record of the pass and the way
// out. A server that does not answer any more must not keep a pass longer; what it held is recovered when its leases end.
func (p *pass) last() (time.Time, bool) {
	return p.ends.Add(-margin(p.whole()) / 4), p.t.Budget > 0
}

// lastEnd is the end of what may take time to record the end of a step: then there is time to say why it could not.
func (p *pass) lastEnd() (time.Time, bool) {
	return p.ends.Add(-margin(p.whole()) / 2), p.t.Budget > 0
}

// grace is the time for the record of a pass that has ended otherwise.
func (p *pass) grace() time.Duration {
	const most = 10 * time.Second
	if p.t.Budget <= 0 {
		return most
	}
	return min(most, max(p.ends.Sub(p.t.Now())-margin(p.whole())/8, time.Millisecond))
}

// until is a context that outlives the end of the work, and ends where last or lastEnd says.
func (p *pass) until(ctx context.Context, end func() (time.Time, bool)) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if at, bounded := end(); bounded {
		return context.WithTimeout(ctx, at.Sub(p.t.Now()))
	}
	return context.WithCancel(ctx)
}

// budget ends the work a margin before the budget does, so that what runs can still be given back.
func (p *pass) budget(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.t.Budget <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, p.left())
}

// halfUsed: a run without a timeout starts while half of the budget is left, or as the first of the pass; one with a
// timeout whenever it fits what is left.
func (p *pass) halfUsed() bool {
	return p.report.Started > 0 && p.t.Now().Sub(p.began) > p.t.Budget/2
}

// stopwatch adds up how long something took, by the host's clock.
type stopwatch struct {
	sum   time.Duration
	since time.Time
}

func (s *stopwatch) start(now time.Time) { s.since = now }
func (s *stopwatch) stop(now time.Time)  { s.sum += now.Sub(s.since) }

// giveWay lets the work go on before another page of jobs is decided, where deciding has had its share of the budget: a
// third, for as long as runs are queued that may start here. What their ends call for is decided after that.
func (p *pass) giveWay(ctx context.Context) error {
	p.deciding.stop(p.t.Now())
	defer func() { p.deciding.start(p.t.Now()) }()
	for p.t.Budget > 0 && p.deciding.sum >= p.t.Budget/3 {
		switch free := p.mayStart(ctx); {
		case free > 0:
			if err := p.take(ctx); err != nil || p.taken < free {
				return err
			}
		case len(p.running) < p.size: // no more may start in this pass
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

// overdue ends the work on a run when its timeout does, which is over at that time by the host's clock; zero: never. It
// counts from the first delivery, over all steps, attempts and waits between them.
func (p *pass) overdue(ctx context.Context, t *store.Task) (within context.Context, over time.Time, release context.CancelFunc) {
	limit := time.Duration(t.Job.Timeout)
	if limit <= 0 {
		return ctx, time.Time{}, func() {}
	}
	left := limit - t.Now.Sub(t.Run.StartedAt)
	within, release = context.WithTimeoutCause(ctx, left, errOverdue)
	return within, p.t.Now().Add(left), release
}

// over reports whether the budget is used up, or the pass is being stopped.
func over(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// leftOver reports what the budget keeps from being taken: runs that wait for a pass with more time left, and the jobs
// whose runs never fit. Those would wait for ever for a host with a longer budget, and nobody would know.
func (p *pass) leftOver(ctx context.Context) error {
	whole := p.whole()
	if whole <= 0 || over(ctx) {
		return nil
	}
	turns, err := p.turns(ctx)
	if err != nil {
		return err
	}
	for _, queue := range turns {
		list, err := p.t.Store.TooLong(ctx, queue, whole-margin(whole))
		if err != nil {
			return err
		}
		p.report.TooLong = append(p.report.TooLong, list...)
	}
	if !p.halfUsed() {
		return nil
	}
	queued, err := p.t.Store.Queues(ctx)
	if slices.ContainsFunc(turns, func(q string) bool { return slices.Contains(queued, q) }) {
		p.report.CutShort = "half of the budget was used; the next pass takes the queued runs"
	}
	return err
}
