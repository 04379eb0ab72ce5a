package tick

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

const (
	aheadOf   = 250 * time.Millisecond // how much work is taken ahead, by the time that the last runs took
	mostAhead = 400                    // the most runs that are taken ahead; one statement takes them
)

// held is a delivery that this pass holds.
type held struct {
	store.Task
	work  context.Context // when it has ended, the run must not begin any more
	run   context.Context // the context in which the run executes
	stop  context.CancelCauseFunc
	queue string
	since time.Time // when it began to wait for a place; zero: it does not wait
	began time.Time
	// leased is the end of its lease by the host's clock, for messages, and for heartbeats that another session's lock delays.
	leased time.Time
	place  bool          // it has a place, so it executes
	missed bool          // the last answer about what this pass holds did not have it
	grace  time.Duration // of the program that it executes
}

// line holds the runs that were taken ahead and wait for a place. The runs of a queue keep their order; the queues take turns.
type line struct {
	of   map[string][]*held
	n    int
	last string // the queue of the run that began last
}

func (l *line) add(h *held) {
	if l.of == nil {
		l.of = map[string][]*held{}
	}
	l.of[h.queue] = append(l.of[h.queue], h)
	l.n++
}

// next removes a run from the line and returns it: the first one of the queue whose turn it is.
func (l *line) next() *held {
	var turn, first string
	for q := range l.of {
		if q > l.last && (turn == "" || q < turn) {
			turn = q
		}
		if first == "" || q < first {
			first = q
		}
	}
	if turn == "" {
		turn = first
	}
	h := l.of[turn][0]
	if l.of[turn] = l.of[turn][1:]; len(l.of[turn]) == 0 {
		delete(l.of, turn)
	}
	l.n--
	return h
}

// leave removes from the line the runs for which goes is true, and returns them. It asks once for each run, because the answer
// may change with time.
func (l *line) leave(goes func(*held) bool) (gone []*held) {
	for q, list := range l.of {
		var stays []*held
		for _, h := range list {
			if goes(h) {
				gone = append(gone, h)
			} else {
				stays = append(stays, h)
			}
		}
		if l.of[q] = stays; len(stays) == 0 {
			delete(l.of, q)
		}
	}
	l.n -= len(gone)
	return gone
}

// mayStart says how many more runs may begin now (places), and how many more may be taken ahead. Runs are taken ahead if the
// last runs were short, and only when half of those that were taken ahead have begun; enough says that fewer than half have
// begun. If runs execute one at a time, nothing else happens meanwhile: then more is taken only when all have ended.
func (p *pass) mayStart(ctx context.Context) (places, ahead int, enough bool) {
	if ctx.Err() != nil || p.t.Limit < 0 {
		return 0, 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line.n == 0 {
		places = max(p.size-p.busy, 0)
	}
	most := p.mostAhead()
	if enough = p.line.n > most/2; !enough && (!p.one || places > 0) {
		ahead = most - p.line.n
	}
	if p.t.Limit > 0 {
		left := p.t.Limit - p.report.Started
		places = min(places, left)
		ahead = min(ahead, left-places)
	}
	return places, ahead, enough
}

// mostAhead is how many runs may wait for a place: a bounded fraction of a second of work, and a bounded part of the budget.
func (p *pass) mostAhead() int {
	if p.pace < 0 || p.paused {
		return 0
	}
	return min(mostAhead, int(int64(p.aheadOf())*int64(p.size)/max(int64(p.pace), 1)))
}

func (p *pass) aheadOf() time.Duration {
	if p.t.Budget > 0 {
		return min(aheadOf, p.t.Budget/100)
	}
	return aheadOf
}

// enter gives a run one of the places. The caller holds mu, as for hand, vacate, advance and mostAhead.
func (p *pass) enter(h *held) {
	p.busy++
	p.line.last = h.queue
	h.place, h.began = true, p.t.Now()
	if !h.since.IsZero() {
		h.Waited, h.since = h.began.Sub(h.since), time.Time{}
	}
}

// hand passes a run that has a place to a goroutine that executes it: to an idle one, or to a new one.
func (p *pass) hand(h *held) {
	select {
	case p.hands <- h:
	default:
		go p.serve(h)
	}
}

// vacate frees the place of a run. It gives the place to the run that has waited longest, and returns that run: the caller
// executes it, or passes it on with hand. If the pass has to stop, or everything is paused, no waiting run begins.
func (p *pass) vacate(h *held) (next *held) {
	if !h.place {
		return nil
	}
	h.place = false
	p.busy--
	const weight = 8
	if took := p.t.Now().Sub(h.began); p.pace < 0 {
		p.pace = took
	} else {
		p.pace += (took - p.pace) / weight
	}
	if p.busy < p.size {
		next = p.advance()
	}
	p.tell()
	return next
}

// advance gives a place to the first run of the line, and returns that run; nil: no run may begin.
func (p *pass) advance() *held {
	if p.line.n == 0 || p.paused {
		return nil
	}
	next := p.line.next()
	if next.work.Err() != nil || p.overlong(next) {
		p.line.add(next) // to be given back
		return nil
	}
	p.enter(next)
	return next
}

// tell wakes the goroutine that waits for news of the runs.
func (p *places) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// giveBack gives back the runs that wait for a place and for which goes is true, so that other processes may take them. This
// happens when the pass ends, when everything is paused, or when the runs before them take longer than expected.
//
// A step may have an SQLite file locked for as long as it writes. The runs then go back into the line, and giveBack reports that it has
// to be called again: no other pass recovers a run as long as this process lives, so the pass must not forget it.
func (p *pass) giveBack(ctx context.Context, goes func(*held) bool) (again bool) {
	p.mu.Lock()
	gone := p.line.leave(goes)
	p.mu.Unlock()
	if len(gone) == 0 {
		return false
	}
	last, stop := p.until(ctx, p.lastEnd, closing)
	defer stop()
	within, cancel := context.WithTimeout(last, heartbeat)
	defer cancel()
	tasks := make([]*store.Task, len(gone))
	for i, h := range gone {
		tasks[i] = &h.Task
	}
	left, err := p.handBack(within, tasks)
	if again = err != nil && p.fileLocked(err) && !over(last); again {
		gone = p.lineUp(gone, left)
	} else if err != nil {
		p.log.Warn("runs that had not begun could not be given back: they are recovered when their leases end", "runs", len(left), "error", err)
	}
	p.log.Debug("given back", "runs", len(tasks)-len(left), "of", len(tasks))
	p.report.Started -= len(gone)
	for _, h := range gone {
		p.forget(h)
	}
	return again
}

// lineUp puts those of some runs back into the line that could not be given back, and returns the others.
func (p *pass) lineUp(list []*held, left []*store.Task) (gone []*held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range list {
		if slices.Contains(left, &h.Task) {
			p.line.add(h)
		} else {
			gone = append(gone, h)
		}
	}
	return gone
}

// handBack gives runs back. With an error, it returns those that this pass still holds. Rows that another session has locked are
// tried again: it may be that of a heartbeat of this pass, whose transaction ends soon.
func (p *pass) handBack(ctx context.Context, tasks []*store.Task) (left []*store.Task, err error) {
	const most, wait = 10, 200 * time.Millisecond
	left = tasks
	for try := 1; ; try++ {
		given, err := p.t.Store.GiveBack(ctx, left)
		if err != nil {
			return left, err
		}
		left = slices.DeleteFunc(left, func(t *store.Task) bool { return slices.Contains(given, t) })
		if left, err = p.stillHeld(ctx, left); err != nil || len(left) == 0 {
			return left, err
		}
		if try == most {
			return left, store.ErrLocked
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// stillHeld returns those of some deliveries that this pass still holds. It asks by a heartbeat: see Store.Held (store/work.go).
func (p *pass) stillHeld(ctx context.Context, tasks []*store.Task) ([]*store.Task, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.Run.ID
	}
	signs, err := p.t.Store.Heartbeat(ctx, ids, p.holder)
	if err != nil {
		return tasks, err
	}
	return slices.DeleteFunc(tasks, func(t *store.Task) bool {
		sign, held := signs[t.Run.ID]
		return !held || sign.Fence != t.Run.Fence
	}), nil
}

func everyone(*held) bool { return true }

// overlong reports whether a run has waited too long for a place. Either the runs before it take longer than expected, or the
// process stood still, and another process may have the run by now. If the wall clock has gone back, nobody knows how long the run
// has waited, and it counts as too long.
func (p *pass) overlong(h *held) bool {
	waited := elapsed(h.since, p.t.Now())
	return waited < 0 || waited > look
}

// idlePlace reports whether a place is free and no run waits for it.
func (p *places) idlePlace() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy < p.size && p.line.n == 0
}
