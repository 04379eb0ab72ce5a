package tick

import (
	"context"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// recorder records the ends of runs. It records together the ends that come while a write is under way, and while other runs
// that were taken ahead go on.
type recorder struct {
	mu       sync.Mutex
	gathered []*gathered
	writing  bool
	enough   chan struct{} // says that gather need not wait any longer
}

type gathered struct {
	store.Ending
	done func() // called when Err is known
}

// mostTogether bounds the number of ends that are recorded together: if one of them is refused, it must
// be found among them. mostBytesTogether bounds the size of what they report: a server limits the size of
// a statement, MariaDB by default to 16 MB, and JSON may write one byte as six. If more ends are expected
// soon, an end waits for them for at most gathering, and only until there are enoughTogether: with more
// ends in one write, the price of each is hardly lower.
const (
	mostTogether      = 200
	mostBytesTogether = 1 << 20
	enoughTogether    = 100
	gathering         = 25 * time.Millisecond
)

// together records an end that finishes its run, with other ends that come at about the same time. It waits until the outcome
// is known. It returns the error of Store.EndSteps; nil only if the end is committed.
func (p *pass) together(ctx context.Context, t *store.Task, end store.StepEnd) error {
	done := make(chan struct{})
	g := &gathered{store.Ending{Task: t, End: end}, func() { close(done) }}
	p.gathers(ctx, g)
	<-done
	return g.Err
}

// recordLater records the success of a run with other ends, and does not wait for the record: a goroutine for each run that
// ends would cost a tenth of a pass over short runs. An end that could not be recorded this way is tried again by endStep.
// told is called when the run is over.
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

// gathers adds an end to those that are recorded next.
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

// more reports whether more ends are expected soon: runs that were taken ahead are as short as the last runs, and begin
// without waiting for the record of the runs before them. If runs execute one at a time, each run waits for that record.
func (p *places) more() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.one && p.line.n > 0
}

// gather waits for more ends.
func (p *pass) gather() {
	r := &p.recorder
	wait := gathering
	if p.t.Budget > 0 { // at the end of the budget no more ends come, and little time is left for the record
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

// write records the gathered ends, until none is left.
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

// howMany says how many of the ends the next write records.
func howMany(list []*gathered) int {
	size := 0
	for i, g := range list {
		if size += g.End.Size(); i == mostTogether || i > 0 && size > mostBytesTogether {
			return i
		}
	}
	return len(list)
}

// writeOnce records a list of ends, within the time that is left for recording ends.
func (p *pass) writeOnce(ctx context.Context, list []*store.Ending) {
	last, stop := p.until(ctx, p.lastEnd, closing)
	defer stop()
	within, cancel := context.WithTimeout(last, heartbeat)
	defer cancel()
	paused := p.t.Store.EndSteps(within, list)
	p.log.Debug("ends recorded together", "runs", len(list))
	p.mu.Lock()
	p.paused = paused
	p.mu.Unlock()
}
