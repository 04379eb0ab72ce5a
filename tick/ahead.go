package tick

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

const (
	aheadOf   = 250 * time.Millisecond // of work is taken ahead, as long as the last runs took
	mostAhead = 400                    // runs, which one statement takes
)

// held is a delivery that this pass holds.
type held struct {
	store.Task
	work  context.Context // nothing begins any more when it has ended
	run   context.Context // what it executes under
	stop  context.CancelCauseFunc
	queue string
	since time.Time // it waits; zero: it does not
	began time.Time
	place bool // it has one of those for what executes
}

// line are the runs that were taken ahead and wait for a place: of each queue in their order, and the queues in turn.
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

// next takes the first of the queue whose turn it is out of the line.
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

// leave takes those out of the line that go.
func (l *line) leave(goes func(*held) bool) (gone []*held) {
	for q, list := range l.of {
		stays := slices.DeleteFunc(slices.Clone(list), goes)
		for _, h := range list {
			if goes(h) {
				gone = append(gone, h)
			}
		}
		if l.of[q] = stays; len(stays) == 0 {
			delete(l.of, q)
		}
	}
	l.n -= len(gone)
	return gone
}

// mayStart is how many runs more may begin now, and how many more may be taken ahead: as far as the last ones were short,
// when half of those that were taken ahead have begun: enough says that fewer have. One at a time means that nothing goes
// on beside: there, more is taken when all has ended.
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

// mostAhead is how many may wait: a bounded fraction of a second of work, and of the budget.
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

// enter gives a run one of the places for what executes.
func (p *pass) enter(h *held) {
	p.busy++
	p.line.last = h.queue
	h.place, h.began = true, p.t.Now()
	if !h.since.IsZero() {
		h.Waited, h.since = h.began.Sub(h.since), time.Time{}
	}
}

// hand gives a run that has a place to somebody who executes it.
func (p *pass) hand(h *held) {
	select {
	case p.hands <- h:
	default:
		go p.serve(h)
	}
}

// vacate gives the place of a run to the run that has waited for it the longest, and returns that: who called executes it, or
// hands it on. A run that waits when the pass has to stop, or when everything is paused, does not begin.
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

// advance gives a place to the first of the line, and returns it; nil where none may begin.
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

// tell wakes who waits for news of the runs.
func (p *pass) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// giveBack gives back those that wait for a place, if they are such, so that others may take them: when the pass ends,
// everything is paused, or what was taken before them takes longer than what had been taken before.
func (p *pass) giveBack(ctx context.Context, goes func(*held) bool) {
	p.mu.Lock()
	gone := p.line.leave(goes)
	p.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	last, stop := p.until(ctx, p.lastEnd)
	defer stop()
	within, cancel := context.WithTimeout(last, heartbeat)
	defer cancel()
	tasks := make([]*store.Task, len(gone))
	for i, h := range gone {
		tasks[i] = &h.Task
	}
	given, err := p.t.Store.GiveBack(within, tasks)
	if err != nil {
		p.log.Warn("runs that had not begun could not be given back: they are recovered when their leases end", "runs", len(gone), "error", err)
	}
	p.log.Debug("given back", "runs", len(given), "of", len(gone))
	p.report.Started -= len(gone)
	for _, h := range gone {
		p.forget(h)
	}
}

func everyone(*held) bool { return true }

// overlong reports those that have waited for too long: what was taken before them takes longer than it was to, or the
// process stood still, and somebody else may have the run by now. By the wall clock: another stands still with the machine.
func (p *pass) overlong(h *held) bool { return p.t.Now().Round(0).Sub(h.since.Round(0)) > look }

// idlePlace reports whether there is a place that nobody waits for.
func (p *pass) idlePlace() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy < p.size && p.line.n == 0
}
