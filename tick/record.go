package tick

import (
	"context"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// recorder records the ends of runs: those together that come while a write is under way, and while others that were
// taken ahead go on.
type recorder struct {
	mu       sync.Mutex
	gathered []*gathered
	writing  bool
	enough   chan struct{} // says that there is no more to wait for
}

type gathered struct {
	store.Ending
	done func() // is called when Err is known
}

// mostTogether bounds the ends that are recorded together, among which one that is refused is looked
// for. mostBytesTogether bounds what they tell: a server takes no statement of any size, MariaDB by
// default one of 16 MB, and JSON may write a byte as six. Where others are to come at once, an end
// waits for them no longer than gathering, and until there are enoughTogether: to write more costs
// hardly less for each.
const (
	mostTogether      = 200
	mostBytesTogether = 1 << 20
	enoughTogether    = 100
	gathering         = 25 * time.Millisecond
)

// together records an end that finishes its run, with others that come at about the same time. The error is that of
// Store.EndSteps, and nil only where the end is committed. Until then it waits.
func (p *pass) together(ctx context.Context, t *store.Task, end store.StepEnd) error {
	done := make(chan struct{})
	g := &gathered{store.Ending{Task: t, End: end}, func() { close(done) }}
	p.gathers(ctx, g)
	<-done
	return g.Err
}

// recordLater records the success of a run with others, and does not wait for that: a goroutine for each run that ends would
// cost a tenth of a pass over short ones. What is not recorded so is tried again by itself. told is called when the run is over.
func (p *pass) recordLater(ctx context.Context, h *held, end store.StepEnd, told func()) {
	ended := func(err error) {
		told()
		p.mu.Lock()
		p.ended = append(p.ended, &result{h, err})
		p.mu.Unlock()
		p.tell()
	}
	g := &gathered{Ending: store.Ending{Task: &h.Task, End: end}}
	g.done = func() {
		if g.Err == nil {
			ended(nil)
			return
		}
		go func() { ended(p.endStep(ctx, &h.Task, end, g.Err)) }()
	}
	p.gathers(ctx, g)
}

// gathers takes an end to those that are recorded next.
func (p *pass) gathers(ctx context.Context, g *gathered) {
	r := &p.recorder
	last := !p.more()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gathered = append(r.gathered, g)
	if last || len(r.gathered) >= enoughTogether {
		select {
		case r.enough <- struct{}{}:
		default:
		}
	}
	if !r.writing {
		r.writing = true
		go p.write(context.WithoutCancel(ctx))
	}
}

// more reports whether more ends are to come at once: runs that were taken ahead, and are as short as the last ones, begin
// without waiting for the record of those before them. One at a time, each waits for it.
func (p *pass) more() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.one && p.line.n > 0
}

// gather waits for more ends.
func (p *pass) gather() {
	r := &p.recorder
	wait := gathering
	if p.t.Budget > 0 { // at its end nothing more is to come, and little time is left for the record
		wait = min(wait, p.left())
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for p.more() {
		r.mu.Lock()
		n := len(r.gathered)
		r.mu.Unlock()
		if n == 0 || n >= enoughTogether {
			return
		}
		select {
		case <-r.enough:
		case <-late.C:
			return
		}
	}
}

// write records what is gathered, until nothing is.
func (p *pass) write(ctx context.Context) {
	r := &p.recorder
	for {
		p.gather()
		r.mu.Lock()
		n := howMany(r.gathered)
		now := r.gathered[:n:n]
		r.gathered = r.gathered[n:]
		r.writing = n > 0
		r.mu.Unlock()
		if n == 0 {
			return
		}
		list := make([]*store.Ending, n)
		for i, g := range now {
			list[i] = &g.Ending
		}
		p.writeOnce(ctx, list)
		for _, g := range now {
			g.done()
		}
	}
}

// howMany of the ends are recorded by the next write.
func howMany(list []*gathered) int {
	size := 0
	for i, g := range list {
		if size += g.End.Size(); i == mostTogether || i > 0 && size > mostBytesTogether {
			return i
		}
	}
	return len(list)
}

// writeOnce records a list of ends, within the time that there is for ends.
func (p *pass) writeOnce(ctx context.Context, list []*store.Ending) {
	last, stop := p.until(ctx, p.lastEnd)
	defer stop()
	within, cancel := context.WithTimeout(last, heartbeat)
	defer cancel()
	paused := p.t.Store.EndSteps(within, list)
	p.log.Debug("ends recorded together", "runs", len(list))
	p.mu.Lock()
	p.paused = paused
	p.mu.Unlock()
}
