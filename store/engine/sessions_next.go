package engine

import (
	"context"
	"slices"
	"time"
)

// A server may take longer to open a session than to execute most attempts. So an attempt that finds no free session waits for
// one of those in use, but for no longer than it takes to open another one. Short attempts then share a few sessions, and long
// ones begin at most that much later. Where attempts go on waiting, more sessions may do more: they are opened one by one.
const (
	// fewSessions are opened without a wait.
	fewSessions = 2
	// longOpening is the longest wait, and the wait as long as it is unknown how long an opening takes.
	longOpening = 50 * time.Millisecond
	// openingsWaited is how many openings attempts have to wait together before another session is opened at once.
	openingsWaited = 32
)

// next returns the session that has been free for longest, or waits for one. It returns nil if the caller has to open
// one. The session counts as in use.
func (p *Sessions) next(ctx context.Context) (*Session, error) {
	p.mu.Lock()
	p.inUse++
	p.taken++
	p.most = max(p.most, p.inUse)
	if len(p.free) > 0 {
		s := p.free[0]
		p.free = p.free[1:]
		s.idle.Stop()
		p.mu.Unlock()
		return s, nil
	}
	patience := p.patience()
	if patience == 0 {
		p.waited = 0
		p.mu.Unlock()
		return nil, nil
	}
	passed := make(chan *Session, 1)
	p.waiting = append(p.waiting, passed)
	p.mu.Unlock()
	took, late := measure(), time.NewTimer(patience)
	defer late.Stop()
	select {
	case s := <-passed:
		p.mu.Lock()
		p.waited += took()
		p.mu.Unlock()
		return s, nil
	case <-late.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.waiting = slices.DeleteFunc(p.waiting, func(w chan *Session) bool { return w == passed })
	p.mu.Unlock()
	select {
	case s := <-passed: // it came at this moment
		return s, nil
	default:
		return nil, ctx.Err()
	}
}

// patience returns how long an attempt waits for a session before it opens one. The caller holds the lock, and has counted the
// attempt as one in use.
func (p *Sessions) patience() time.Duration {
	others := p.inUse - 1 - len(p.waiting) + p.coming // sessions that attempts have, or open, and those that are being renewed
	switch {
	case p.coming > len(p.waiting):
		return renewal
	case !p.renews || others < fewSessions || p.waited > openingsWaited*p.opening:
		return 0
	}
	return min(p.opening, longOpening)
}

// deliver passes on a session that was renewed, or nil.
func (p *Sessions) deliver(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.coming--
	switch {
	case p.pass(s) || s == nil:
	case p.closed:
		s.end()
	default:
		s.idle = time.AfterFunc(idleSession, func() { p.giveUp(s) })
		p.free = append(p.free, s)
	}
}

// pass gives a session to the attempt that has waited longest, if one waits. Instead of nil, that attempt opens one. The caller
// holds the lock.
func (p *Sessions) pass(s *Session) bool {
	if len(p.waiting) == 0 {
		return false
	}
	p.waiting[0] <- s
	p.waiting = p.waiting[1:]
	return true
}

// measure returns a function that returns how long ago measure was called.
func measure() func() time.Duration {
	began := time.Now()                                      //nolint:forbidigo // only how long something takes: it decides about no run
	return func() time.Duration { return time.Since(began) } //nolint:forbidigo // as above
}
