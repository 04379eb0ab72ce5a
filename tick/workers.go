package tick

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// workers are the runs that this pass holds.
type workers struct {
	places
	recorder recorder
	asks     bool             // the database is still to be asked how many places there may be
	queues   []string         // the queues to take from; none: all except the tick's own
	served   string           // the queue that was served last
	newest   map[string]*held // the last delivery of each run
	placed   []*held          // runs that were just taken; there is a free place for each
	unsure   []*result        // results whose ends could not be recorded, see lookAgain
	settled  int              // how many runs have ended, by settleAll, since the last round of decisions began

	// Of the last take.
	taken int           // how many runs it has taken
	full  bool          // it has taken as many runs as it was allowed to
	took  time.Duration // how long it lasted

	stop    context.CancelFunc // ends the heartbeats
	beating sync.WaitGroup
	release func() // ends what Store.Hold has begun
}

// delivery identifies one delivery of a run. This pass may hold a run twice, if its own lease has ended without its notice.
type delivery struct {
	run   string
	fence int
}

func deliveryOf(t *store.Task) delivery { return delivery{t.Run.ID, t.Run.Fence} }

type result struct {
	held *held
	err  error
}

// takeAll takes queued runs as long as there are enough of them to fill the room: to decide after every few ends would
// cost as much as the runs. After N runs, see many, it returns anyway, so that the pass decides. Otherwise the jobs that
// run after these runs, and the facts in the plans, would wait until a long queue is empty.
func (p *pass) takeAll(ctx context.Context) error {
	before := p.report.Started
	for {
		err := p.take(ctx)
		if p.asks && p.full && err == nil {
			p.grow(ctx)
		}
		if err != nil || !p.full || p.report.Started-before >= p.many() {
			return err
		}
		if err := p.await(ctx); err != nil {
			return err
		}
	}
}

// many is how many runs may begin, or end, before the pass decides again: about as many as execute in a fraction of a second.
func (p *pass) many() int {
	const least = 100
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(least, p.mostAhead())
}

// take takes queued runs as far as there is room, and starts them.
func (p *pass) take(ctx context.Context) error {
	places, ahead, enough := p.mayStart(ctx)
	p.taken, p.full = 0, p.full && enough // if enough runs are taken ahead, the result of the last take still holds
	if places+ahead <= 0 {
		return ctx.Err() // if the time for work is over, the pass must not look as if there was no more work
	}
	p.full = false
	if p.release == nil {
		var err error
		if p.release, err = p.t.Store.Hold(p.holder); err != nil {
			return err
		}
	}
	began := p.t.Now()
	err := p.takeInTurn(ctx, places, ahead)
	p.recall(ctx)
	p.full, p.took = p.taken == places+ahead, p.t.Now().Sub(began)
	return err
}

// start puts the runs that were taken into the line. As many as there are places for come first, into placed: they begin
// when all runs are taken, see fill.
func (p *pass) start(ctx context.Context, queue string, tasks []store.Task, places int) {
	if len(p.running) == 0 && len(tasks) > 0 {
		p.beat(ctx)
	}
	for i, t := range tasks {
		p.taken++
		p.report.Started++
		t.Settlement = p.settlements[t.Run.ID]
		delete(p.settlements, t.Run.ID)
		h := &held{Task: t, work: ctx, queue: queue, since: p.t.Now(), leased: p.t.Now().Add(lease)}
		h.run, h.stop = p.outlive(ctx)
		p.mu.Lock()
		if other := p.newest[t.Run.ID]; other != nil {
			other.stop(store.ErrOutdated)
		}
		p.running[deliveryOf(&t)], p.newest[t.Run.ID] = h, h
		if i < places {
			h.since = time.Time{}
			p.placed = append(p.placed, h)
		} else {
			p.line.add(h)
		}
		p.mu.Unlock()
	}
	p.progress()
}

// fill lets runs begin as long as there are places for them. If the work has ended while they were taken, they are given back.
func (p *pass) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.placed {
		if h.work.Err() != nil {
			h.since = p.t.Now()
			p.line.add(h)
			continue
		}
		p.enter(h)
		p.hand(h)
	}
	p.placed = nil
	for p.busy < p.size { // into places that have become free meanwhile
		next := p.advance()
		if next == nil {
			return
		}
		p.hand(next)
	}
}

// serve executes a run, and then other runs in the same goroutine. A new goroutine for each run would have to grow its stack
// again, which costs a sixth of a short run.
func (p *pass) serve(h *held) {
	for h != nil {
		if h = p.execute(h); h != nil {
			continue
		}
		select {
		case h = <-p.hands:
		case <-p.over:
		}
	}
}

// execute executes a run in its place, and returns the run that has the place next; nil: there is none.
func (p *pass) execute(h *held) (next *held) {
	err := p.run(h.run, h)
	p.mu.Lock()
	defer p.mu.Unlock()
	next = p.vacate(h)
	if !errors.Is(err, errLater) {
		p.ended = append(p.ended, &result{h, err})
	}
	p.tell()
	return next
}

// quiet reports whether nothing is left: no run executes here, none has ended since the last round of decisions began, and
// no decision has queued one. An end may come while the pass takes runs, or decides: the next round decides what follows from
// it. Runs that follow from the last run are queued within two rounds. A pass that goes on for much longer would only decide for
// runs that other passes have ended.
func (p *pass) quiet() bool {
	const most = 10
	if p.idle++; p.settled > 0 || len(p.running) > 0 {
		p.idle = 0
	}
	return p.idle > 0 && (p.moved == 0 || p.idle > most)
}

// await waits until a run ends, and also collects the runs that end at about the same time. It waits no longer than ctx, the
// time for work, lasts. Runs that have waited too long for a place are given back.
func (p *pass) await(ctx context.Context) error {
	aged := time.NewTicker(look)
	defer aged.Stop()
	var first time.Time
	for ended := 0; len(p.running) > 0; {
		ended += p.settleAll()
		patience, back := p.patience(ended)
		switch {
		case back:
			if p.giveBack(ctx, everyone) && over(ctx) {
				return ctx.Err()
			}
			continue
		case len(p.running) == 0 || patience == 0:
			return nil
		}
		var enough <-chan time.Time
		if patience > 0 {
			if first.IsZero() {
				first = p.t.Now()
			}
			enough = time.After(patience - p.t.Now().Sub(first))
		}
		select {
		case <-p.news:
		case <-enough:
			return nil
		case <-aged.C:
			p.giveBack(ctx, p.overlong)
		case <-ctx.Done():
			if ended > 0 {
				return nil
			}
			return ctx.Err()
		}
	}
	return nil
}

// patience is how long to wait for more ends before the next decisions or the next take; below 0: until there is an end. If
// a place is free, it waits for other ends as long as the last take lasted, because several runs are taken for the price of
// one. While there are runs that were taken ahead, nothing waits for the next decisions, and more ends are gathered for
// them. back says that the runs in the line are to be given back.
func (p *pass) patience(ended int) (_ time.Duration, back bool) {
	const most, gathered = 5 * time.Millisecond, 250 * time.Millisecond
	many := p.many()
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting, free := p.line.n, p.busy < p.size
	switch {
	case waiting > 0 && (free || p.paused): // runs wait that must not begin, see advance
		return 0, true
	case len(p.ended) > 0 && ended == 0:
		return time.Nanosecond, false
	case p.one && (waiting > 0 || !free): // one at a time: nothing else happens while a run executes
		return -1, false
	case p.one || ended >= many:
		return 0, false
	case waiting > 0 && p.full && waiting <= p.mostAhead()/2:
		return 0, false
	case waiting == 0 && free && (p.full || ended > 0):
		return max(min(p.took, most), 1), false
	case ended > 0:
		return gathered, false
	}
	return -1, false
}

// finishAll gives back the runs that have not begun, and waits for those that execute.
func (p *pass) finishAll(ctx context.Context) error {
	defer close(p.over)
	last, cancel := p.until(ctx, p.last, closingAll)
	defer cancel()
	for len(p.running) > 0 {
		again := p.giveBack(ctx, everyone)
		if p.settleAll() > 0 || again || len(p.running) == 0 {
			continue
		}
		select {
		case <-p.news:
			continue
		case <-last.Done():
		}
		p.stop() // no more heartbeats
		p.abandon()
		break
	}
	p.lookAgain(last)
	if p.release != nil {
		p.release()
	}
	return errors.Join(p.errs...)
}

// lookAgain looks at the runs whose ends could not be recorded, at the end of the pass: the database may have been away for longer
// than a lease, after the COMMIT of an end. Of the others, the leases will end, and then they are recovered. If there is no answer
// for one of them, lookAgain does not ask for the rest.
func (p *pass) lookAgain(ctx context.Context) {
	away := false
	for _, r := range p.unsure {
		var err error
		if !away {
			err = p.again(ctx, &r.held.Task, store.ErrOutdated)
			away = err != nil && p.temporary(err)
		}
		if away || err != nil || r.held.Run.State == store.Running {
			p.errs = append(p.errs, p.unended(r.held, r.err))
			continue
		}
		p.settle(&result{r.held, nil})
	}
	p.unsure = nil
}

// UnendedError says that a run shows as running after the end of the pass, because its end could not be recorded. If the
// lease is over, another pass may have recovered the run, and only the database knows.
type UnendedError struct {
	Run, Job string
	Over     bool // the lease is over
	Err      error
}

func (e *UnendedError) Error() string {
	if e.Over {
		return fmt.Sprintf("the end of run %s of job %s is not recorded, and its lease is over: the next pass recovers it, unless one has done so already: %v", e.Run, e.Job, e.Err)
	}
	return fmt.Sprintf("run %s of job %s shows as running until its lease ends, and is recovered then: %v", e.Run, e.Job, e.Err)
}

func (e *UnendedError) Unwrap() error { return e.Err }

func (p *pass) unended(h *held, err error) error {
	return &UnendedError{h.Run.ID, h.Job.FullName(), !p.t.Now().Before(h.leased), err}
}

// errTooLate says why a run of an UnendedError has no end.
var errTooLate = errors.New("it did not end before the pass had to")

// abandon adds an error for each run that the pass still holds.
func (p *pass) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of := range p.running {
		p.errs = append(p.errs, p.unended(p.running[of], errTooLate))
	}
}

// settleAll adds the runs that have ended to the report, and returns their number.
func (p *pass) settleAll() int {
	p.mu.Lock()
	list := p.ended
	p.ended = nil
	p.mu.Unlock()
	for _, r := range list {
		p.settle(r)
	}
	p.settled += len(list)
	return len(list)
}

// settle adds the end of a run to the report.
func (p *pass) settle(r *result) {
	run := &r.held.Run
	p.forget(r.held)
	if errors.Is(r.err, store.ErrOutdated) {
		p.report.Outdated++
		now := "unknown"
		if e, ok := errors.AsType[*refusedError](r.err); ok {
			now = e.now
		}
		p.log.Warn("the end of a run was refused: this process no longer holds it", "run", run.ID, "job", r.held.Job.FullName(), "fence", run.Fence, "now", now)
		return
	}
	if r.err != nil {
		p.unsure = append(p.unsure, r)
		return
	}
	if with := r.held.Settlement; r.held.Settled {
		p.keep(with.Retention())
	}
	p.report.end(run, r.held.Job.FullName())
	p.progress()
}

// forget removes a delivery from those that the pass holds. When none is left, it stops the heartbeats.
func (p *pass) forget(h *held) {
	h.stop(nil)
	p.mu.Lock()
	delete(p.running, deliveryOf(&h.Task))
	if p.newest[h.Run.ID] == h {
		delete(p.newest, h.Run.ID)
	}
	left := len(p.running)
	p.mu.Unlock()
	if left == 0 && p.stop != nil {
		p.stop()
		p.beating.Wait()
	}
}
