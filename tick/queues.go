package tick

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Work is the second half of a pass: it takes the queued runs that were made before it began, and executes them until none of
// these is left, or the budget nears its end. It decides nothing: the next attempt of a run, and the jobs that run
// after it, wait for the next tick. It is not recorded as a tick.
func (t *Tick) Work(ctx context.Context) (Report, error) {
	return t.monitored(ctx, func(t *Tick) (Report, error) { return t.work(ctx) })
}

func (t *Tick) work(ctx context.Context) (Report, error) {
	p, err := t.begin(ctx)
	defer p.unwatch()
	if err != nil || p.probe.Frozen {
		return p.report, err
	}
	p.queues, p.through = t.Queues, p.probe.Now
	work, stop := p.budget(ctx)
	defer stop()
	for err == nil {
		p.settled = 0
		err = p.takeAll(work)
		p.moved = 0 // nothing is decided here: the next tick decides for runs that were refused
		if err != nil || p.quiet() {
			break
		}
		err = p.await(work)
	}
	p.addUnkept()
	err = errors.Join(p.cutShort(ctx, work, err), p.finishAll(ctx), p.cutShort(ctx, work, p.leftOver(work)))
	return p.report, errors.Join(err, p.leaves(ctx, err))
}

// leaves reads what the runs of a worker leave to the next tick, for the alarm. failure is the error of the worker.
func (p *pass) leaves(ctx context.Context, failure error) error {
	if r := &p.report; p.t.Alarm == nil || r.Started+r.Cancelled+r.Failed == 0 || r.somebodyMends(failure) {
		return nil
	}
	ctx, cancel := p.afterWork(ctx)
	defer cancel()
	probe, err := p.t.Store.Probe(ctx, p.t.Name, OwnQueue)
	switch {
	case err != nil && p.t.Budget > 0:
		return p.unseen(ctx, err)
	case err != nil: // without this look, nobody knows when the alarm is due
		return err
	}
	p.report.next(probe, p.t.Now())
	return nil
}

// takeInTurn takes runs for the free places, and some more ahead. Each queue has a share, so that a long
// queue never delays another queue. A queue that has filled its share has another turn after the others.
// Within a queue the priority decides, then the age.
func (p *pass) takeInTurn(ctx context.Context, places, ahead int) error {
	turns, err := p.turns(ctx)
	if err != nil {
		return err
	}
	holder := p.holder
	holder.Until = p.through
	if p.t.Budget > 0 {
		left := p.left()
		if ahead > 0 {
			left -= p.aheadOf()
		}
		holder.Within, holder.Timed = max(left, time.Millisecond), p.halfUsed()
	}
	defer p.fill()
	taking, stop := p.taking(ctx)
	defer stop()
	for free := places + ahead; free > 0 && len(turns) > 0 && ctx.Err() == nil; {
		n := len(turns)
		queue, share, now := turns[0], (free+n-1)/n, (places+n-1)/n
		holder.Ahead, holder.Joined = share-now, p.joined
		tasks, err := p.t.Store.Take(taking, queue, share, holder)
		p.moved += p.refused()
		if err != nil {
			return err
		}
		p.joined = slices.DeleteFunc(p.joined, func(id string) bool {
			return slices.ContainsFunc(tasks, func(t store.Task) bool { return t.Run.ID == id })
		})
		p.start(ctx, queue, tasks, now)
		p.served = queue
		free -= len(tasks)
		places -= min(now, len(tasks))
		if turns = turns[1:]; len(tasks) == share {
			turns = append(turns, queue)
		}
	}
	return ctx.Err()
}

// recall gives back the runs of a take whose COMMIT had no answer, as a server that restarts leaves it: this process has begun none of
// them, so none loses a delivery. It tries for as long as endStep would, since a run with one delivery would be lost.
func (p *pass) recall(ctx context.Context) {
	open := p.holder.Refused.Unsure()
	if len(open) == 0 {
		return
	}
	last, stop := p.until(ctx, p.lastEnd, closing)
	defer stop()
	patient, done := context.WithTimeout(last, lease)
	defer done()
	for {
		var err error
		if open, err = p.recallOnce(patient, open); len(open) == 0 {
			return
		}
		if err == nil {
			err = store.ErrLocked
		}
		select {
		case <-patient.Done():
		case <-time.After(200 * time.Millisecond):
			if p.temporary(err) || errors.Is(err, store.ErrLocked) {
				continue
			}
		}
		p.log.Warn("runs that may have been delivered could not be given back: they are recovered when their leases end", "runs", len(open), "error", err)
		return
	}
}

func (p *pass) recallOnce(ctx context.Context, open []*store.Task) ([]*store.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	return p.t.Store.Recall(ctx, open)
}

// refused adds the runs that could not be delivered to the report. It returns the number of runs that
// ended for that reason; their jobs need a decision.
func (p *pass) refused() int {
	ended, left := p.holder.Refused.Take()
	for i := range ended {
		p.report.endUnexecuted(&ended[i])
	}
	p.unkept = append(p.unkept, left...)
	return len(ended)
}

// addUnkept adds to the report the jobs that stay as they are because the database refuses every write
// for them.
func (p *pass) addUnkept() {
	known := len(p.report.Parked)
	p.report.addParked(p.unkept)
	p.report.ParkedJobs += len(p.report.Parked) - known
}

// turns returns the queues to take from, beginning after the queue that was served last. The first turn of a pass begins
// anywhere: passes that take few runs each would otherwise all serve the first names, and never the last ones.
func (p *pass) turns(ctx context.Context) ([]string, error) {
	list, err := p.serves(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	i, found := slices.BinarySearch(list, p.served)
	switch {
	case p.served == "":
		i = rand.N(len(list))
	case found:
		i++
	}
	return slices.Concat(list[i:], list[:i]), nil
}

// serves returns the queues that the pass serves, in the order of their names.
func (p *pass) serves(ctx context.Context) ([]string, error) {
	list := slices.Clone(p.queues)
	if len(list) == 0 {
		all, err := p.t.Store.Queues(ctx)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(all, func(q string) bool { return q == OwnQueue })
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
